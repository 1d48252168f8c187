//! The connection: glue between sender, receiver and their policies.

pub mod config;
pub mod connection;
mod handshake;
mod heartbeat;
mod input;
mod observe;
mod output;
mod receiver;
pub mod record;
mod sender;
pub mod stats;
mod timeouts;
mod timers;
