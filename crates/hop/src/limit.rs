//! How much waits at most.

use serde::{Deserialize, Serialize};

/// Limit of what *waits*. The packet in service does not count, so ns-2's DropTail with
/// limit L is `Packets(L - 1)` here: it drops when the waiting ones and the new one reach L.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// At most this number of packets waits.
    Packets(u32),
    /// At most this number of bytes waits.
    Bytes(u64),
}

impl QueueLimit {
    /// Whether `packets` of `bytes` may wait.
    pub(crate) fn holds(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets <= u64::from(limit),
            Self::Bytes(limit) => bytes <= limit,
        }
    }

    /// Packets or bytes.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Packets(n) => f64::from(n),
            Self::Bytes(n) => n as f64,
        }
    }
}
