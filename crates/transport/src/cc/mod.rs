//! Congestion control.

pub mod bbr;
pub mod config;
pub mod controller;
pub mod coupled;
pub mod cubic;
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
pub mod polypath;
pub mod rm_tcp;
pub mod window;
pub mod wvegas;

pub use bbr::BbrConfig;
pub use config::{CcConfig, ControllerMaker};
pub use cubic::CubicConfig;
pub use fast::FastConfig;
pub use law::Env;
pub use mhip_simple::MhipSimpleConfig;
pub use newreno::NewRenoConfig;
pub use polypath::{BaseLaw, PolypathConfig};
pub use rm_tcp::RmTcpConfig;
pub use window::SlowStart;
pub use wvegas::WVegasConfig;
