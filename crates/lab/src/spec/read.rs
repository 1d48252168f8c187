//! A value of a document, read as the expected type.

use serde::de::DeserializeOwned;
use toml::Value;

use super::error::Problem;
use crate::document::{self, Key, Wrong};

/// What `value` is, which stands at `at`.
pub(super) fn read<T: DeserializeOwned>(value: Value, at: Vec<Key>) -> Result<T, Problem> {
    document::read((&value).into()).map_err(|Wrong { at: steps, said, .. }| {
        let wrong = wrong_key::<T>(&value, &steps, &said);
        Problem::from_serde(at.into_iter().chain(steps).chain(wrong).collect(), &said)
    })
}

/// In a table that a tag tells apart (`algorithm`, `policy`) serde names no key: it is the one without which something else is
/// wrong, or nothing.
fn wrong_key<T: DeserializeOwned>(value: &Value, at: &[Key], said: &str) -> Option<Key> {
    let is_wrong = |key: &&String| {
        let mut rest = value.clone();
        let table = at.iter().try_fold(&mut rest, |value, key| match key {
            Key::Name(name) => value.get_mut(name),
            Key::Index(n) => value.get_mut(n),
        });
        table.and_then(Value::as_table_mut).map(|table| table.remove(*key));
        let other = document::read::<T>((&rest).into()).err();
        other.is_none_or(|other| other.said != said && !other.said.starts_with("missing field"))
    };
    let table = Key::find(value, at)?.as_table()?;
    table.keys().find(is_wrong).map(|key| Key::from(key.as_str()))
}
