//! What connections carry.

pub mod stream;
