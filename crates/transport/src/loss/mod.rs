//! What counts as lost.

pub mod config;
pub mod dupack;
pub mod policy;
pub mod rack;
pub mod scoreboard;
pub mod virtual_queue;

pub use config::LossConfig;
