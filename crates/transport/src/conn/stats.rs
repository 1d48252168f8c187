//! Counters of a connection.

use serde::Serialize;

use super::record::DropReason;

/// Counters of a connection since it began.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ConnectionStats {
    /// Stream bytes the peer has acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Stream bytes received in order.
    pub bytes_received: u64,
    /// Data segments received, duplicates included.
    pub segments_received: u64,
    /// Data segments that arrived above the next expected byte.
    pub out_of_order: u64,
    /// Data bytes received more than once.
    pub duplicate_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Loss episodes: times the congestion window was reduced on duplicate acknowledgments.
    pub fast_recoveries: u64,
    /// Episodes undone.
    pub undone: u64,
    /// Drops, indexed by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
    /// Stream bytes that came early and wait for those before them.
    pub bytes_early: u64,
    /// Largest occupancy of the reorder buffer, bytes.
    pub reorder_peak: u64,
}

impl ConnectionStats {
    /// How often something was dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }
}
