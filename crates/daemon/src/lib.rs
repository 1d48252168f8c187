//! Floor 5: other programs' connections over all links of a host (docs/daemon.md).
//!
//! Composition only. A TCP connection that the kernel routes to the TUN device ends at our TCP there ([`polypath_node::Gateway`]);
//! its bytes travel on a connection of the association with the peer behind its destination; that peer opens the real one from
//! its own TUN device, with the same addresses and ports. What is not TCP travels as the packets that it is.

mod address;
mod answers;
mod associations;
mod backups;
pub mod config;
pub mod control;
mod daemon;
mod device;
mod exclusion;
mod far;
mod interfaces;
pub mod kill_switch;
mod lane;
mod leases;
mod metrics;
mod near;
mod netlink;
mod orphans;
mod own;
mod packets;
mod panics;
mod paths;
mod peers;
mod pool;
mod quota;
mod rate;
mod reload;
pub mod request;
mod routes;
mod seldom;
mod splice;
mod state;
mod status;
mod view;
mod volume;

pub use config::{Config, ConfigError, IdentityConfig, Place, SOCKET};
pub use daemon::{Daemon, DaemonError};
pub use interfaces::{InterfaceStatus, Use};
pub use leases::LeaseError;
pub use netlink::RouteError;
pub use packets::{PacketStatus, PathPackets, PeerPackets};
pub use paths::{PathsChange, PathsError};
pub use quota::QuotaStatus;
pub use rate::{Limit, NoRate};
pub use reload::ReloadError;
pub use status::{LaneStatus, LoadStatus, OutsideStatus, PathStatus, PeerStatus, Status};
pub use volume::{NoVolume, Volume};
