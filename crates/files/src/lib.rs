//! Floor 5: files and directories over a connection, in either direction (docs/protocol.md, "Files").
//!
//! [`send`] and [`receive`] are the two ends of a connection that the sender opened, [`serve`] and [`fetch`] those of one
//! that the receiver opened. An interrupted transfer goes on where it stopped, and nothing counts as received whose
//! SHA-256 is not that of what was sent.

mod content;
mod error;
pub mod message;
pub mod name;
mod peer;
mod receive;
mod send;
mod source;
mod step;
mod store;

pub use error::FileError;
pub use message::Verdict;
pub use receive::{fetch, receive};
pub use send::{send, serve};
pub use source::{Entry, Plan, Skipped};
pub use step::{Failed, Step, Transferred};
pub use store::Store;

/// The port of connections that carry files.
pub const PORT: u16 = 4826;
