//! Counters of a path.

use polypath_wire::{Duration, PathId, Rate};
use serde::Serialize;

/// Counters and the present state of one path.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[repr(C)]
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
    /// Rate of delivery, unless all that was sent is less than the path could carry.
    pub delivered_rate: Option<Rate>,
    /// Reductions of its window for marks of congestion (ECN).
    pub marks: u64,
    /// Its bottleneck, by the first path that leads through it, if the controller asks which paths share one.
    pub bottleneck: Option<PathId>,
}
