//! Progress of a transfer, to be shown.

use std::path::PathBuf;

use crate::message::{Verdict, Work};

/// A step of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A file begins.
    Begin {
        /// Its number, from 0.
        index: usize,
        /// Its path, as it can be shown.
        name: String,
        /// Bytes, if they are known.
        size: Option<u64>,
        /// How many of them the receiver has already.
        at: u64,
    },
    /// Bytes of it were sent or received.
    Bytes {
        /// How many.
        bytes: u64,
        /// All that was written to the connection or read from it, headers included.
        stream: u64,
    },
    /// An end, this or the other one, works while no bytes move: about once a second.
    Working(Work),
    /// A file grew while it was sent: what was offered is sent, the rest is not.
    Grew {
        /// Its path, as it can be shown.
        name: String,
        /// How many bytes were offered.
        bytes: u64,
    },
    /// A file was written to while it was sent: what arrives may be partly old and partly new.
    Changed {
        /// Its path, as it can be shown.
        name: String,
    },
    /// A file is stored.
    Done(Transferred),
    /// A file is not stored, and others may still be.
    Failed(Failed),
}

/// A file that is stored.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Transferred {
    /// Its number, from 0.
    #[serde(skip)]
    pub index: usize,
    /// Its path, as it can be shown.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// How much of it the receiver had already, bytes.
    pub resumed_at: u64,
    /// BLAKE3, hexadecimal; empty for a directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub blake3: String,
    /// Where it is now, at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// A file that is not stored.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Failed {
    /// Its number, from 0.
    #[serde(skip)]
    pub index: usize,
    /// Its path, as it can be shown.
    pub name: String,
    /// What kind of failure it is.
    pub verdict: Verdict,
    /// Why, in words.
    pub why: String,
}
