//! The rate of a link: constant, or as a recording has it.

use std::fmt;

use polypath_hop::LinkTrace;
use polypath_wire::Rate;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::error::Problem;
use crate::document::Key;
use crate::place::Place;
use crate::units::Human;

/// `"8Mbit/s"`, or `{ trace = "lte.trace" }`.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkRate {
    /// Always the same.
    Constant(Human<Rate>),
    /// Packets leave at the opportunities of a file in mahimahi's format.
    Trace(TraceFile),
}

/// A file of delivery opportunities.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file, beside the spec.
    pub trace: String,
    /// What it says, once it is read.
    #[serde(skip)]
    pub content: Option<LinkTrace>,
}

impl LinkRate {
    /// The rate, of a trace its mean; zero before it is read.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(rate) => rate.0,
            Self::Trace(file) => file.content.as_ref().map_or(Rate(0), LinkTrace::mean_rate),
        }
    }

    /// The opportunities that it follows, if it does.
    pub fn trace(&self) -> Option<&LinkTrace> {
        match self {
            Self::Constant(_) => None,
            Self::Trace(file) => file.content.as_ref(),
        }
    }

    /// Reads its file, which lies at `place`. `at` is where it is named.
    pub(super) fn read(&mut self, place: &Place, at: &[Key]) -> Result<(), Problem> {
        let Self::Trace(file) = self else { return Ok(()) };
        let path = place.shown(&file.trace);
        let problem =
            |message: String| Problem::new(at.iter().cloned().chain([Key::from("trace")]).collect(), message);
        let text = place.read(&file.trace).map_err(|e| {
            problem(format!("cannot read {path}: {e}"))
                .help("name a file by its way from the directory of this spec")
        })?;
        file.content = Some(LinkTrace::parse(&text).map_err(|e| {
            problem(format!("{path}, {e}")).help(
                "a line is the millisecond at which 1500 bytes may leave, none earlier than the one above it",
            )
        })?);
        Ok(())
    }
}

impl Serialize for LinkRate {
    /// Of a trace with a hash of what it says, which decides what a run is.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let file = match self {
            Self::Constant(rate) => return rate.serialize(s),
            Self::Trace(file) => file,
        };
        let content = file.content.as_ref().map(LinkTrace::to_string).unwrap_or_default();
        let mut map = s.serialize_map(Some(2))?;
        map.serialize_entry("trace", &file.trace)?;
        let hash = Sha256::digest(content);
        map.serialize_entry("sha256", &hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for LinkRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Form)
    }
}

struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = LinkRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate such as \"8Mbit/s\"")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<LinkRate, E> {
        text.parse().map(LinkRate::Constant).map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<LinkRate, E> {
        self.visit_str(&n.to_string())
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<LinkRate, E> {
        self.visit_str(&n.to_string())
    }
    fn visit_f64<E: de::Error>(self, n: f64) -> Result<LinkRate, E> {
        self.visit_str(&n.to_string())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LinkRate, A::Error> {
        TraceFile::deserialize(MapAccessDeserializer::new(map)).map(LinkRate::Trace)
    }
}
