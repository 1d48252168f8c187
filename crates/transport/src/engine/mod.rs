//! What leaves on which path, and what became of it: the part of a connection that knows nothing of its cargo.
//!
//! An owner (a TCP byte stream in `conn/`, a flow of packets in `flow/packet.rs`) asks the engine which path takes the
//! next parcel ([`Engine::pick`]), says that it left there ([`send`](Engine::send)), and
//! what acknowledgments tell of it by path and number. The engine estimates, controls, judges losses and keeps the
//! timers; what it finds out comes back as values ([`Fact`](facts::Fact)).

pub mod answers;
pub mod aside;
pub mod config;
mod credit;
pub mod facts;
pub mod lane;
mod machine;
pub mod numbers;
pub mod observers;
mod paths;
mod queues;
mod rules;
mod send;
mod silence;
pub mod stats;
pub mod timeouts;
pub mod timers;
mod verdicts;
mod views;

pub use machine::Engine;
