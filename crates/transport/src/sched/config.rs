//! The schedulers by name.

use serde::{Deserialize, Serialize};

use super::earliest_arrival::EarliestArrival;
use super::min_rtt::MinRtt;
use super::round_robin::RoundRobin;
use super::scheduler::Scheduler;

/// Which scheduler, with its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// Each path in turn that has room.
    RoundRobin,
    /// The path with the smallest smoothed round trip time that has room.
    MinRtt,
    /// The path on which the segment is expected to arrive first.
    #[default]
    EarliestArrival,
}

impl SchedulerConfig {
    /// The scheduler.
    pub fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::<RoundRobin>::default(),
            Self::MinRtt => Box::<MinRtt>::default(),
            Self::EarliestArrival => Box::<EarliestArrival>::default(),
        }
    }
}
