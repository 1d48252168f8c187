//! What a hop counts.

use serde::Serialize;

/// Why a hop dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// The queue was full.
    QueueFull,
    /// Larger than the MTU.
    TooBig,
    /// Lost on the wire by chance.
    Loss,
    /// The hop was down or went down.
    Down,
    /// By the queue's discipline, before the queue was full.
    Aqm,
}

impl Drop {
    /// Number of causes.
    pub const COUNT: usize = Self::Aqm as usize + 1;
}

/// Counters of a hop. Always `entered + duplicated = left + dropped + queued`, where `queued` are
/// those that wait, are served or are on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HopStats {
    /// Packets offered.
    pub entered: u64,
    /// Bytes offered.
    pub bytes_entered: u64,
    /// Packets that reached the far end, copies included.
    pub left: u64,
    /// Bytes that reached the far end, copies included.
    pub bytes_left: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets held back while others passed.
    pub reordered: u64,
    /// Packets that arrived with flipped bits.
    pub corrupted: u64,
    /// Packets that the queue marked with Congestion Experienced, lost ones included.
    pub marked: u64,
    /// Packets dropped, indexed by [`Drop`].
    pub drops: [u64; Drop::COUNT],
    /// Most packets that ever waited.
    pub peak_waiting: u64,
}

impl HopStats {
    /// How many were dropped for `cause`.
    pub fn dropped(&self, cause: Drop) -> u64 {
        self.drops[cause as usize]
    }

    /// How many were dropped for any cause.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }
}
