//! The connection: a TCP byte stream over an engine.

mod closing;
pub mod config;
pub mod connection;
mod contents;
mod early;
mod handshake;
mod heartbeat;
mod input;
mod observe;
mod output;
mod paths;
mod receiver;
pub mod record;
mod sender;
pub mod stats;
mod stream_map;
mod timeouts;
mod timers;
