//! A value of a document that serde reads, and the way to what it does not take. Only for [`Value`], which a spec is read from: a wrapper
//! of any format, as `serde_path_to_error` is, links its code once more for every type below a spec.

use std::cell::OnceCell;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::de::Error;
use toml::{Value, map, value};

use super::error::Key;

/// What `value` is; else the way to what is wrong, and what that is.
pub(super) fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T, (Vec<Key>, Error)> {
    let failed = OnceCell::new();
    let root = Tracked { value, way: Way::Root, failed: &failed };
    T::deserialize(root).map_err(|error| (failed.into_inner().unwrap_or_default(), error))
}

/// The way from the document to a value.
#[derive(Clone, Copy)]
enum Way<'a> {
    Root,
    Name(&'a Way<'a>, &'a str),
    Index(&'a Way<'a>, usize),
}

/// A value, and where it stands.
struct Tracked<'a> {
    value: Value,
    way: Way<'a>,
    failed: Failed<'a>,
}

/// Where the first error was: errors on the way back are about the same.
type Failed<'a> = &'a OnceCell<Vec<Key>>;

struct Elements<'a> {
    rest: std::vec::IntoIter<Value>,
    next: usize,
    way: &'a Way<'a>,
    failed: Failed<'a>,
}

struct Entries<'a> {
    rest: map::IntoIter<String, Value>,
    entry: (String, Option<Value>),
    way: &'a Way<'a>,
    failed: Failed<'a>,
}

/// A variant with what it holds, if it holds anything.
struct Variant<'a> {
    name: String,
    content: Option<Value>,
    way: &'a Way<'a>,
    failed: Failed<'a>,
}

/// The content of a variant.
struct Content<'a>(Variant<'a>);

impl Way<'_> {
    fn keys(&self) -> Vec<Key> {
        let (mut keys, last) = match self {
            Self::Root => return Vec::new(),
            Self::Name(before, name) => (before.keys(), Key::from(*name)),
            Self::Index(before, index) => (before.keys(), Key::from(*index)),
        };
        keys.push(last);
        keys
    }

    /// An error here, unless there was one below.
    fn note(&self, failed: Failed<'_>) {
        failed.get_or_init(|| self.keys());
    }
}

impl<'de> Deserializer<'de> for Tracked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { way, failed, .. } = self;
        let result = match self.value {
            Value::Boolean(v) => visitor.visit_bool(v),
            Value::Integer(v) => visitor.visit_i64(v),
            Value::Float(v) => visitor.visit_f64(v),
            Value::String(v) => visitor.visit_string(v),
            Value::Datetime(v) => visitor.visit_string(v.to_string()),
            Value::Array(all) => elements(all, &way, failed, visitor),
            Value::Table(all) => entries(all, &way, failed, visitor),
        };
        result.inspect_err(|_| way.note(failed))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Self { way, failed, .. } = self;
        let (name, content) = match self.value {
            Value::String(name) => (name, None),
            Value::Table(all) if all.len() == 1 => {
                let (name, content) = all.into_iter().next().expect("it has one");
                (name, Some(content))
            }
            Value::Table(all) => {
                way.note(failed);
                let many = if all.is_empty() { "found 0 elements" } else { "more than 1 element" };
                return Err(Error::custom(format!("wanted exactly 1 element, {many}")));
            }
            _ => {
                way.note(failed);
                return Err(Error::invalid_type(Unexpected::UnitVariant, &"string only"));
            }
        };
        let variant = Variant { name, content, way: &way, failed };
        visitor.visit_enum(variant).inspect_err(|_| way.note(failed))
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

    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 char str string unit seq bytes byte_buf map unit_struct
        tuple_struct tuple struct ignored_any identifier
    }
}

fn elements<'de, V: Visitor<'de>>(
    all: value::Array,
    way: &Way<'_>,
    failed: Failed<'_>,
    visitor: V,
) -> Result<V::Value, Error> {
    let len = all.len();
    let mut elements = Elements { rest: all.into_iter(), next: 0, way, failed };
    let taken = visitor.visit_seq(&mut elements)?;
    match elements.rest.len() {
        0 => Ok(taken),
        _ => Err(Error::invalid_length(len, &"fewer elements in array")),
    }
}

fn entries<'de, V: Visitor<'de>>(
    all: toml::Table,
    way: &Way<'_>,
    failed: Failed<'_>,
    visitor: V,
) -> Result<V::Value, Error> {
    let len = all.len();
    let mut entries = Entries { rest: all.into_iter(), entry: (String::new(), None), way, failed };
    let taken = visitor.visit_map(&mut entries)?;
    match entries.rest.len() {
        0 => Ok(taken),
        _ => Err(Error::invalid_length(len, &"fewer elements in map")),
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(value) = self.rest.next() else { return Ok(None) };
        let way = Way::Index(self.way, self.next);
        self.next += 1;
        let element = seed.deserialize(Tracked { value, way, failed: self.failed });
        element.map(Some).inspect_err(|_| way.note(self.failed))
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.entry = (name, Some(value));
        let name: StringDeserializer<Error> = self.entry.0.clone().into_deserializer();
        let key = seed.deserialize(name);
        key.map(Some).inspect_err(|_| Way::Name(self.way, &self.entry.0).note(self.failed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.entry.1.take().expect("the key comes first");
        let way = Way::Name(self.way, &self.entry.0);
        let value = seed.deserialize(Tracked { value, way, failed: self.failed });
        value.inspect_err(|_| way.note(self.failed))
    }
}

impl<'a, 'de> EnumAccess<'de> for Variant<'a> {
    type Error = Error;
    type Variant = Content<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content<'a>), Error> {
        let name: StringDeserializer<Error> = self.name.clone().into_deserializer();
        let variant = seed.deserialize(name).inspect_err(|_| self.way.note(self.failed))?;
        Ok((variant, Content(self)))
    }
}

impl Content<'_> {
    /// Gives `read` what the variant holds, and where that stands.
    fn with<T>(self, read: impl FnOnce(Tracked<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let Variant { name, content, way, failed } = self.0;
        let way = Way::Name(way, &name);
        let read = match content {
            Some(value) => read(Tracked { value, way, failed }),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"a variant with a value")),
        };
        read.inspect_err(|_| way.note(failed))
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.0.content {
            None => Ok(()),
            Some(_) => self.with(|_| Err(Error::custom("expected no value"))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        self.with(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.with(|content| content.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.with(|content| content.deserialize_any(visitor))
    }
}
