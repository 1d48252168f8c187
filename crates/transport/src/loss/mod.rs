//! What counts as lost.

pub(crate) mod addr;
pub(crate) mod config;
mod counting;
pub(crate) mod dupack;
mod episodes;
pub(crate) mod head_dupacks;
pub(crate) mod policy;
pub(crate) mod rack;
pub(crate) mod rule;
pub(crate) mod virtual_queue;

pub use config::LossConfig;
pub use dupack::DupackConfig;
pub use rule::ThresholdConfig;
