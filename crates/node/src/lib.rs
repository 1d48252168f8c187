//! Floor 4: the real driver. Sockets, the TUN device and the OS clock live here and nowhere below.
//!
//! A [`Node`] is an endpoint with a task that drives it; a [`Stream`] is one of its connections.

pub mod addresses;
mod alarm;
mod batches;
mod buffers;
pub mod bulk;
mod bypass;
mod carrier;
mod choice;
pub mod clock;
mod driver;
pub mod events;
mod gateway;
mod hashed;
mod host_sockets;
mod incoming;
pub mod inquiry;
mod moderation;
mod native;
mod node;
pub mod owner;
mod packets;
mod pool;
mod sha256;
mod shaper;
mod shared;
mod sizes;
mod sockets;
mod stream;
mod tun;
mod watched;
mod wishes;

pub use bypass::Bypass;
pub use carrier::Carrier;
pub use choice::{Choice, LiveChoice};
pub use clock::Clock;
pub use gateway::{Exclude, Gateway, GatewayConfig, GatewayStats};
pub use hashed::Hashed;
pub use host_sockets::HostSockets;
pub use incoming::{Incoming, Interceptor};
pub use node::{AssociateError, Listener, Node};
pub use packets::PacketLane;
pub use sha256::{Sha256, hex};
pub use sockets::{UdpPath, UdpSockets};
pub use stream::{Stream, StreamError, StreamStats};
pub use tun::{Tun, TunConfig};
pub use wishes::KeepAlive;
