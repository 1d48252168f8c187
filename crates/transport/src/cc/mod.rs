//! Congestion control.

pub mod config;
pub mod controller;
pub mod hystart;
pub mod newreno;
pub mod per_path;

pub use config::CcConfig;
pub use newreno::NewRenoConfig;
