//! Counters of a flow of packets.

use serde::Serialize;

/// Why a packet was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// No path carries it: see [`largest`](super::PacketFlow::largest).
    #[error("larger than what any path carries")]
    TooBig,
    /// The queue dropped it.
    #[error("the queue is full")]
    Full,
}

/// Counters since the flow began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PacketStats {
    /// Packets that no path carries.
    pub too_big: u64,
    /// Packets that the queue did not take.
    pub refused: u64,
    /// Packets that the queue took and dropped later.
    pub dropped: u64,
    /// Packets that the queue marked with congestion experienced.
    pub congested: u64,
    /// Packets that left, each counted once.
    pub sent: u64,
    /// Copies of them that left on a second path.
    pub copies: u64,
    /// Copies that never left: no second path had room for them in time.
    pub uncopied: u64,
    /// Packets that came, each counted once.
    pub received: u64,
    /// Transmissions that were judged lost.
    pub lost: u64,
    /// Packets that left again as they had been lost.
    pub again: u64,
    /// Those of `lost` that arrived after all: they were late, not lost.
    pub late: u64,
    /// Packets that came a second time.
    pub duplicates: u64,
    /// Frames on paths that are gone.
    pub late_paths: u64,
    /// Ranges in reports of what was never sent.
    pub bad_ranges: u64,
    /// Gaps in the order of a flow that were given up.
    pub gaps: u64,
    /// Those of them that were waited for as long as is allowed: the others were given up at once, since every path had
    /// delivered something later.
    pub waited: u64,
    /// Packets of ours that came to the peer with a mark of congestion (ECN).
    pub marked: u64,
}
