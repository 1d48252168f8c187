//! The receiving half.

pub mod ack_clock;
pub mod config;
pub mod path_receiver;
pub mod reorder;
pub mod sack;
