//! Congestion control.

pub mod config;
pub mod controller;
pub mod fast;
pub mod hystart;
pub mod mhip_simple;
pub mod mhip_two_level;
pub mod newreno;
pub mod one_window;
pub mod paced;
pub mod per_path;
pub mod rm_tcp;

pub use config::CcConfig;
pub use fast::FastConfig;
pub use mhip_simple::MhipSimpleConfig;
pub use newreno::{NewRenoConfig, SlowStart};
pub use rm_tcp::RmTcpConfig;
