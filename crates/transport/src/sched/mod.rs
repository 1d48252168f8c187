//! Which path the next segment takes.

pub(crate) mod blest;
pub(crate) mod config;
pub(crate) mod duplicate;
pub(crate) mod earliest_arrival;
pub(crate) mod earliest_completion;
pub(crate) mod ecf;
pub(crate) mod min_rtt;
pub(crate) mod round_robin;
pub(crate) mod scheduler;

pub use config::{SchedulerConfig, SchedulerMaker};
pub use duplicate::DuplicateConfig;
pub use scheduler::{Choice, Scheduler, has_others, is_open, next_opening};
