//! Congestion control.

pub(crate) mod bbr;
pub(crate) mod config;
pub(crate) mod controller;
pub(crate) mod coupled;
pub(crate) mod cubic;
pub(crate) mod fast;
pub(crate) mod fast_one_window;
pub(crate) mod hystart;
pub(crate) mod law;
pub(crate) mod mhip_simple;
pub(crate) mod mhip_two_level;
pub(crate) mod newreno;
pub(crate) mod one_window;
pub(crate) mod paced;
pub(crate) mod per_path;
pub(crate) mod polypath;
pub(crate) mod rm_tcp;
pub(crate) mod window;
pub(crate) mod wvegas;

pub use bbr::BbrConfig;
pub use config::{CcConfig, ControllerMaker};
pub use controller::{Controller, Phase, Snapshot};
pub use cubic::CubicConfig;
pub use fast::{DelaySignal, FastConfig};
pub use law::Env;
pub use mhip_simple::MhipSimpleConfig;
pub use newreno::NewRenoConfig;
pub use polypath::{BaseLaw, PolypathConfig};
pub use rm_tcp::RmTcpConfig;
pub use window::SlowStart;
pub use wvegas::WVegasConfig;
