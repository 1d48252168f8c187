//! The connection: glue between sender, receiver and their policies.

mod ack;
pub mod config;
pub mod connection;
mod copies;
mod handshake;
mod heartbeat;
mod input;
mod next;
mod observe;
mod output;
mod receiver;
pub mod record;
mod sample;
mod sender;
pub mod stats;
mod timeouts;
mod timers;
mod verdicts;
