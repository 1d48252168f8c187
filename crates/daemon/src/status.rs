//! What a daemon reports.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use polypath_endpoint::{LaneReport, Locators, PathLoad, PathReport, SecurityStats};
use polypath_node::GatewayStats;
use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use crate::associations::name;
use crate::interfaces::{InterfaceStatus, Use};
use crate::lane::Lane;
use crate::packets::{PacketStatus, PathPackets, PeerPackets};
use crate::peers::Peer;
use crate::view::View;

/// A daemon at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Its Host Identity Tag.
    pub hit: Hit,
    /// Its TUN device.
    pub device: String,
    /// The TCP lane.
    pub lane: LaneStatus,
    /// The packet lane.
    pub packets: PacketStatus,
    /// What came from outside and is of no peer.
    #[serde(default)]
    pub outside: OutsideStatus,
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
    /// Bytes that they hold, between the peers and on the device's side.
    #[serde(default)]
    pub memory: u64,
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
    /// Fragments of TCP segments that were dropped because the others did not come.
    pub fragments: u64,
    /// Packets dropped because they are malformed.
    pub malformed: u64,
    /// Packets that the device did not take.
    pub refused: u64,
}

/// Datagrams dropped on the daemon's UDP port since the start. None is answered.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OutsideStatus {
    /// Neither HIP nor ESP.
    pub unknown: u64,
    /// HIP, but damaged or no packet of it.
    #[serde(default)]
    pub malformed: u64,
    /// HIP that came late or again, as a peer's answers over several links do.
    #[serde(default)]
    pub late: u64,
    /// HIP of hosts that are no peers or of no association, or forged, or too many.
    #[serde(default)]
    pub uninvited: u64,
    /// ESP of no association: a stranger's, or late.
    pub unknown_spi: u64,
    /// ESP of an association, but forged, damaged or sent before.
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
    /// Whether there is one, and nothing comes on any path despite heartbeats.
    #[serde(default)]
    pub silent: bool,
    /// Why there is no association, as far as this host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
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
    /// Largest IP packet that leaves on it, bytes.
    pub mtu: u32,
    /// Largest packet of a program that it carries whole, bytes.
    #[serde(default)]
    pub carries: u32,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent with data of connections and other packets in them: payload of UDP.
    pub sent_bytes: u64,
    /// Bytes received: payload of UDP.
    pub received_bytes: u64,
    /// Whether queues may mark what is sent on it (ECN): heartbeats have shown that the path leaves marks alone.
    #[serde(default)]
    pub ecn: bool,
    /// Packets received that a queue marked (ECN).
    #[serde(default)]
    pub marked_packets: u64,
    /// What open connections and other packets have on it.
    pub load: LoadStatus,
    /// The packet lane on it.
    pub packets: Option<PathPackets>,
}

/// What open connections and other packets have on a path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LoadStatus {
    /// Those with bytes under way.
    pub connections: u32,
    /// Open connections whose ends agreed on R-M/TCP's multi-route option.
    #[serde(default)]
    pub multi_route: u32,
    /// Their congestion windows, bytes.
    pub window: u64,
    /// What is under way, bytes.
    pub in_flight: u64,
    /// Segments sent again by all that are open.
    pub again: u64,
    /// How often their windows were reduced because queues marked what they sent (ECN).
    #[serde(default)]
    pub marks: u64,
    /// Smallest smoothed round trip time, ms.
    pub rtt_ms: Option<f64>,
    /// Paths of a peer with the same number share a bottleneck, as far as the controller asks (`polypath`).
    pub bottleneck: Option<usize>,
}

impl PathStatus {
    /// Whether it is up and the peer answers.
    pub fn works(&self) -> bool {
        self.up && self.answers
    }

    /// Round trip time, ms: of data in flight, or else of heartbeats.
    pub fn rtt_ms(&self) -> Option<f64> {
        self.load.rtt_ms.or(self.delay_ms.map(|delay| 2.0 * delay))
    }
}

impl Status {
    /// All paths, each with its peer.
    pub fn paths(&self) -> impl Iterator<Item = (&PeerStatus, &PathStatus)> {
        self.peers.iter().flat_map(|peer| peer.paths.iter().map(move |path| (peer, path)))
    }

    /// The interface from which a path leaves.
    pub fn interface_of(&self, path: &PathStatus) -> Option<&InterfaceStatus> {
        self.interfaces.iter().find(|one| one.addresses.contains(&path.local.ip()))
    }

    pub(crate) fn of(view: &View, interfaces: Vec<InterfaceStatus>) -> Self {
        let lane = &view.lane;
        let seen = Seen::now(lane);
        let peers: Vec<_> = lane.peers.now().iter().map(|peer| PeerStatus::of(lane, peer, &seen)).collect();
        let interfaces = interfaces.into_iter().map(|one| one.explained(&peers)).collect();
        let open = view.places - lane.places.available_permits().min(view.places);
        Self {
            hit: lane.outer.hit().unwrap_or_default(),
            device: view.device.name(),
            lane: LaneStatus::of(lane, &view.gateway, open),
            packets: PacketStatus::of(&lane.packets),
            outside: OutsideStatus::of(lane.outer.security_stats()),
            interfaces,
            peers,
        }
    }
}

/// What is known of all paths, by their peers.
struct Seen {
    paths: BTreeMap<Hit, Vec<PathReport>>,
    reports: BTreeMap<Hit, Vec<LaneReport>>,
    loads: BTreeMap<Locators, PathLoad>,
}

impl Seen {
    fn now(lane: &Lane) -> Self {
        let (mut paths, mut reports) = (BTreeMap::<Hit, Vec<_>>::new(), BTreeMap::<Hit, Vec<_>>::new());
        for path in lane.outer.secure_paths() {
            paths.entry(path.peer).or_default().push(path);
        }
        for report in lane.packets.peers.reports() {
            reports.entry(report.peer).or_default().push(report);
        }
        Self { paths, reports, loads: lane.outer.path_loads() }
    }

    /// The paths to a peer.
    fn of(&self, hit: Hit) -> &[PathReport] {
        self.paths.get(&hit).map_or(&[], Vec::as_slice)
    }

    /// The flows of packets with a peer.
    fn reports(&self, hit: Hit) -> &[LaneReport] {
        self.reports.get(&hit).map_or(&[], Vec::as_slice)
    }
}

impl View {
    /// How the daemon is now.
    pub(crate) fn status(&self) -> Status {
        Status::of(self, self.interfaces())
    }
}

impl LaneStatus {
    fn of(lane: &Lane, gateway: &GatewayStats, open: usize) -> Self {
        let counters = &lane.counters;
        Self {
            open,
            memory: lane.inner.memory() + lane.outer.memory(),
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

impl OutsideStatus {
    fn of(stats: SecurityStats) -> Self {
        let SecurityStats { unknown, malformed, late, uninvited, unknown_spi, refused, .. } = stats;
        Self { unknown, malformed, late, uninvited, unknown_spi, refused }
    }
}

impl PeerStatus {
    fn of(lane: &Lane, peer: &Peer, seen: &Seen) -> Self {
        let hit = peer.config.hit;
        let associated = lane.outer.is_associated(hit);
        Self {
            name: name(peer),
            hit,
            associated,
            why: (!associated).then(|| peer.why_absent()),
            silent: peer.link.is_silent(),
            sent: peer.link.sent.load(Relaxed),
            received: peer.link.received.load(Relaxed),
            packets: PeerPackets::of(seen.reports(hit)),
            paths: seen.of(hit).iter().map(|path| PathStatus::of(path, seen)).collect(),
        }
    }
}

impl InterfaceStatus {
    /// The same with the reason why it has no path to any of `peers`, if it should have one.
    fn explained(self, peers: &[PeerStatus]) -> Self {
        let has_path = || {
            let mut paths = peers.iter().flat_map(|peer| &peer.paths);
            paths.any(|path| self.addresses.contains(&path.local.ip()))
        };
        match self.used {
            Use::Used | Use::Spill if !has_path() => {
                Self { used: Use::NoPath, why: Some(self.why_unused(peers)), ..self }
            }
            _ => self,
        }
    }

    fn why_unused(&self, peers: &[PeerStatus]) -> String {
        let Some(reached) = peers.iter().find(|peer| peer.associated) else {
            let why = |peer: &PeerStatus| Some(format!("{}: {}", peer.name, peer.why.as_ref()?));
            return peers.iter().find_map(why).unwrap_or_else(|| "there is no peer".to_owned());
        };
        let is_of = |v4: bool| self.addresses.iter().any(|ip| ip.is_ipv4() == v4);
        let remotes = || peers.iter().flat_map(|peer| &peer.paths).map(|path| path.remote);
        match remotes().any(|remote| is_of(remote.is_ipv4())) {
            true => format!("{} answers at none of its addresses over this interface", reached.name),
            false => {
                let family = if is_of(true) { "IPv4" } else { "IPv6" };
                format!(
                    "this interface has {family} addresses, and {} has answered at none of its {family} addresses",
                    reached.name
                )
            }
        }
    }
}

impl PathStatus {
    fn of(path: &PathReport, seen: &Seen) -> Self {
        Self {
            local: path.locators.local,
            remote: path.locators.remote,
            up: path.up,
            answers: path.answers,
            delay_ms: path.measured.delay.map(|delay| delay.0 as f64 / 1e6),
            rate_mbps: path.measured.bandwidth.map(|rate| rate.0 as f64 / 1e6),
            mtu: path.mtu,
            carries: path.carries,
            sent_packets: path.sealed,
            sent_bytes: path.sent,
            received_bytes: path.received,
            ecn: path.ecn,
            marked_packets: path.marked,
            load: LoadStatus::of(path, seen),
            packets: PathPackets::of(seen.reports(path.peer), path),
        }
    }
}

impl LoadStatus {
    fn of(path: &PathReport, seen: &Seen) -> Self {
        let load = seen.loads.get(&path.inner).copied().unwrap_or_default();
        let group = |first: Locators| seen.of(path.peer).iter().position(|path| path.inner == first);
        Self {
            connections: load.connections,
            multi_route: load.multi_route,
            window: load.window,
            in_flight: load.in_flight,
            again: load.again,
            marks: load.marks,
            rtt_ms: load.srtt.map(|srtt| srtt.0 as f64 / 1e6),
            bottleneck: load.bottleneck.and_then(group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(why: Option<&str>, paths: &[[&str; 2]]) -> PeerStatus {
        let path = |[local, remote]: &[&str; 2]| PathStatus {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            up: true,
            answers: true,
            delay_ms: None,
            rate_mbps: None,
            mtu: 1500,
            carries: 1430,
            sent_packets: 0,
            sent_bytes: 0,
            received_bytes: 0,
            ecn: true,
            marked_packets: 0,
            load: LoadStatus::default(),
            packets: None,
        };
        let associated = why.is_none();
        let (why, paths) = (why.map(str::to_owned), paths.iter().map(path).collect());
        PeerStatus {
            name: "server".into(),
            hit: Hit::default(),
            associated,
            silent: false,
            why,
            sent: 0,
            received: 0,
            packets: PeerPackets::default(),
            paths,
        }
    }

    #[test]
    fn an_interface_without_a_path_has_the_reason() {
        let interface = |used, address: &str| InterfaceStatus {
            name: "eth0".into(),
            addresses: vec![address.parse().unwrap()],
            used,
            limit_mbps: None,
            quota: None,
            why: None,
        };
        let why = |used, address, peers: &[PeerStatus]| {
            let told = interface(used, address).explained(peers);
            assert_eq!(told.used, if told.why.is_some() { Use::NoPath } else { used });
            told.why
        };
        let v4 = |peers: &[PeerStatus]| why(Use::Used, "192.0.2.1", peers);
        assert_eq!(v4(&[]).as_deref(), Some("there is no peer"));
        let silent = peer(Some("no answer from 203.0.113.5, for 7 s"), &[]);
        assert_eq!(
            v4(std::slice::from_ref(&silent)).as_deref(),
            Some("server: no answer from 203.0.113.5, for 7 s")
        );
        let reached = peer(None, &[["192.0.2.9:1", "203.0.113.5:1"]]);
        let over = "server answers at none of its addresses over this interface";
        assert_eq!(v4(&[silent.clone(), reached.clone()]).as_deref(), Some(over));
        let family = why(Use::Spill, "2001:db8::1", &[reached]);
        let told = "this interface has IPv6 addresses, and server has answered at none of its IPv6 addresses";
        assert_eq!(family.as_deref(), Some(told));
        assert_eq!(v4(&[peer(None, &[["192.0.2.1:1", "203.0.113.5:1"]])]), None);
        assert_eq!(why(Use::Excluded, "192.0.2.1", &[silent]), None);
    }
}
