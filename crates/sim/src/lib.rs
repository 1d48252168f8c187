//! Floor 3: a deterministic packet-level simulator. Virtual time, seeded chance, no clock.
//!
//! [`World`] builds and runs. Its links are pairs of `polypath-hop`'s hops, which the emulated links of real hosts are, too.

mod bytes;
mod clock;
mod delay;
mod events;
mod host;
mod jitter;
mod net;
mod packet;
mod pcapng;
mod reordering;
mod route;
pub mod scenarios;
mod source;
mod tap;
mod topology;
mod trace;
mod traffic;
mod world;

#[cfg(test)]
mod testing;

pub use clock::ClockConfig;
pub use delay::Delays;
pub use host::{Headers, HostConfig, identity};
pub use polypath_hop::{Change, Drop, HopConfig, HopError, HopStats, QueueLimit, Step};
pub use reordering::Reordering;
pub use route::Path;
pub use source::{SourceId, SourceReport};
pub use topology::{HopId, LinkId, NodeId, Via};
pub use trace::{Trace, TraceFilter};
pub use traffic::{FlowConfig, FlowId, FlowReport, Pauses, SourceConfig};
pub use world::{World, WorldConfig, WorldError};
