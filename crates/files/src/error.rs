//! Why files were not transferred.

use std::io;
use std::path::PathBuf;

use polypath_node::StreamError;
use thiserror::Error;

use crate::message::VERSION;
use crate::name::shown;

/// Why a transfer ended early. A single file that fails is a [`Step::Failed`](crate::Step::Failed).
#[derive(Debug, Error)]
pub enum FileError {
    /// A file could not be read or written.
    #[error("{}: {source}", shown(&path.to_string_lossy()))]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The peer ended in the middle.
    #[error("the peer ended in the middle of the transfer")]
    Cut,
    /// The peer does something else than it should.
    #[error("the peer does not speak our protocol: {0}")]
    Protocol(&'static str),
    /// The peer has another version of the protocol.
    #[error(
        "the peer speaks version {theirs} of the file protocol, this end {VERSION}: update {}",
        if *.theirs < VERSION { "the peer" } else { "this end" }
    )]
    Version {
        /// Its version.
        theirs: u8,
    },
    /// The peer sends where we send, or receives where we do.
    #[error("the peer {}", if *.sends { "does not take files: it offers some" } else { "offers no files: it takes some" })]
    Direction {
        /// Whether the peer sends.
        sends: bool,
    },
}

impl FileError {
    /// Whether another attempt, over a new connection, may succeed.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Cut)
    }
}
