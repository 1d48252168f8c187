//! How serde goes through a document. One type of source for every type that is read, and an error as large as a pointer: what
//! serde derives is compiled for each of both.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Key, Node, Wrong};

/// Why a value cannot be read. The way begins at the value that is wrong: each list and each table around it adds a step.
#[derive(Debug)]
pub struct Error(Box<Wrong>);

impl Error {
    /// With the way from the document's root.
    pub fn end(mut self) -> Wrong {
        self.0.at.reverse();
        *self.0
    }

    /// The same, seen from around it.
    fn inside(mut self, key: impl Into<Key>) -> Self {
        self.0.at.push(key.into());
        self
    }

    fn of_key(mut self, name: &str) -> Self {
        self.0.on_key = true;
        self.inside(name)
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(said: T) -> Self {
        Self(Box::new(Wrong { at: Vec::new(), on_key: false, said: said.to_string() }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.said)
    }
}

impl std::error::Error for Error {}

impl Node {
    /// It is not what is expected.
    fn refused(&self, expected: &dyn Expected) -> Error {
        let whole;
        let found = match self {
            Self::Switch(switch) => Unexpected::Bool(*switch),
            Self::Whole(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => Unexpected::Signed(n),
                (_, Ok(n)) => Unexpected::Unsigned(n),
                _ => {
                    whole = format!("integer `{n}` as i128");
                    Unexpected::Other(&whole)
                }
            },
            Self::Number(number) => Unexpected::Float(*number),
            Self::Text(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Table(_) => Unexpected::Map,
            Self::Other(what) => Unexpected::Other(what),
        };
        de::Error::invalid_type(found, expected)
    }
}

/// Reads what is asked for, and refuses the rest: each visitor is compiled for nothing else.
macro_rules! only {
    ($($method:ident($($name:ident: $type:ty),*) => $read:ident;)*) => { $(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Error> {
            $read(self, visitor)
        }
    )* };
}

fn switch<'de, V: Visitor<'de>>(node: Node, visitor: V) -> Result<V::Value, Error> {
    match node {
        Node::Switch(switch) => visitor.visit_bool(switch),
        other => Err(other.refused(&visitor)),
    }
}

fn number<'de, V: Visitor<'de>>(node: Node, visitor: V) -> Result<V::Value, Error> {
    match node {
        Node::Whole(whole) => match (i64::try_from(whole), u64::try_from(whole)) {
            (Ok(whole), _) => visitor.visit_i64(whole),
            (_, Ok(whole)) => visitor.visit_u64(whole),
            _ => visitor.visit_i128(whole),
        },
        Node::Number(number) => visitor.visit_f64(number),
        other => Err(other.refused(&visitor)),
    }
}

fn text<'de, V: Visitor<'de>>(node: Node, visitor: V) -> Result<V::Value, Error> {
    match node {
        Node::Text(text) => visitor.visit_string(text),
        other => Err(other.refused(&visitor)),
    }
}

fn list<'de, V: Visitor<'de>>(node: Node, visitor: V) -> Result<V::Value, Error> {
    match node {
        Node::List(list) => visitor.visit_seq(Items { rest: list.into_iter(), index: 0 }),
        other => Err(other.refused(&visitor)),
    }
}

fn table<'de, V: Visitor<'de>>(node: Node, visitor: V) -> Result<V::Value, Error> {
    match node {
        Node::Table(table) => visitor.visit_map(Entries { rest: table.into_iter(), value: None }),
        other => Err(other.refused(&visitor)),
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Switch(_) => switch(self, visitor),
            Self::Whole(_) | Self::Number(_) | Self::Other(_) => number(self, visitor),
            Self::Text(_) => text(self, visitor),
            Self::List(_) => list(self, visitor),
            Self::Table(_) => table(self, visitor),
        }
    }

    only! {
        deserialize_bool() => switch;
        deserialize_i8() => number;
        deserialize_i16() => number;
        deserialize_i32() => number;
        deserialize_i64() => number;
        deserialize_u8() => number;
        deserialize_u16() => number;
        deserialize_u32() => number;
        deserialize_u64() => number;
        deserialize_f32() => number;
        deserialize_f64() => number;
        deserialize_str() => text;
        deserialize_string() => text;
        deserialize_seq() => list;
        deserialize_tuple(_len: usize) => list;
        deserialize_tuple_struct(_name: &'static str, _len: usize) => list;
        deserialize_map() => table;
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]) => table;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A choice is a text, or a table with one key.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, of) = match self {
            Self::Table(mut table) if table.len() == 1 => {
                let (name, of) = table.remove(0);
                (name, Some(of))
            }
            other => (String::deserialize(other)?, None),
        };
        visitor.visit_enum(Choice { name, of })
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct identifier ignored_any }
}

/// What is left of a list.
struct Items {
    rest: std::vec::IntoIter<Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.inside(self.index - 1))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// What is left of a table, and the value of the key that was read last.
struct Entries {
    rest: std::vec::IntoIter<(String, Node)>,
    value: Option<(String, Node)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        let read = named(&name, seed).map_err(|error| error.of_key(&name))?;
        self.value = Some((name, value));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, value) = self.value.take().ok_or_else(|| de::Error::custom("no key was read"))?;
        seed.deserialize(value).map_err(|error| error.inside(name.as_str()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A name is no value of the document: most of what is read has no other use for texts.
fn named<'de, T: DeserializeSeed<'de>>(name: &str, seed: T) -> Result<T::Value, Error> {
    let name: StringDeserializer<Error> = name.to_owned().into_deserializer();
    seed.deserialize(name)
}

/// A choice, and what it holds.
struct Choice {
    name: String,
    of: Option<Node>,
}

impl<'de> EnumAccess<'de> for Choice {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((named(&self.name, seed)?, self))
    }
}

impl<'de> VariantAccess<'de> for Choice {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.of {
            None => Ok(()),
            Some(_) => Err(de::Error::invalid_type(Unexpected::Map, &"a string")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let of = self.of.ok_or_else(|| alone("newtype variant"))?;
        seed.deserialize(of).map_err(|error| error.inside(self.name.as_str()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        let of = self.of.ok_or_else(|| alone("tuple variant"))?;
        list(of, visitor).map_err(|error| error.inside(self.name.as_str()))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let of = self.of.ok_or_else(|| alone("struct variant"))?;
        table(of, visitor).map_err(|error| error.inside(self.name.as_str()))
    }
}

/// A name alone, where something is held.
fn alone(expected: &str) -> Error {
    de::Error::invalid_type(Unexpected::UnitVariant, &expected)
}
