//! What counts as lost.

pub mod addr;
pub mod config;
pub mod dupack;
mod episodes;
pub mod head_dupacks;
pub mod policy;
pub mod rack;
pub mod virtual_queue;

pub use config::LossConfig;
