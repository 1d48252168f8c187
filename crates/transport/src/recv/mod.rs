//! The receiving half.

pub mod path_receiver;
pub mod reorder;
pub mod sack;
