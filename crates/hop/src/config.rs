//! Parameters of a hop and what may change while it runs.

use polypath_wire::{Duration, Instant, Rate, millis};
use serde::{Deserialize, Serialize};

use crate::discipline::Discipline;
use crate::error::{HopError, check};
use crate::limit::QueueLimit;
use crate::trace::LinkTrace;

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
