//! The keys of a variant without parameters, for `#[serde(deserialize_with = "polypath_wire::no_keys::deserialize")]`: none. Serde
//! itself lets any pass where a tag says the variant.

use serde::{Deserialize, Deserializer};

/// Nothing but the tag.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

/// Refuses every key.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<(), D::Error> {
    NoKeys::deserialize(d).map(|NoKeys {}| ())
}
