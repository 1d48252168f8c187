//! Which path the next segment takes.

pub mod blest;
pub mod config;
pub mod duplicate;
pub mod earliest_arrival;
pub mod earliest_completion;
pub mod ecf;
pub mod min_rtt;
pub mod round_robin;
pub mod scheduler;

pub use config::{SchedulerConfig, SchedulerMaker};
