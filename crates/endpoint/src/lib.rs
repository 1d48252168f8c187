//! Floor 2: all connections of one host as one pure state machine, and the loop that drains it.
//!
//! A driver gives an [`Endpoint`] what arrives as [`Input`], calls [`pump()`] with its [`Outlet`],
//! takes the events, and comes back at the instant the pump named.

mod beside;
mod config;
mod cover;
mod demux;
mod endpoint;
mod error;
pub mod frame;
pub mod inner;
mod input;
mod isn;
mod known;
mod lane;
mod looks;
mod meter;
mod news;
mod outlet;
pub mod packet;
mod paths;
mod pump;
mod reset;
mod security;
mod slots;
mod stats;
mod unserved;

pub use config::{EndpointConfig, ListenConfig};
pub use demux::Trail;
pub use endpoint::{Answer, Endpoint, Event, Incoming};
pub use error::OpenError;
pub use input::Input;
pub use known::PathName;
pub use lane::{LaneConfig, LaneReport, NotSent, PacketClass};
pub use outlet::Outlet;
pub use paths::Locators;
pub use pump::pump;
pub use security::{
    HipRecord, LocalInfo, PathLoad, PathReport, PeerEvent, PeerFailure, Reach, SecurityConfig, SecurityStats,
    is_public,
};
pub use slots::ConnectionHandle;
pub use stats::EndpointStats;
