//! What counts as lost.

pub mod addr;
pub mod config;
pub mod copies;
pub mod dupack;
mod episodes;
pub mod policy;
pub mod rack;
pub mod scoreboard;
pub mod smart;
pub mod virtual_queue;

pub use config::LossConfig;
