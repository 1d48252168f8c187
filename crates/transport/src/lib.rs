//! Floor 1: one TCP over any number of paths, as a pure state machine.

#![warn(unreachable_pub)]

mod about;
mod bottleneck;
pub mod cc;
mod conn;
mod engine;
mod external;
pub mod facts;
pub mod flow;
mod loss;
mod path;
pub mod path_map;
mod payload;
mod ranges;
mod recv;
pub mod sched;
mod segment;
mod windowed;

pub use about::{About, Registry};
pub use bottleneck::DetectionConfig;
pub use cc::CcConfig;
pub use conn::config::{AckReturn, ConnectionConfig};
pub use conn::connection::{CloseReason, Connection, Event, Ports, State};
pub use conn::record::{DropReason, Observation, Record, RecordFilter};
pub use conn::relaying::Probes;
pub use conn::stats::ConnectionStats;
pub use engine::config::{PathConfig, Segmentation, TimeoutTakes};
pub use engine::stats::PathStats;
pub use external::External;
pub use facts::{Beside, ConfigError, FirstFlight, KnownPath, UnderWay};
pub use loss::{DupackConfig, LossConfig, ThresholdConfig};
pub use path::knowledge::KnowledgeConfig;
pub use payload::{Pattern, Payload};
pub use recv::blocking::Blocking;
pub use recv::config::AckConfig;
pub use sched::SchedulerConfig;
pub use segment::{Segment, Transmit};
