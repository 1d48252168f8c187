//! What a daemon tells of itself.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use polypath_endpoint::{LaneReport, PathReport};
use polypath_node::GatewayStats;
use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use crate::associations::name;
use crate::backups::SILENT;
use crate::lane::{Counters, Lane};
use crate::packets::{PacketStatus, PathPackets, PeerPackets};
use crate::paths::InterfaceStatus;
use crate::peers::Peer;

/// A daemon at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its Host Identity Tag.
    pub hit: Hit,
    /// Its TUN device.
    pub device: String,
    /// The TCP lane.
    pub lane: LaneStatus,
    /// The packet lane.
    pub packets: PacketStatus,
    /// The interfaces with usable addresses.
    pub interfaces: Vec<InterfaceStatus>,
    /// The peers, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
}

/// Counters of the TCP lane since the start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Connections being carried now, those that wait for an answer included.
    pub open: usize,
    /// Connections that entered here and were carried.
    pub outgoing: u64,
    /// Connections of peers that left here.
    pub incoming: u64,
    /// Not carried: no peer is behind the address.
    pub no_peer: u64,
    /// Not carried: the peer could not be reached.
    pub no_association: u64,
    /// Connections that travel as packets since too many were open at a time, here or at the peer.
    pub by_packets: u64,
    /// Of peers, not carried: too many at a time. The peer sends them as packets.
    pub busy: u64,
    /// Not carried: a client's address that is not its peer's.
    pub forbidden: u64,
    /// Packets dropped because they are fragments of TCP segments.
    pub fragments: u64,
    /// Packets dropped because they are malformed.
    pub malformed: u64,
    /// Packets that the device did not take.
    pub refused: u64,
}

/// A peer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name, or its tag.
    pub name: String,
    /// Its tag.
    pub hit: Hit,
    /// Whether there is an association with it.
    pub associated: bool,
    /// Bytes of connections carried to it since the start.
    pub sent: u64,
    /// Bytes of connections carried from it.
    pub received: u64,
    /// Packets exchanged with it.
    pub packets: PeerPackets,
    /// Its paths.
    pub paths: Vec<PathStatus>,
}

/// A path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathStatus {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// Whether connections may use it.
    pub up: bool,
    /// Whether the peer answers heartbeats on it.
    pub answers: bool,
    /// One-way delay as measured by heartbeats, ms.
    pub delay_ms: Option<f64>,
    /// Rate of delivery as measured here, Mbit/s.
    pub rate_mbps: Option<f64>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Packets sent.
    pub sent_packets: u64,
    /// The packet lane on it.
    pub packets: Option<PathPackets>,
}

impl Status {
    pub(crate) fn of(
        lane: &Lane,
        device: &str,
        gateway: &GatewayStats,
        places: usize,
        interfaces: Vec<InterfaceStatus>,
    ) -> Self {
        let (paths, reports) = (lane.outer.secure_paths(), lane.packets.peers.reports());
        Self {
            hit: lane.outer.hit().unwrap_or_default(),
            device: device.to_owned(),
            lane: LaneStatus::of(
                &lane.counters,
                gateway,
                places - lane.places.available_permits().min(places),
            ),
            packets: PacketStatus::of(&lane.packets),
            interfaces,
            peers: lane.peers.now().iter().map(|peer| PeerStatus::of(lane, peer, &paths, &reports)).collect(),
        }
    }
}

impl LaneStatus {
    fn of(counters: &Counters, gateway: &GatewayStats, open: usize) -> Self {
        Self {
            open,
            outgoing: counters.outgoing.load(Relaxed),
            incoming: counters.incoming.load(Relaxed),
            no_peer: counters.no_peer.load(Relaxed),
            no_association: counters.no_association.load(Relaxed),
            by_packets: counters.by_packets.load(Relaxed),
            busy: counters.busy.load(Relaxed),
            forbidden: counters.forbidden.load(Relaxed),
            fragments: gateway.not_tcp.load(Relaxed),
            malformed: gateway.malformed.load(Relaxed),
            refused: gateway.refused.load(Relaxed),
        }
    }
}

impl PeerStatus {
    fn of(lane: &Lane, peer: &Peer, paths: &[PathReport], reports: &[LaneReport]) -> Self {
        let hit = peer.config.hit;
        Self {
            name: name(peer),
            hit,
            associated: lane.outer.is_associated(hit),
            sent: peer.link.sent.load(Relaxed),
            received: peer.link.received.load(Relaxed),
            packets: PeerPackets::of(reports.iter().filter(|report| report.peer == hit)),
            paths: paths
                .iter()
                .filter(|path| path.peer == hit)
                .map(|path| PathStatus::of(path, reports))
                .collect(),
        }
    }
}

impl PathStatus {
    fn of(path: &PathReport, reports: &[LaneReport]) -> Self {
        Self {
            local: path.locators.local,
            remote: path.locators.remote,
            up: path.up,
            answers: path.silent < SILENT,
            delay_ms: path.measured.delay.map(|delay| delay.0 as f64 / 1e6),
            rate_mbps: path.measured.bandwidth.map(|rate| rate.0 as f64 / 1e6),
            mtu: path.mtu,
            sent_packets: path.sealed,
            packets: PathPackets::of(reports, path),
        }
    }
}
