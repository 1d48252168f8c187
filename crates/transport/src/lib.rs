//! Floor 1: one TCP over any number of paths, as a pure state machine.

pub mod about;
pub mod bottleneck;
pub mod cc;
pub mod conn;
pub mod engine;
pub mod external;
pub mod facts;
pub mod flow;
pub mod loss;
pub mod path;
pub mod path_map;
pub mod payload;
pub mod ranges;
pub mod recv;
pub mod sched;
pub mod segment;
pub mod windowed;

pub use about::{About, Registry};
pub use cc::CcConfig;
pub use conn::config::ConnectionConfig;
pub use conn::connection::{CloseReason, Connection, Event, Ports, State};
pub use conn::record::{DropReason, Observation, Record, RecordFilter};
pub use conn::stats::ConnectionStats;
pub use engine::config::PathConfig;
pub use engine::stats::PathStats;
pub use external::External;
pub use facts::{ConfigError, KnownPath};
pub use loss::LossConfig;
pub use payload::{Pattern, Payload};
pub use recv::config::AckConfig;
pub use sched::SchedulerConfig;
pub use segment::{Segment, Transmit};
