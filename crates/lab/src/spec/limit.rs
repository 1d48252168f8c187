//! How much may wait at a link.

use std::fmt;
use std::str::FromStr;

use polypath_hop::QueueLimit;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Bytes, Human, UnitError, split_number};

/// Limit of what waits: packets (`"144p"`), a size (`"90kB"`) or a multiple of the link's own
/// bandwidth-delay product, rate × 2 · delay (`"1.5bdp"`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// This many packets.
    Packets(u32),
    /// This many bytes.
    Size(Bytes),
    /// This many times rate × 2 · delay.
    Bdp(f64),
}

impl Limit {
    /// What a link may hold whose bandwidth-delay product is `bdp` bytes.
    pub fn resolve(self, bdp: u64) -> QueueLimit {
        match self {
            Self::Packets(n) => QueueLimit::Packets(n),
            Self::Size(bytes) => QueueLimit::Bytes(bytes.0),
            Self::Bdp(times) => QueueLimit::Bytes((times * bdp as f64) as u64),
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::Packets(100)
    }
}

/// What is said of another unit.
const UNITS: &str = "its unit is none of p, bdp, B, kB, KiB, MB, MiB, GB, GiB";

/// Whether `text` is a whole number, however large.
pub(super) fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

impl FromStr for Limit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = |reason: &str| UnitError {
            what: "queue",
            text: text.to_owned(),
            reason: reason.to_owned(),
            example: "144p\", \"1.5bdp\" or \"90kB",
        };
        let (number, unit) = split_number(text.trim());
        match unit.to_ascii_lowercase().as_str() {
            "p" if !is_whole(number) => Err(wrong("not a whole number of packets")),
            "p" => Ok(Self::Packets(number.parse().map_err(|_| wrong("it is too large"))?)),
            "bdp" => match number.parse() {
                Ok(times) if f64::is_finite(times) => Ok(Self::Bdp(times)),
                Ok(_) => Err(wrong("it is too large")),
                Err(_) => Err(wrong("it does not begin with a number")),
            },
            "" => Err(wrong("it has no unit")),
            _ => {
                let size: Result<Human<Bytes>, _> = text.parse();
                Ok(Self::Size(
                    size.map_err(|e| wrong(if e.reason.contains("unit") { UNITS } else { &e.reason }))?.0,
                ))
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n}p"),
            Self::Size(bytes) => Human(*bytes).fmt(f),
            Self::Bdp(x) => write!(f, "{x}bdp"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}
