//! Reports on associations and their paths.

use polypath_hip::suite::EspSuite;
use polypath_hip::{Failure, Link, State};
use polypath_transport::PathStats;
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Instant};
use serde::Serialize;

use crate::paths::Locators;

/// What happened to an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerEvent {
    /// It is there: connections can be opened.
    Up,
    /// It is over; its connections were reset.
    Down,
    /// It could not be had.
    Failed(PeerFailure),
    /// A stranger asked for one and was refused.
    Stranger {
        /// From where.
        from: Locators,
    },
    /// A path is ready.
    PathUp(Locators),
    /// A path is gone.
    PathDown(Locators),
    /// The peer does not answer heartbeats on a path any more.
    PathSilent(Locators),
    /// It does again.
    PathAnswers(Locators),
}

/// An observation: an association changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HipRecord {
    /// When.
    pub at: Instant,
    /// The association with this peer.
    pub peer: Hit,
    /// To this.
    pub state: State,
}

/// Why there is no association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PeerFailure {
    /// Nobody answered.
    #[error("no answer")]
    Timeout,
    /// The peer does not know us, and lets in whom it knows only.
    #[error("the peer refused the association")]
    Refused,
    /// The peer's puzzle is too hard.
    #[error("the peer is too busy")]
    Busy,
    /// Nothing in common.
    #[error("no algorithm in common with the peer")]
    NoProposal,
}

impl From<Failure> for PeerFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Timeout => Self::Timeout,
            Failure::Puzzle => Self::Busy,
            Failure::HitSuite | Failure::NoProposal(_) => Self::NoProposal,
        }
    }
}

/// One path in its SAs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// The peer.
    pub peer: Hit,
    /// The name by which connections know it: HITs, and its number for a port.
    pub inner: Locators,
    /// The outer addresses.
    pub locators: Locators,
    /// The suite of its SAs.
    pub suite: EspSuite,
    /// The SPI of what we receive.
    pub inbound: u32,
    /// The SPI of what we send.
    pub outbound: u32,
    /// Whether connections may use it.
    pub up: bool,
    /// Whether the peer answers heartbeats on it.
    pub answers: bool,
    /// The largest IP packet that is sent on it, bytes.
    pub mtu: u32,
    /// The largest packet of another program that it carries, bytes.
    pub carries: u32,
    /// One-way delay (half the smallest round trip of a heartbeat) and rate of delivery, as measured here.
    pub measured: Link,
    /// The same as the peer measured and announced it.
    pub peer_measured: Link,
    /// How often it got new keys.
    pub rekeyed: u32,
    /// Packets sent, with all keys.
    pub sealed: u64,
    /// Bytes sent with data of connections and other packets in them: payload of UDP.
    pub sent: u64,
    /// Bytes received: payload of UDP.
    pub received: u64,
    /// Whether data may leave as ECT(0): heartbeats have shown that the path leaves the ECN field alone (RFC 3168).
    pub ecn: bool,
    /// Packets received with CE.
    pub marked: u64,
}

/// What open connections have on a path: sums over all with bytes under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathLoad {
    /// Connections with bytes under way.
    pub connections: u32,
    /// Open connections whose ends agreed on R-M/TCP's multi-route option.
    pub multi_route: u32,
    /// Their congestion windows, bytes.
    pub window: u64,
    /// What is under way, bytes.
    pub in_flight: u64,
    /// Segments sent again by all that are open.
    pub again: u64,
    /// Reductions of their windows for marks of congestion (RFC 3168).
    pub marks: u64,
    /// The smallest of their smoothed round trip times.
    pub srtt: Option<Duration>,
    /// The first path of its bottleneck, if a controller asks which paths share one.
    pub bottleneck: Option<Locators>,
}

impl PathLoad {
    /// One more connection, which has `stats` on the path; `bottleneck` is the first path of its bottleneck.
    pub(crate) fn add(&mut self, stats: &PathStats, bottleneck: Option<Locators>) {
        self.again += stats.retransmissions;
        self.marks += stats.marks;
        self.bottleneck = bottleneck.or(self.bottleneck);
        if stats.in_flight == 0 {
            return;
        }
        self.connections += 1;
        self.window += stats.cwnd;
        self.in_flight += stats.in_flight;
        self.srtt = self.srtt.into_iter().chain(stats.srtt).min();
    }
}

/// Counters of what came in and was not taken, and of the rest of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SecurityStats {
    /// ESP packets opened.
    pub opened: u64,
    /// ESP packets refused: forged, replayed, malformed.
    pub refused: u64,
    /// ESP packets of no SA.
    pub unknown_spi: u64,
    /// HIP packets that are none, or damaged.
    pub malformed: u64,
    /// HIP packets that came twice, or after their exchange had ended, such as answers over several links.
    pub late: u64,
    /// Other HIP packets that were dropped: of hosts that are no peers, for another host, forged, too many.
    pub uninvited: u64,
    /// Datagrams that are neither HIP nor ESP nor a keep-alive.
    pub unknown: u64,
    /// Opened packets with nothing for us in them.
    pub other: u64,
    /// Segments and heartbeats that had no path to leave on.
    pub unsent: u64,
    /// Heartbeats answered by a peer.
    pub heartbeats: u64,
}
