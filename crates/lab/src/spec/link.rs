//! Links: rate, delay, queue, and everything that can go wrong.

use std::fmt;
use std::str::FromStr;

use polypath_wire::{Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Bytes, Human, UnitError, split_number};

/// A link between two nodes, with the same values in both directions but for those in `back`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Node at one end.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Rate.
    pub rate: Human<Rate>,
    /// One-way propagation delay.
    pub delay: Human<Duration>,
    /// How much may wait in the drop-tail queue before it. Default: 100 packets.
    #[serde(default)]
    pub queue: Queue,
    /// What is different from `to` to `from`.
    #[serde(default)]
    pub back: Back,
    /// Probability that a packet is lost on the wire, 0 to 1. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// Probability that a packet arrives twice, 0 to 1. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub duplication: f64,
    /// Packets held back while later ones pass. Default: none.
    #[serde(default)]
    pub reordering: Option<Reordering>,
    /// Probability that bits of a packet flip, 0 to 1. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub corruption: f64,
    /// Largest packet with its headers, bytes. Default: 1500.
    #[serde(default = "ethernet")]
    pub mtu: u32,
    /// Whether it is up at the start. Default: true.
    #[serde(default = "yes")]
    pub up: bool,
    /// Changes while it runs, in the order of their times.
    #[serde(default)]
    pub change: Vec<Change>,
}

/// Values of the other direction of a link; what it does not name is as in the first.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Back {
    /// Rate.
    #[serde(default)]
    pub rate: Option<Human<Rate>>,
    /// One-way propagation delay.
    #[serde(default)]
    pub delay: Option<Human<Duration>>,
    /// Limit of the queue.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// Probability that a packet is lost on the wire, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
}

/// Packets held back while later ones pass.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub probability: f64,
    /// For how long.
    pub delay: Human<Duration>,
}

/// A change of a link at some time; what it does not name stays.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Human<Duration>,
    /// New rate.
    #[serde(default)]
    pub rate: Option<Human<Rate>>,
    /// New one-way delay.
    #[serde(default)]
    pub delay: Option<Human<Duration>>,
    /// New loss probability, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
    /// Up or down.
    #[serde(default)]
    pub up: Option<bool>,
}

/// Limit of what waits: packets (`"144p"`), a size (`"90kB"`) or a multiple of the link's own
/// bandwidth-delay product, rate × 2 · delay (`"1.5bdp"`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Queue {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Size(Bytes),
    /// So many times rate × 2 · delay.
    Bdp(f64),
}

impl Default for Queue {
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

impl FromStr for Queue {
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

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n}p"),
            Self::Size(bytes) => Human(*bytes).fmt(f),
            Self::Bdp(x) => write!(f, "{x}bdp"),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "queue".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Packets, a size, or a multiple of rate × 2 · delay.",
            "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*([pP]|[bB][dD][pP]|[kKmMgG]?i?[bB])\s*$",
            "examples": ["144p", "1.5bdp", "90kB"],
        })
    }
}

fn yes() -> bool {
    true
}

fn ethernet() -> u32 {
    1500
}
