//! What leaves on which path, and what became of it: the part of a connection that knows nothing of its cargo.
//!
//! An owner (a TCP byte stream in `conn/`, a flow of packets in `flow/packet.rs`) asks the engine which path takes the
//! next parcel ([`Engine::pick`]), says that it left there ([`send`](Engine::send)), and
//! what acknowledgments tell of it by path and number. The engine estimates, controls, judges losses and keeps the
//! timers; what it finds out comes back as values ([`Fact`](facts::Fact)).

pub(crate) mod answers;
pub(crate) mod aside;
pub(crate) mod config;
mod credit;
pub(crate) mod facts;
pub(crate) mod lane;
mod machine;
mod marked;
mod marks;
pub(crate) mod numbers;
pub(crate) mod observers;
mod offload;
mod paths;
mod piece;
mod queues;
mod reinject;
mod rules;
mod send;
mod silence;
mod spill;
pub(crate) mod stats;
pub(crate) mod timeouts;
pub(crate) mod timers;
mod verdicts;
mod views;

pub(crate) use machine::Engine;
