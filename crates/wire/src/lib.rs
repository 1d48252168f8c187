//! Floor 0: units, deadlines and wire formats. Every format has a checked *view* over bytes and a *value*
//! with `parse`, `len` and `emit`; what we do not understand survives a round trip.

pub mod checksum;
pub mod deadlines;
mod ecn;
mod error;
pub mod esp;
pub mod hip;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod maybe_millis;
pub mod millis;
pub mod no_keys;
pub mod shim;
pub mod tcp;
pub mod udp;
pub mod units;

pub use checksum::Checksum;
pub use ecn::Ecn;
pub use error::WireError;
pub use units::{Duration, Instant, PathId, PathSet, Rate, Seed, Seq};
