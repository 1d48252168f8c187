//! Durations as numbers of milliseconds, for `#[serde(with = "polypath_wire::millis")]`.

use serde::{Deserialize, Deserializer, Serializer};

use crate::Duration;

/// Writes milliseconds.
pub fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_millis_f64())
}

/// Reads milliseconds; refuses what is negative or not finite.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    let ms = f64::deserialize(d)?;
    if !ms.is_finite() || ms < 0.0 {
        return Err(serde::de::Error::custom(format!("{ms} ms: a time must be zero or more")));
    }
    Ok(Duration::from_secs_f64(ms / 1e3))
}
