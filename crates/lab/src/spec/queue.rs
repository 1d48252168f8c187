//! The queue before a link: its limit, and the discipline that empties it.

use std::fmt;

use polypath_hop::{CodelConfig, Discipline, FqCodelConfig, HopError, QueueLimit, RedConfig};
use polypath_wire::Duration;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::limit::Limit;
use crate::document::Key;
use crate::units::{Bytes, Human};

/// A limit alone, `"144p"`, which is drop-tail, or `{ discipline = "codel", … }`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Queue {
    /// First in, first out, up to a limit.
    Limit(Limit),
    /// Under a discipline.
    Managed(Managed),
}

/// A queue under a discipline. What is left out has the value of the discipline's RFC or paper.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Managed {
    /// Which discipline.
    pub discipline: Name,
    /// How much may wait, whatever the discipline. Default: 1000 packets; of `fq_codel` 10240; of `drop_tail` 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// `codel`, `fq_codel`: acceptable standing delay. Default: 5ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Human<Duration>>,
    /// `codel`, `fq_codel`: time in which the delay must fall below the target once. Default: 100ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Human<Duration>>,
    /// `fq_codel`: number of queues. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// `fq_codel`: what a queue sends in its turn. Default: 1514B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Human<Bytes>>,
    /// `red`: average queue from which packets are dropped. Default: 5p.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Limit>,
    /// `red`: average queue at which they are dropped with `probability`. Default: 15p.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Limit>,
    /// `red`: share of packets dropped at `max`, above 0 up to 1. Default: 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// `red`: weight of the present queue in the average, above 0 up to 1. Default: 0.002.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// `red`: from `max` to twice `max` the share rises to 1, instead of at once. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gentle: Option<bool>,
}

/// A queue discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// First in, first out.
    DropTail,
    /// Random Early Detection, gentle (Floyd and Jacobson, 1993).
    Red,
    /// CoDel (RFC 8289).
    Codel,
    /// FQ-CoDel (RFC 8290).
    FqCodel,
}

impl Default for Queue {
    fn default() -> Self {
        Self::Limit(Limit::default())
    }
}

impl Queue {
    /// The limit at a link whose bandwidth-delay product is `bdp` bytes.
    pub fn limit(&self, bdp: u64) -> QueueLimit {
        let limit = match self {
            Self::Limit(limit) => *limit,
            Self::Managed(managed) => managed.limit.unwrap_or_else(|| managed.discipline.usual_limit()),
        };
        limit.resolve(bdp)
    }

    /// The discipline at a link whose bandwidth-delay product is `bdp` bytes.
    pub fn discipline(&self, bdp: u64) -> Discipline {
        let Self::Managed(managed) = self else { return Discipline::DropTail };
        match managed.discipline {
            Name::DropTail => Discipline::DropTail,
            Name::Red => Discipline::Red(managed.red(bdp)),
            Name::Codel => Discipline::Codel(managed.codel()),
            Name::FqCodel => Discipline::FqCodel(managed.fq_codel()),
        }
    }

    /// No key of another discipline, and values that the discipline accepts.
    pub(super) fn check(&self, bdp: u64, at: &[Key]) -> Result<(), Problem> {
        let Self::Managed(managed) = self else { return Ok(()) };
        let below = |key: &str| at.iter().cloned().chain([Key::from(key)]).collect();
        let (name, keys) = (managed.discipline.text(), managed.discipline.keys());
        if let Some(key) = managed.given().into_iter().find(|key| !keys.contains(key)) {
            let problem = Problem::new(below(key), format!("no key of discipline \"{name}\""));
            let all = ["discipline", "limit"].iter().chain(keys).copied().collect::<Vec<_>>().join(", ");
            return Err(Problem { on_key: true, ..problem.help(format!("it has: {all}")) });
        }
        self.discipline(bdp).check().map_err(|HopError { field, need, got }| {
            let key = field.rsplit('.').next().unwrap_or(field);
            if field == "red.max" {
                let [min, max] =
                    [managed.min.unwrap_or(Limit::Packets(5)), managed.max.unwrap_or(Limit::Packets(15))];
                return Problem::new(below(key), format!("\"{max}\" is not above min = \"{min}\""))
                    .help("write for example min = \"5p\", max = \"15p\": both in packets or both in bytes");
            }
            Problem::new(below(key), format!("{got} is not possible")).help(format!("write {need}"))
        })
    }
}

impl Managed {
    /// The keys that are given, beside those of every discipline.
    fn given(&self) -> Vec<&'static str> {
        let given = [
            ("target", self.target.is_some()),
            ("interval", self.interval.is_some()),
            ("flows", self.flows.is_some()),
            ("quantum", self.quantum.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("probability", self.probability.is_some()),
            ("weight", self.weight.is_some()),
            ("gentle", self.gentle.is_some()),
        ];
        given.into_iter().filter(|(_, is)| *is).map(|(key, _)| key).collect()
    }

    fn codel(&self) -> CodelConfig {
        let usual = CodelConfig::default();
        CodelConfig {
            target: self.target.map_or(usual.target, |t| t.0),
            interval: self.interval.map_or(usual.interval, |t| t.0),
            ..usual
        }
    }

    fn fq_codel(&self) -> FqCodelConfig {
        let usual = FqCodelConfig::default();
        FqCodelConfig {
            codel: self.codel(),
            flows: self.flows.unwrap_or(usual.flows),
            quantum: self.quantum.map_or(usual.quantum, |q| u32::try_from(q.0.0).unwrap_or(u32::MAX)),
        }
    }

    fn red(&self, bdp: u64) -> RedConfig {
        let usual = RedConfig::default();
        RedConfig {
            min: self.min.map_or(usual.min, |limit| limit.resolve(bdp)),
            max: self.max.map_or(usual.max, |limit| limit.resolve(bdp)),
            probability: self.probability.unwrap_or(usual.probability),
            weight: self.weight.unwrap_or(usual.weight),
            gentle: self.gentle.unwrap_or(usual.gentle),
            ..usual
        }
    }
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::DropTail => "drop_tail",
            Self::Red => "red",
            Self::Codel => "codel",
            Self::FqCodel => "fq_codel",
        }
    }

    /// Keys beside `discipline` and `limit`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DropTail => &[],
            Self::Red => &["min", "max", "probability", "weight", "gentle"],
            Self::Codel => &["target", "interval"],
            Self::FqCodel => &["target", "interval", "flows", "quantum"],
        }
    }

    fn usual_limit(self) -> Limit {
        match self {
            Self::DropTail => Limit::default(),
            Self::Red | Self::Codel => Limit::Packets(1_000),
            Self::FqCodel => Limit::Packets(10_240), // RFC 8290 §5.2.3
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => limit.fmt(f),
            Self::Managed(managed) => f.write_str(managed.discipline.text()),
        }
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Form)
    }
}

struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = Queue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit or a table with a discipline")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Queue, E> {
        text.parse().map(Queue::Limit).map_err(E::custom)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Queue, A::Error> {
        Managed::deserialize(MapAccessDeserializer::new(map)).map(Queue::Managed)
    }
}
