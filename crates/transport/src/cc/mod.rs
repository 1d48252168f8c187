//! Congestion control.

pub mod config;
pub mod controller;
pub mod fast;
pub mod fast_one_window;
pub mod hystart;
pub mod law;
pub mod mhip_simple;
pub mod mhip_two_level;
pub mod newreno;
pub mod one_window;
pub mod paced;
pub mod per_path;
pub mod rm_tcp;
pub mod window;

pub use config::CcConfig;
pub use fast::FastConfig;
pub use law::Env;
pub use mhip_simple::MhipSimpleConfig;
pub use newreno::NewRenoConfig;
pub use rm_tcp::RmTcpConfig;
pub use window::SlowStart;
