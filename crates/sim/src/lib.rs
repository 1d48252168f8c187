//! Floor 3: a deterministic packet-level simulator. Virtual time, seeded chance, no clock.
//!
//! [`World`] builds and runs; [`Hop`] is one direction of a link and knows nothing of the rest, so
//! that a real-time emulator can drive the same value.

mod bytes;
mod clock;
mod events;
pub mod hop;
mod host;
mod jitter;
mod net;
mod packet;
mod pcapng;
mod reordering;
mod source;
mod tap;
mod topology;
mod trace;
mod traffic;
mod world;

#[cfg(test)]
mod testing;

pub use clock::ClockConfig;
pub use hop::{Change, Departure, Drop, Fate, Hop, HopConfig, HopError, HopStats, QueueLimit, Step};
pub use host::{Headers, HostConfig, identity};
pub use reordering::Reordering;
pub use source::{SourceId, SourceReport};
pub use topology::{HopId, LinkId, NodeId, Via};
pub use trace::Trace;
pub use traffic::{FlowConfig, FlowId, FlowReport, Pauses, SourceConfig};
pub use world::{Path, World, WorldConfig, WorldError};
