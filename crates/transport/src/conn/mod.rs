//! The connection: glue between sender, receiver and their policies.

pub mod config;
pub mod connection;
pub mod record;
pub mod stats;
