//! Parameters of a hop and what may change while it runs.

use polypath_wire::{Duration, Instant, Rate, millis};
use serde::{Deserialize, Serialize};

use crate::codel::CodelConfig;
use crate::fq_codel::FqCodelConfig;
use crate::red::RedConfig;
use crate::trace::LinkTrace;

pub use crate::limit::QueueLimit;

/// Parameters of one hop: one direction of a link with the queue before it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HopConfig {
    /// Rate, bit/s; at least 1. With a `trace` it serves nobody.
    pub rate: Rate,
    /// When packets may leave, instead of a rate.
    pub trace: Option<LinkTrace>,
    /// Propagation delay, ms.
    #[serde(with = "millis")]
    pub delay: Duration,
    /// What may wait before a packet is dropped, whatever the discipline.
    pub queue: QueueLimit,
    /// What leaves next, and what is dropped or marked before the limit is reached.
    pub discipline: Discipline,
    /// Probability that a packet is lost on the wire, after it was queued and served; 0 to 1.
    pub loss: f64,
    /// Probability that a packet arrives twice; 0 to 1.
    pub duplication: f64,
    /// Probability that a packet is held back by `reorder_delay` while later ones pass; 0 to 1.
    pub reordering: f64,
    /// How long a reordered packet is held back, ms.
    #[serde(with = "millis")]
    pub reorder_delay: Duration,
    /// Probability that a packet arrives with flipped bits; 0 to 1.
    pub corruption: f64,
    /// Largest packet, bytes; larger ones are dropped. None is unlimited.
    pub mtu: Option<u32>,
    /// Whether it is up at the start.
    pub up: bool,
    /// Changes while it runs, in the order of their times.
    pub schedule: Vec<Step>,
}

impl Default for HopConfig {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(100),
            trace: None,
            delay: Duration::from_millis(10),
            queue: QueueLimit::Packets(100),
            discipline: Discipline::DropTail,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_delay: Duration::from_millis(1),
            corruption: 0.0,
            mtu: None,
            up: true,
            schedule: Vec::new(),
        }
    }
}

/// What becomes of packets that wait.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "discipline", rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; a packet that finds the queue full is dropped.
    #[default]
    DropTail,
    /// Random Early Detection: a packet is judged when it comes.
    Red(RedConfig),
    /// Controlled Delay (RFC 8289): a packet is judged when it leaves.
    Codel(CodelConfig),
    /// Flows in turns, each under CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
}

/// A change at its time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When, nanoseconds since the start of the run.
    pub at: Instant,
    /// What.
    pub change: Change,
}

/// What may change while a hop runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// New rate, also for the rest of the packet in service and those that wait.
    Rate(Rate),
    /// New propagation delay for every packet that has not left the server yet; packets never
    /// overtake because of it.
    Delay(#[serde(with = "millis")] Duration),
    /// New loss probability for packets that come from now on.
    Loss(f64),
    /// Down: what waits or is on the wire is lost, and so is what comes.
    Down,
    /// Up again, empty.
    Up,
}

/// A hop that cannot be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("hop: {field} = {got}: {need}")]
pub struct HopError {
    /// The field.
    pub field: &'static str,
    /// What is allowed.
    pub need: &'static str,
    /// What was given.
    pub got: String,
}

impl HopConfig {
    /// Checks the ranges of all fields and the order of the schedule.
    pub fn validate(&self) -> Result<(), HopError> {
        let probability = |field, p: f64| check((0.0..=1.0).contains(&p), field, "a probability, 0 to 1", p);
        let rate = |field, rate: Rate| check(rate.0 > 0, field, "at least 1 bit/s", rate.0);
        rate("rate", self.rate)?;
        probability("loss", self.loss)?;
        probability("duplication", self.duplication)?;
        probability("reordering", self.reordering)?;
        probability("corruption", self.corruption)?;
        check(self.mtu != Some(0), "mtu", "at least 1 byte", 0)?;
        self.discipline.check()?;
        for step in &self.schedule {
            match step.change {
                Change::Rate(r) => {
                    rate("schedule.rate", r)?;
                    check(self.trace.is_none(), "schedule.rate", "none beside a trace", r.0)?;
                }
                Change::Loss(p) => probability("schedule.loss", p)?,
                Change::Delay(_) | Change::Down | Change::Up => {}
            }
        }
        for pair in self.schedule.windows(2) {
            check(pair[0].at <= pair[1].at, "schedule.at", "not before the step above it", pair[1].at.0)?;
        }
        Ok(())
    }
}

impl Discipline {
    /// Checks the ranges of its parameters.
    pub fn check(&self) -> Result<(), HopError> {
        match self {
            Self::DropTail => Ok(()),
            Self::Red(config) => config.validate(),
            Self::Codel(config) => config.validate(),
            Self::FqCodel(config) => config.validate(),
        }
    }
}

impl RedConfig {
    fn validate(&self) -> Result<(), HopError> {
        let share = |field, p: f64| check(p > 0.0 && p <= 1.0, field, "above 0, at most 1", p);
        share("red.probability", self.probability)?;
        share("red.weight", self.weight)?;
        check(self.packet > 0, "red.packet", "at least 1 byte", 0)?;
        let one_unit = std::mem::discriminant(&self.min) == std::mem::discriminant(&self.max);
        check(one_unit, "red.max", "in the unit of min: packets or bytes", format!("{:?}", self.max))?;
        check(self.max.number() > self.min.number(), "red.max", "more than min", self.max.number())
    }
}

impl CodelConfig {
    fn validate(&self) -> Result<(), HopError> {
        check(self.target > Duration::ZERO, "codel.target", "more than no time", 0)?;
        check(
            self.interval > self.target,
            "codel.interval",
            "longer than target",
            self.interval.as_millis_f64(),
        )
    }
}

impl FqCodelConfig {
    fn validate(&self) -> Result<(), HopError> {
        check((1..=65_536).contains(&self.flows), "fq_codel.flows", "1 to 65536 queues", self.flows)?;
        check(self.quantum > 0, "fq_codel.quantum", "at least 1 byte", 0)?;
        self.codel.validate()
    }
}

fn check(ok: bool, field: &'static str, need: &'static str, got: impl ToString) -> Result<(), HopError> {
    if ok { Ok(()) } else { Err(HopError { field, need, got: got.to_string() }) }
}
