//! The flow of packets with one peer.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::IpAddr;

use bytes::Bytes;
use polypath_transport::PathConfig;
use polypath_transport::flow::{Leaving, Packet, PacketFlow, Refused};
use polypath_wire::hip::Hit;
use polypath_wire::tcp::{self, MIN_HEADER_LEN};
use polypath_wire::{Duration, Ecn, Instant, PathId, Seed, udp};
use siphasher::sip::SipHasher13;

use super::queue::Fair;
use super::{LaneConfig, LaneReport, NotSent};
use crate::inner::InnerPacket;
use crate::paths::{Locators, PathTable};

/// Paths that are gone whose numbers are remembered.
const REMEMBERED: usize = 64;
/// What connections count as a header, bytes: of a frame it is a part.
const HEADER: u32 = MIN_HEADER_LEN as u32;

/// The port of QUIC (RFC 9114 §3.1).
const QUIC: u16 = 443;

/// The flow of packets with one peer.
#[derive(Debug)]
pub(crate) struct PeerFlow {
    /// Who that is.
    pub peer: Hit,
    flow: PacketFlow,
    paths: PathTable,
    /// The number to be given next, unless its place is taken.
    next: PathId,
    /// Which transmission a path that is gone would have had next, by our number of it.
    ended: BTreeMap<u16, u32>,
    /// Tells flows apart.
    hasher: SipHasher13,
    /// Among those that may have something to send.
    pub queued: bool,
}

impl PeerFlow {
    pub fn new(now: Instant, peer: Hit, config: &LaneConfig, seed: Seed) -> Self {
        let key = |n| seed.child(n).0;
        let queue = Fair::new(config.queue, config.queued, seed.child("queue"));
        Self {
            peer,
            flow: PacketFlow::new(now, &config.packets, key("flow"), Box::new(queue)),
            paths: PathTable::default(),
            next: PathId::FIRST,
            ended: BTreeMap::new(),
            hasher: SipHasher13::new_with_keys(key("flows/0"), key("flows/1")),
            queued: false,
        }
    }

    /// `config`: the same as for connections.
    pub fn add_path(&mut self, now: Instant, inner: Locators, config: &PathConfig) {
        if self.path(&inner).is_some() || self.paths.len() >= PathId::PLACES {
            return;
        }
        while self.paths.iter().any(|(path, _)| path.place() == self.next.place()) {
            self.next = self.next.next();
        }
        let path = self.next;
        self.next = path.next();
        let config = PathConfig {
            mss: config.mss + HEADER,
            carried: config.carried.map(|carried| carried + HEADER),
            overhead: config.overhead.saturating_sub(HEADER),
            ..*config
        };
        let first = self.ended.remove(&inner.local.port()).unwrap_or(0);
        self.paths.insert(path, inner);
        self.flow.add_path(now, path, &config, first);
    }

    pub fn remove_path(&mut self, now: Instant, inner: &Locators) {
        let Some(path) = self.path(inner) else { return };
        self.paths.remove(path);
        if let Some(next) = self.flow.remove_path(now, path) {
            if self.ended.len() >= REMEMBERED {
                self.ended.pop_first();
            }
            self.ended.insert(inner.local.port(), next);
        }
    }

    /// The path carries TCP segments with at most this many bytes of data.
    pub fn path_carries(&mut self, now: Instant, inner: &Locators, segment: u32) {
        if let Some(path) = self.path(inner) {
            self.flow.path_carries(now, path, segment + HEADER);
        }
    }

    /// From now on the path spills, or no longer: it carries what the others have no room for.
    pub fn path_spills(&mut self, inner: &Locators, spill: bool) {
        if let Some(path) = self.path(inner) {
            self.flow.path_spills(path, spill);
        }
    }

    /// A heartbeat took so long.
    pub fn path_answered(&mut self, now: Instant, inner: &Locators, rtt: Duration) {
        if let Some(path) = self.path(inner) {
            self.flow.path_answered(now, path, rtt);
        }
    }

    /// Queues a packet, `twice` if a copy of it is to leave on a second path.
    pub fn push(
        &mut self,
        now: Instant,
        looked: &InnerPacket,
        twice: bool,
        bytes: Bytes,
    ) -> Result<(), NotSent> {
        let (flow, class, repaired) = (self.flow_of(looked), looked.dscp(), is_repaired(looked));
        let packet = Packet { flow, class, repaired, twice, bytes, ..Packet::default() };
        self.flow.push(now, packet).map_err(|refused| match refused {
            Refused::TooBig => NotSent::TooBig { most: self.flow.largest().unwrap_or(0) },
            Refused::Full => NotSent::Full,
        })
    }

    /// Packets whose order somebody cares for have the same number: those between two ports, or the fragments between two
    /// hosts.
    fn flow_of(&self, looked: &InnerPacket) -> u16 {
        let mut hasher = self.hasher;
        for address in [looked.src, looked.dst] {
            match address {
                IpAddr::V4(ip) => hasher.write(&ip.octets()),
                IpAddr::V6(ip) => hasher.write(&ip.octets()),
            }
        }
        hasher.write_u8(looked.protocol);
        if let Some((src, dst)) = looked.ports {
            hasher.write_u16(src);
            hasher.write_u16(dst);
        }
        hasher.finish() as u16
    }

    /// Whether the frame makes sense.
    pub fn handle(&mut self, now: Instant, inner: &Locators, ecn: Ecn, frame: Bytes) -> bool {
        let path = self.path(inner);
        path.is_some_and(|path| self.flow.handle(now, path, frame, ecn).is_ok())
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.flow.handle_timeout(now);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.flow.poll_timeout()
    }

    /// The next frame to send, and on which path.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Locators, Leaving)> {
        loop {
            let leaving = self.flow.poll_transmit(now)?;
            if let Some(inner) = self.paths.locators(leaving.path) {
                return Some((*inner, leaving));
            }
        }
    }

    pub fn poll_deliver(&mut self) -> Option<Bytes> {
        self.flow.poll_deliver().map(|packet| packet.bytes)
    }

    pub fn report(&self) -> LaneReport {
        LaneReport {
            peer: self.peer,
            stats: self.flow.stats(),
            waiting: self.flow.waiting(),
            paths: self.paths.iter().map(|(path, inner)| (inner, self.flow.path_stats(path))).collect(),
        }
    }

    fn path(&self, inner: &Locators) -> Option<PathId> {
        self.paths.iter().find(|(_, known)| known == inner).map(|(path, _)| path)
    }
}

/// Whether a packet that is lost goes again: whoever sent it would send it again anyway, and less after it.
fn is_repaired(looked: &InnerPacket) -> bool {
    match (looked.protocol, looked.ports) {
        (tcp::PROTOCOL, _) => true,
        (udp::PROTOCOL, Some((src, dst))) => src == QUIC || dst == QUIC,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use polypath_wire::ipv4::Ipv4Header;

    use super::*;

    #[test]
    fn what_goes_again_is_tcp_and_quic() {
        let repaired = |protocol, dst: u16| {
            let [from, to] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Ipv4Addr::from);
            let mut packet = vec![0; 48];
            Ipv4Header::new(protocol, from, to, 28).emit(&mut packet).unwrap();
            packet[22..24].copy_from_slice(&dst.to_be_bytes());
            is_repaired(&InnerPacket::parse(&packet).unwrap())
        };
        assert!(repaired(tcp::PROTOCOL, 80) && repaired(udp::PROTOCOL, 443));
        assert!(!repaired(udp::PROTOCOL, 5060) && !repaired(1, 443));
    }
}
