//! Floor 5: files and directories over a connection, in either direction (docs/protocol.md, "Files").
//!
//! The sender opens a connection and calls [`send`], the receiver accepts it and calls [`receive`]. Or the receiver
//! opens it and calls [`fetch`], and the sender calls [`serve`]. An interrupted transfer goes on where it stopped. A file
//! counts as received only if it has the BLAKE3 that the sender gives.

mod content;
mod digest;
mod error;
pub mod message;
pub mod name;
mod peer;
mod receive;
mod send;
mod source;
mod step;
mod store;

pub use digest::Digest;
pub use error::FileError;
pub use message::{Verdict, Work};
pub use receive::{fetch, receive};
pub use send::{SMALL, send, serve};
pub use source::{Entry, Plan, Skipped};
pub use step::{Failed, Step, Transferred};
pub use store::Store;

/// The port of connections that carry files.
pub const PORT: u16 = 4826;
