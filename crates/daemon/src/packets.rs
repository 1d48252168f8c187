//! The packet lane: what is not carried as a connection travels as the packets that it is, in both directions.

mod limit;
mod status;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
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
        let mut errors = Vec::new();
        let addressed = addressed(&lane, packets, &mut errors);
        for (packet, why) in lane.packets.peers.send(addressed) {
            errors.extend(note(&lane.packets.counters, &why).map(|trouble| (packet, trouble)));
        }
        let told = errors.iter().filter(|_| limit.allows());
        let replies: Vec<Bytes> =
            told.filter_map(|(packet, trouble)| error_about(packet, *trouble)).collect();
        lane.packets.device.inject(replies);
    }
}

/// The packets with the peers that they are for; the others are `errors`. A peer that is silent is asked once, however many
/// packets are for it.
fn addressed(lane: &Lane, packets: VecDeque<Bytes>, errors: &mut Vec<(Bytes, Trouble)>) -> Vec<(Hit, Bytes)> {
    let (mut addressed, peers) = (Vec::with_capacity(packets.len()), lane.peers.now());
    let mut silent = BTreeSet::new();
    for packet in packets {
        let Ok(looked) = InnerPacket::parse(&packet) else {
            lane.packets.counters.malformed.fetch_add(1, Relaxed);
            continue;
        };
        if is_local(looked.dst) {
            continue; // the kernel asks for routers and neighbours on any device
        }
        match peers.behind(looked.dst) {
            Some(peer) if peer.link.is_silent() => {
                silent.insert(peer.config.hit);
                lane.packets.counters.no_association.fetch_add(1, Relaxed);
                errors.push((packet, Trouble::Unreachable));
            }
            Some(peer) => addressed.push((peer.config.hit, packet)),
            None => {
                lane.packets.counters.no_peer.fetch_add(1, Relaxed);
                errors.push((packet, Trouble::Unreachable));
            }
        }
    }
    silent.into_iter().for_each(|peer| lane.outer.ask(peer));
    addressed
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
    use super::*;

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
