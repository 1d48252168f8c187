//! The receiving half.

pub(crate) mod ack_clock;
pub(crate) mod blocking;
pub(crate) mod config;
pub(crate) mod path_receiver;
pub(crate) mod reorder;
pub(crate) mod sack;
