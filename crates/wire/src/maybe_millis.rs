//! The same as [`millis`](crate::millis) for times that need not be given.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Duration;

#[derive(Serialize, Deserialize)]
struct Time(#[serde(with = "crate::millis")] Duration);

/// Writes milliseconds, or nothing.
pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(Time).serialize(s)
}

/// Reads milliseconds; refuses what is negative or not finite.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<Time>::deserialize(d)?.map(|t| t.0))
}
