//! Floor 5: other programs' connections over all links of a host (docs/daemon.md).
//!
//! Composition only. A TCP connection that the kernel routes to the TUN device ends at our TCP there ([`polypath_node::Gateway`]);
//! its bytes travel on a connection of the association with the peer behind its destination; that peer opens the real one from
//! its own TUN device, with the same addresses and ports. What is not TCP travels as the packets that it is.

mod associations;
pub mod config;
pub mod control;
mod daemon;
mod far;
mod lane;
mod near;
mod packets;
mod peers;
mod pool;
pub mod request;
mod routes;
mod splice;
mod status;

pub use config::{Config, ConfigError};
pub use daemon::{Daemon, DaemonError};
pub use packets::{PacketStatus, PathPackets, PeerPackets};
pub use status::{LaneStatus, PathStatus, PeerStatus, Status};
