//! The packet lane: what is not carried as a connection travels as the packets that it is, in both directions.

mod limit;
mod status;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use ipnet::IpNet;
use polypath_endpoint::NotSent;
use polypath_endpoint::inner::{InnerPacket, Trouble, error_about};
use polypath_wire::hip::Hit;

use crate::lane::{Lane, NotCarried};
use crate::peers::Table;
use limit::Limit;
pub use status::{PacketStatus, PathPackets, PeerPackets};

/// Carries what the kernel sends, until the device is gone.
pub(crate) async fn outward(lane: Arc<Lane>) {
    let mut limit = Limit::default();
    while let Some(packets) = lane.packets.device.next().await {
        let Batch { addressed, silent, mut errors } =
            divide(packets, &lane.peers.now(), &lane.packets.counters);
        silent.into_iter().for_each(|peer| lane.outer.ask(peer));
        for (packet, why) in lane.packets.peers.send(addressed) {
            errors.extend(note(&lane.packets.counters, &why).map(|trouble| (packet, trouble)));
        }
        let told = errors.iter().filter(|_| limit.allows());
        let networks = &lane.packets.networks;
        let replies: Vec<Bytes> =
            told.filter_map(|(packet, trouble)| error(networks, packet, *trouble)).collect();
        lane.packets.device.inject(replies);
    }
}

/// What becomes of the packets that the kernel sent at once.
#[derive(Default)]
struct Batch {
    /// Packets with the peers that they are for.
    addressed: Vec<(Hit, Bytes)>,
    /// Peers that packets are for and that do not answer: each is asked once, however many packets there are.
    silent: BTreeSet<Hit>,
    /// Packets whose senders hear why they do not travel.
    errors: Vec<(Bytes, Trouble)>,
}

/// Divides `packets` among `peers`. Those that do not travel are counted, unless they were for no other network.
fn divide(packets: VecDeque<Bytes>, peers: &Table, counters: &NotCarried) -> Batch {
    let mut batch = Batch { addressed: Vec::with_capacity(packets.len()), ..Batch::default() };
    for packet in packets {
        let Ok(looked) = InnerPacket::parse(&packet) else {
            counters.malformed.fetch_add(1, Relaxed);
            continue;
        };
        if is_local(looked.dst) || is_redirect(&packet, &looked) {
            continue; // the kernel asks for routers and neighbours on any device, and takes peers for neighbours of one another
        }
        match peers.behind(looked.dst) {
            Some(peer) if peer.link.is_silent() => {
                batch.silent.insert(peer.config.hit);
                counters.no_association.fetch_add(1, Relaxed);
                batch.errors.push((packet, Trouble::Unreachable));
            }
            Some(peer) => batch.addressed.push((peer.config.hit, packet)),
            None => {
                counters.no_peer.fetch_add(1, Relaxed);
                batch.errors.push((packet, Trouble::Unreachable));
            }
        }
    }
    batch
}

/// The ICMP error about a packet, but for one to all hosts of one of this host's `networks` (RFC 1122 §3.2.2).
fn error(networks: &[IpNet], packet: &Bytes, trouble: Trouble) -> Option<Bytes> {
    let dst = InnerPacket::parse(packet).ok()?.dst;
    let has_broadcast = |net: &&IpNet| net.addr().is_ipv4() && net.prefix_len() < 31;
    let to_all = networks.iter().filter(has_broadcast).any(|net| net.broadcast() == dst);
    if to_all { None } else { error_about(packet, trouble) }
}

/// Gives the kernel what peers send, until the node stops.
pub(crate) async fn inward(lane: Arc<Lane>) {
    while let Some(packets) = lane.packets.peers.next().await {
        let sources = Sources::now(&lane);
        let admitted = packets.into_iter().filter(|(hit, packet)| admits(&lane, &sources, *hit, packet));
        lane.packets.device.inject(admitted.map(|(_, packet)| packet));
    }
}

/// Whether a packet of a peer is from addresses behind it.
fn admits(lane: &Lane, sources: &Sources, hit: Hit, packet: &Bytes) -> bool {
    let admitted = |looked: InnerPacket| !is_local(looked.dst) && sources.admit(looked.src, hit);
    let allowed = InnerPacket::parse(packet).is_ok_and(admitted);
    lane.packets.counters.forbidden.fetch_add(u64::from(!allowed), Relaxed);
    allowed
}

/// The addresses from which peers may send, at one moment.
pub(crate) struct Sources {
    peers: Arc<Table>,
    own: Arc<HashSet<IpAddr>>,
}

impl Sources {
    pub fn now(lane: &Lane) -> Self {
        Self { peers: lane.peers.now(), own: lane.packets.own.now() }
    }

    /// Whether `source` is behind that peer. What is this host's own is behind none.
    pub fn admit(&self, source: IpAddr, hit: Hit) -> bool {
        !is_local(source) && self.peers.is_behind(source, hit) && !self.own.contains(&source)
    }
}

/// Whether packets to or from there do not leave a network.
fn is_local(ip: IpAddr) -> bool {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    link_local || ip.is_multicast() || ip.is_loopback() || ip.is_unspecified()
}

/// Whether it tells a host of a better router on its own link (RFC 792).
fn is_redirect(packet: &[u8], looked: &InnerPacket) -> bool {
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    looked.src.is_ipv4() && looked.protocol == 1 && looked.starts && packet.get(header) == Some(&5)
}

/// Counts a packet that does not travel; what its sender is to hear of it.
fn note(counters: &NotCarried, why: &NotSent) -> Option<Trouble> {
    let (counter, trouble) = match why {
        NotSent::NoAssociation => (&counters.no_association, Some(Trouble::Unreachable)),
        NotSent::TooBig { most } => (&counters.too_big, Some(Trouble::TooBig(*most))),
        NotSent::SizeUnknown => (&counters.too_big, None),
        NotSent::Malformed(_) => (&counters.malformed, None),
        NotSent::Full => return None, // the queue counts it
    };
    counter.fetch_add(1, Relaxed);
    trouble
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use polypath_transport::ConnectionConfig;

    use super::*;
    use crate::config::Peer as PeerConfig;
    use crate::peers::Peers;

    /// An IPv6 header alone, to fd00:`n`::1.
    fn packet(n: u8) -> Bytes {
        let mut header = [0; 40];
        (header[0], header[6], header[7]) = (0x60, 59, 64);
        (header[8], header[24]) = (0xfd, 0xfd);
        (header[27], header[39]) = (n, 1);
        Bytes::copy_from_slice(&header)
    }

    #[test]
    fn a_silent_peer_is_asked_once_for_a_batch_and_every_packet_is_accounted_for() {
        let peer = |n: u8| PeerConfig {
            name: n.to_string(),
            hit: Hit([n; 16]),
            addresses: Vec::new(),
            prefixes: vec![format!("fd00:{n}::/32").parse().unwrap()],
        };
        let peers = Peers::new(&[peer(1), peer(2)], &ConnectionConfig::default(), 0);
        peers.with_hit(Hit([2; 16])).unwrap().link.silent.store(true, Relaxed);
        let counters = NotCarried::default();
        let malformed = Bytes::from_static(&[0x45, 0]);
        let packets = VecDeque::from([packet(2), packet(1), packet(2), packet(3), malformed, packet(2)]);
        let batch = divide(packets, &peers.now(), &counters);
        assert_eq!(batch.addressed, [(Hit([1; 16]), packet(1))]);
        assert_eq!(batch.silent, BTreeSet::from([Hit([2; 16])]));
        let unreachable: Vec<_> = batch.errors.iter().map(|(packet, _)| packet.clone()).collect();
        assert_eq!(unreachable, [packet(2), packet(2), packet(3), packet(2)]);
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        assert_eq!(count(&counters.no_association), 3);
        assert_eq!((count(&counters.no_peer), count(&counters.malformed)), (1, 1));
    }

    #[test]
    fn what_goes_to_all_hosts_of_the_tunnels_network_is_answered_with_no_error() {
        use polypath_wire::ipv4::Ipv4Header;

        let to = |dst: [u8; 4]| {
            let header = Ipv4Header::new(17, [10, 99, 0, 1].into(), dst.into(), 8);
            let mut packet = vec![0; 28];
            header.emit(&mut packet).unwrap();
            Bytes::from(packet)
        };
        let networks = ["10.99.0.1/24", "10.98.0.0/31", "fd99::1/64"].map(|net| net.parse().unwrap());
        let told = |dst| error(&networks, &to(dst), Trouble::Unreachable).is_some();
        assert!(!told([10, 99, 0, 255]));
        assert!([[10, 99, 0, 77], [10, 98, 0, 1], [10, 97, 0, 255]].into_iter().all(told));
    }

    #[test]
    fn a_redirect_is_not_carried() {
        use polypath_wire::ipv4::Ipv4Header;

        let carried = |protocol: u8, icmp: u8| {
            let mut packet = vec![0; 36];
            Ipv4Header::new(protocol, [10, 99, 0, 1].into(), [10, 99, 0, 2].into(), 16)
                .emit(&mut packet)
                .unwrap();
            packet[20] = icmp;
            !is_redirect(&packet, &InnerPacket::parse(&packet).unwrap())
        };
        assert!(!carried(1, 5));
        assert!(carried(1, 8) && carried(17, 5));
    }

    #[test]
    fn what_stays_in_a_network_is_not_carried() {
        for ip in
            ["224.0.0.22", "255.255.255.255", "169.254.1.1", "127.0.0.1", "ff02::2", "fe80::1", "::1", "::"]
        {
            assert!(is_local(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["10.99.0.1", "8.8.8.8", "fd99::1", "2001:db8::1"] {
            assert!(!is_local(ip.parse().unwrap()), "{ip}");
        }
    }
}
