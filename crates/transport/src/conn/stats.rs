//! Counters of a connection and of its paths.

use polypath_wire::{Duration, PathId, Rate};
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

/// Counters and the present state of one path.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PathStats {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Data bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments sent that had been sent before.
    pub retransmissions: u64,
    /// Data bytes delivered to the peer over this path.
    pub bytes_delivered: u64,
    /// Data bytes received over this path, duplicates included.
    pub bytes_received: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow start threshold, bytes.
    pub ssthresh: Option<u64>,
    /// In flight, bytes.
    pub in_flight: u64,
    /// Smoothed round trip time.
    pub srtt: Option<Duration>,
    /// Smallest round trip time.
    pub min_rtt: Option<Duration>,
    /// Estimated rate of the path.
    pub rate: Option<Rate>,
    /// Its bottleneck, by the first path that leads through it, if the controller asks which paths share one.
    pub bottleneck: Option<PathId>,
}
