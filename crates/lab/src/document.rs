//! Documents in TOML: their values with the expected types, and the places of errors.

mod access;

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

/// A step on the way to a value in a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// The key of a table.
    Name(String),
    /// The place in a list, from 0.
    Index(usize),
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Key {
    /// The key of a table.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Index(_) => None,
        }
    }

    /// The value at the end of the way `at` from `value`.
    pub fn find<'a>(value: &'a Value, at: &[Self]) -> Option<&'a Value> {
        at.iter().try_fold(value, |value, key| match key {
            Self::Name(name) => value.get(name),
            Self::Index(n) => value.get(n),
        })
    }
}

/// `peer[0].hit`.
pub fn dotted<'a>(path: impl IntoIterator<Item = &'a Key>) -> String {
    path.into_iter().fold(String::new(), |so_far, key| match key {
        Key::Index(n) => format!("{so_far}[{n}]"),
        Key::Name(name) if so_far.is_empty() => name.clone(),
        Key::Name(name) => format!("{so_far}.{name}"),
    })
}

/// The span of the value (or of the key) at `path`, or of the deepest value on the way there.
pub fn find(doc: &DeTable<'_>, path: &[Key], on_key: bool) -> Option<Range<usize>> {
    let mut best = None;
    let mut value: Option<&DeValue<'_>> = None;
    for (depth, key) in path.iter().enumerate() {
        let step = match (key, value) {
            (Key::Name(name), None) => entry(doc, name),
            (Key::Name(name), Some(v)) => v.as_table().and_then(|t| entry(t, name)),
            (Key::Index(n), v) => {
                v.and_then(DeValue::as_array).and_then(|a| a.get(*n)).map(|v| (v.span(), v))
            }
        };
        let Some((key_span, found)) = step else { break };
        let is_last = depth + 1 == path.len();
        best = Some(if on_key && is_last { key_span } else { found.span() });
        value = Some(found.get_ref());
    }
    best
}

/// Span of the key `name`, and its value.
fn entry<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(key, value)| (key.span(), value))
}

/// A value of a document.
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// `true`, `false`.
    Switch(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, its keys as they are ordered in the document.
    Table(Vec<(String, Node)>),
    /// What nothing can be read from, and how errors call it.
    Other(&'static str),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Boolean(switch) => Self::Switch(*switch),
            Value::Integer(whole) => Self::Whole((*whole).into()),
            Value::Float(number) => Self::Number(*number),
            Value::String(text) => Self::Text(text.clone()),
            Value::Datetime(date) => Self::Text(date.to_string()),
            Value::Array(list) => Self::List(list.iter().map(Self::from).collect()),
            Value::Table(table) => {
                Self::Table(table.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

impl From<&DeTable<'_>> for Node {
    fn from(table: &DeTable<'_>) -> Self {
        Self::Table(
            table.iter().map(|(key, value)| (key.get_ref().to_string(), value.get_ref().into())).collect(),
        )
    }
}

impl From<&DeValue<'_>> for Node {
    fn from(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::Boolean(switch) => Self::Switch(*switch),
            DeValue::Integer(whole) => i128::from_str_radix(whole.as_str(), whole.radix())
                .map_or(Self::Other("a number of too many digits"), Self::Whole),
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(read) if !f64::is_infinite(read) || number.as_str().contains("inf") => Self::Number(read),
                _ => Self::Other("a number of too many digits"),
            },
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Datetime(date) => Self::Table(vec![("date".to_owned(), Self::Text(date.to_string()))]),
            DeValue::Array(list) => Self::List(list.iter().map(|value| value.get_ref().into()).collect()),
            DeValue::Table(table) => table.into(),
        }
    }
}

/// Why a value does not have the expected type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Where in the document.
    pub at: Vec<Key>,
    /// Whether it is the key at the end of the way, not its value.
    pub on_key: bool,
    /// What serde says.
    pub said: String,
}

/// What `node` is.
pub fn read<T: DeserializeOwned>(node: Node) -> Result<T, Wrong> {
    T::deserialize(node).map_err(access::Error::end)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;

    use super::*;
    use crate::seeds::SeedRange;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Shape {
        Point,
        Circle { radius: f64 },
        Square(f64),
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Drawing {
        #[serde(default)]
        shapes: Vec<Shape>,
        #[serde(default)]
        seeds: Vec<SeedRange>,
        #[serde(default)]
        sizes: BTreeMap<String, u64>,
        scale: Option<f64>,
    }

    fn read_text<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
        read(DeTable::parse(text).unwrap().get_ref().into())
    }

    #[track_caller]
    fn wrong(text: &str, key: &str, said: &str, marked: &str) {
        let wrong = read_text::<Drawing>(text).unwrap_err();
        assert!(wrong.said.contains(said), "{}", wrong.said);
        let doc = DeTable::parse(text).unwrap();
        let span = find(doc.get_ref(), &wrong.at, wrong.on_key).unwrap_or(doc.span());
        assert_eq!((dotted(&wrong.at).as_str(), &text[span]), (key, marked));
    }

    #[test]
    fn a_choice_is_a_text_or_a_table_with_one_key() {
        let text = "shapes = [\"point\", { circle = { radius = 2.5 } }, { square = 3 }]\nsizes = { a = 18446744073709551615 }";
        let drawing: Drawing = read_text(text).unwrap();
        let shapes = vec![Shape::Point, Shape::Circle { radius: 2.5 }, Shape::Square(3.0)];
        assert_eq!(drawing.shapes, shapes);
        assert_eq!(drawing.sizes["a"], u64::MAX);
        let of = "shapes = [{ circle = { radius = \"x\" } }]";
        wrong(of, "shapes[0].circle.radius", "expected f64", "\"x\"");
        wrong("shapes = [{ square = true }]", "shapes[0].square", "expected f64", "true");
        wrong("shapes = [\"circle\"]", "shapes[0]", "expected struct variant", "\"circle\"");
        wrong("shapes = [{ point = 1 }]", "shapes[0]", "map, expected a string", "{ point = 1 }");
        wrong("shapes = [5]", "shapes[0]", "integer `5`, expected a string", "5");
        wrong("shapes = [\"line\"]", "shapes[0]", "unknown variant `line`", "\"line\"");
    }

    #[test]
    fn an_error_is_at_the_innermost_value_or_key() {
        wrong("scale = 1\nshape = 1", "shape", "unknown field `shape`", "shape");
        wrong("[sizes]\na = 1\nb = -1", "sizes.b", "expected u64", "-1");
        // Its text is one, and what it says is wrong.
        wrong("seeds = [\"1..2\", \"2..1\"]", "seeds[1]", "", "\"2..1\"");
        let missing = read_text::<BTreeMap<String, SeedTable>>("[a]\nseeds = \"1\"\n[b]").unwrap_err();
        assert_eq!((dotted(&missing.at).as_str(), missing.said.as_str()), ("b", "missing field `seeds`"));
    }

    #[derive(Deserialize, Debug)]
    struct SeedTable {
        #[serde(rename = "seeds")]
        _seeds: SeedRange,
    }

    #[test]
    fn a_list_is_no_table() {
        assert_eq!(read_text::<Drawing>("[sizes]").unwrap().scale, None);
        wrong("sizes = [1]", "sizes", "sequence, expected a map", "[1]");
        let positions = read_text::<BTreeMap<String, SeedTable>>("a = [\"1\"]").unwrap_err();
        assert_eq!(positions.said, "invalid type: sequence, expected struct SeedTable");
    }

    #[test]
    fn what_no_type_holds_is_named() {
        let digits = "9".repeat(50);
        wrong(
            &format!("sizes = {{ a = {digits} }}"),
            "sizes.a",
            "a number of too many digits, expected u64",
            &digits,
        );
        wrong("scale = 1e999", "scale", "a number of too many digits, expected f64", "1e999");
        wrong("scale = 2026-11-29", "scale", "map, expected f64", "2026-11-29");
        assert_eq!(read_text::<Drawing>("scale = inf").unwrap().scale, Some(f64::INFINITY));
        assert_eq!(read_text::<Drawing>("sizes = { a = 0x10 }").unwrap().sizes["a"], 16);
    }
}
