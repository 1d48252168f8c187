//! What the packet lane reports.

use std::sync::atomic::Ordering::Relaxed;

use polypath_endpoint::{LaneReport, PathReport};
use polypath_transport::PathStats;
use serde::{Deserialize, Serialize};

use crate::lane::Packets;

/// Packets that were not carried since the start. What waited and was dropped is counted with each peer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PacketStatus {
    /// No peer is behind the address.
    pub no_peer: u64,
    /// The peer could not be reached.
    pub no_association: u64,
    /// Larger than what any path carries.
    pub too_big: u64,
    /// No IP packets.
    pub malformed: u64,
    /// From peers, but not from or to addresses that are for them to use.
    pub forbidden: u64,
    /// Dropped between the device and the paths, because this host was too busy.
    pub overrun: u64,
}

/// The packets exchanged with one peer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PeerPackets {
    /// Packets sent.
    pub sent: u64,
    /// Copies of them that left on a second path.
    pub copies: u64,
    /// Copies that never left: no second path had room for them in time.
    pub uncopied: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that came a second time and were dropped: copies.
    pub duplicates: u64,
    /// Bytes that wait for a path.
    pub waiting: u64,
    /// Packets that waited too long, or did not fit into the queue.
    pub dropped: u64,
    /// Packets that waited too long and were marked instead, as their ends understand that (ECN).
    pub marked: u64,
    /// Packets sent and lost on a path.
    pub lost: u64,
    /// Packets sent again because they had been lost.
    pub again: u64,
    /// Packets that were taken for lost and came late.
    pub late: u64,
    /// How often a packet was missing that others of its flow waited for.
    pub gaps: u64,
    /// How often they waited as long as is allowed.
    pub waited: u64,
}

/// The packets sent on one path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathPackets {
    /// Packets.
    pub sent: u64,
    /// Bytes that arrived.
    pub delivered: u64,
    /// Round trip time, smoothed, ms.
    pub rtt_ms: Option<f64>,
    /// Bytes that may be under way.
    pub window: u64,
    /// Bytes that are.
    pub in_flight: u64,
}

impl PacketStatus {
    pub(crate) fn of(packets: &Packets) -> Self {
        let counters = &packets.counters;
        Self {
            no_peer: counters.no_peer.load(Relaxed),
            no_association: counters.no_association.load(Relaxed),
            too_big: counters.too_big.load(Relaxed),
            malformed: counters.malformed.load(Relaxed),
            forbidden: counters.forbidden.load(Relaxed),
            overrun: packets.device.dropped() + packets.peers.untaken(),
        }
    }
}

impl PeerPackets {
    /// Of all associations with a peer.
    pub(crate) fn of(reports: &[LaneReport]) -> Self {
        reports.iter().fold(Self::default(), |sum, LaneReport { stats, waiting, .. }| Self {
            sent: sum.sent + stats.sent,
            copies: sum.copies + stats.copies,
            uncopied: sum.uncopied + stats.uncopied,
            received: sum.received + stats.received,
            duplicates: sum.duplicates + stats.duplicates,
            waiting: sum.waiting + waiting,
            dropped: sum.dropped + stats.dropped + stats.too_big,
            marked: sum.marked + stats.congested,
            lost: sum.lost + stats.lost,
            again: sum.again + stats.again,
            late: sum.late + stats.late,
            gaps: sum.gaps + stats.gaps,
            waited: sum.waited + stats.waited,
        })
    }
}

impl PathPackets {
    /// Of `path`.
    pub(crate) fn of(reports: &[LaneReport], path: &PathReport) -> Option<Self> {
        let mut paths = reports.iter().flat_map(|report| &report.paths);
        let (_, stats) = paths.find(|(inner, _)| *inner == path.inner)?;
        let PathStats { segments_sent, bytes_delivered, srtt, cwnd, in_flight, .. } = stats;
        Some(Self {
            sent: *segments_sent,
            delivered: *bytes_delivered,
            rtt_ms: srtt.map(|srtt| srtt.0 as f64 / 1e6),
            window: *cwnd,
            in_flight: *in_flight,
        })
    }
}
