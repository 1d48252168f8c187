//! The connection: a TCP byte stream over an engine.

mod changes;
mod closing;
pub(crate) mod config;
pub(crate) mod connection;
mod contents;
mod early;
mod ecn;
mod handshake;
mod heartbeat;
mod input;
mod keep_alive;
mod observe;
mod opening;
mod output;
mod pace;
mod paths;
mod receiver;
pub(crate) mod record;
pub(crate) mod relaying;
mod sender;
pub(crate) mod stats;
mod stream_map;
mod timeouts;
mod timers;
