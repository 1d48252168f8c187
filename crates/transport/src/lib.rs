//! Floor 1: one TCP over any number of paths, as a pure state machine.

pub mod cc;
pub mod conn;
pub mod facts;
pub mod loss;
pub mod payload;
pub mod sched;
pub mod segment;

pub use conn::config::{ConnectionConfig, PathConfig};
pub use conn::connection::{CloseReason, Connection, Event, Ports, State};
pub use conn::record::{DropReason, Observation, Record, RecordFilter};
pub use conn::stats::{ConnectionStats, PathStats};
pub use payload::{Pattern, Payload};
pub use segment::{Segment, Transmit};
