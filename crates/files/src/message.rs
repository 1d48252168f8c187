//! The messages of a file transfer as bytes (docs/protocol.md, "Files").
//!
//! `parse` reads one message from the front of the bytes that have arrived, and returns its length with it.

mod form;

use bytes::BytesMut;

use crate::digest::Digest;

/// The first bytes of either direction: the protocol and its version.
pub const MAGIC: &[u8; 8] = b"PPFILE4\n";
/// The version.
pub const VERSION: u8 = 4;
/// Longest path of an offer, bytes.
pub const MAX_PATH: usize = 4096;
/// Longest reason of a verdict, bytes.
pub const MAX_REASON: usize = 255;

/// Why the front of some bytes is no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotYet {
    /// It is the beginning of one.
    Short,
    /// It never becomes one.
    Malformed(&'static str),
    /// The greeting of another version of the protocol.
    Version(u8),
}

/// A message with a form on the wire.
pub trait Message: Sized {
    /// The message at the front of `bytes`, and its length.
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet>;
    /// Appends it to `out`.
    fn emit(&self, out: &mut BytesMut);
}

/// What the end that opens the connection wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It sends files.
    Send,
    /// It asks for the files that the other end offers.
    Fetch,
}

/// The answer to a [`Role`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The other role is mine.
    Yes,
    /// I do not do that.
    No,
}

/// What a file is, before its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its name, behind the directories it is in: `photos/2024/a.jpg`. Not checked.
    pub path: String,
    /// A directory, which has no bytes.
    pub directory: bool,
    /// Length, bytes; `None` if it is not known before the end.
    pub size: Option<u64>,
    /// The sender waits for a [`Want`](Reply::Want) before the bytes of this file.
    pub asks: bool,
    /// Permission bits.
    pub mode: u16,
    /// Time of the last change.
    pub modified: Modified,
}

/// A point in time since 1970, as files have it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Modified {
    /// Whole seconds; negative before.
    pub seconds: i64,
    /// Nanoseconds above them, below 10⁹.
    pub nanos: u32,
}

/// What a sender says between the bytes of files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// One more file. Offers are numbered from 0.
    Offer(Offer),
    /// The bytes from this offset on follow, of the first file offered that had no start yet.
    Start(u64),
    /// The sender looks at its files; said about once a second, so that the receiver does not take it for dead.
    Working,
}

/// What a file's bytes are cut into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// That many bytes follow; not 0.
    Data(u32),
    /// The file is complete, and this is its digest, from its first byte on.
    End(Digest),
    /// There is no more of this file: the sender could not read it, or the receiver did not want it.
    Abandoned,
    /// The sender waits for more to read; said about once a second.
    Working,
}

/// What a receiver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// How many bytes of a file the receiver has already, and their digest.
    Want {
        /// The number of the offer.
        index: u32,
        /// How many.
        have: u64,
        /// Their digest.
        digest: Digest,
    },
    /// What became of a file.
    Verdict {
        /// The number of the offer.
        index: u32,
        /// What.
        verdict: Verdict,
        /// The error of the system, if there is one.
        reason: String,
    },
    /// The receiver works on a file; said about once a second, so that the sender does not take it for dead.
    Working(Work),
}

/// What an end does while no bytes move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Work {
    /// It looks at what is there of a file.
    Checking,
    /// It brings a file to the disk.
    Storing,
    /// An earlier transfer of the same file is not over there.
    Waiting,
    /// It waits for more to read.
    Reading,
}

/// What becomes of a file at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is stored, whole.
    Stored,
    /// Its digest is not the one that the sender says.
    Changed,
    /// The disk is full.
    NoSpace,
    /// Its name is not accepted.
    Name,
    /// The system refused.
    Refused,
    /// The sender gave it up.
    Abandoned,
}
