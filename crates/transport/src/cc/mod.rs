//! Congestion control.

pub mod config;
pub mod controller;
pub mod fast;
pub mod hystart;
pub mod newreno;
pub mod one_window;
pub mod per_path;

pub use config::CcConfig;
pub use fast::FastConfig;
pub use newreno::NewRenoConfig;
