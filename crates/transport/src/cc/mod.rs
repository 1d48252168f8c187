//! Congestion control.

pub mod config;
pub mod controller;
pub mod newreno;
pub mod per_path;

pub use config::CcConfig;
pub use newreno::NewRenoConfig;
