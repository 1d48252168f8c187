//! The schedulers by name.

use serde::{Deserialize, Serialize};

use super::duplicate::Duplicate;
use super::earliest_arrival::EarliestArrival;
use super::earliest_completion::EarliestCompletion;
use super::min_rtt::MinRtt;
use super::round_robin::RoundRobin;
use super::scheduler::Scheduler;

/// Which scheduler, with its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// Each path in turn that has room.
    RoundRobin,
    /// The path with the smallest smoothed round trip time that has room.
    MinRtt,
    /// The path on which the segment is expected to arrive first.
    #[default]
    EarliestArrival,
    /// The same, unless waiting for a quicker path, whose window is full, delivers more: for receive buffers that
    /// do not hold what all paths have under way.
    EarliestCompletion,
    /// A copy on every path (paper 003, §2.1). With `lost_only` new data takes each path in turn and what
    /// is sent again takes all.
    Duplicate {
        /// Only what is sent again.
        #[serde(default)]
        lost_only: bool,
    },
}

impl SchedulerConfig {
    /// The scheduler.
    pub fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::<RoundRobin>::default(),
            Self::MinRtt => Box::<MinRtt>::default(),
            Self::EarliestArrival => Box::<EarliestArrival>::default(),
            Self::EarliestCompletion => Box::<EarliestCompletion>::default(),
            Self::Duplicate { lost_only } => Box::new(Duplicate::new(*lost_only)),
        }
    }
}
