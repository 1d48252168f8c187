//! Which path the next segment takes.

use serde::{Deserialize, Serialize};

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
