//! Floor 1: one direction of a link. A queue with its discipline, a server of some rate or one that follows a
//! trace, a wire with a delay, and everything that can go wrong on it.
//!
//! [`Hop`] is driven by `now` and knows nothing of the rest: the simulator and the real-time emulator use the
//! same value.

mod admit;
mod aqm;
mod codel;
mod config;
mod discipline;
mod error;
mod fair_queue;
mod feed;
mod fifo;
mod fq_codel;
mod hop;
mod limit;
mod packet;
#[cfg(test)]
mod properties;
mod red;
mod schedule;
mod server;
mod stats;
mod store;
#[cfg(test)]
mod tests;
pub mod trace;

pub use codel::CodelConfig;
pub use config::{Change, HopConfig, Step};
pub use discipline::Discipline;
pub use error::HopError;
pub use fair_queue::FairQueue;
pub use fq_codel::FqCodelConfig;
pub use hop::Hop;
pub use limit::QueueLimit;
pub use packet::{Departure, Fate, Label};
pub use red::RedConfig;
pub use stats::{Drop, HopStats};
pub use trace::LinkTrace;
