//! Packets on their way, in slots that are used again.

use std::collections::BTreeSet;

use polypath_transport::Segment;
use polypath_wire::Ecn;
use polypath_wire::ipv4::MIN_HEADER_LEN;

use crate::route::RouteId;

/// Index of a packet's slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PacketId(u32);

/// A packet that travels: all that hops need to know of it, so that they leave its slot alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Traveller {
    pub packet: PacketId,
    /// Where on its route it is, an index of [`Net::steps`](crate::net::Net).
    pub step: u32,
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub body: Body,
    pub route: RouteId,
    /// Size on the wire, bytes.
    pub size: u32,
    /// The ECN field of its header.
    pub ecn: Ecn,
    /// The how-many-eth packet of all it was when it was sent.
    pub number: u64,
}

impl Packet {
    /// A number that packets with the same addresses, protocol and ports share.
    pub fn flow(&self) -> u64 {
        let ports = match &self.body {
            Body::Segment(segment) => (segment.header.src_port.into(), segment.header.dst_port.into()),
            Body::Bytes(packet) => ports(packet),
            Body::Datagram(datagram) => (1 << 16, datagram.source),
        };
        u64::from(self.route.0) << 40 ^ u64::from(ports.0) << 20 ^ u64::from(ports.1)
    }
}

/// The ports behind an IPv4 header without options.
fn ports(packet: &[u8]) -> (u32, u32) {
    let port = |at: usize| packet.get(at..at + 2).map_or(0, |p| u32::from(p[0]) << 8 | u32::from(p[1]));
    (port(MIN_HEADER_LEN), port(MIN_HEADER_LEN + 2))
}

/// What a packet carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A TCP segment as a value, in a box that is handed over whole.
    Segment(Box<Segment>),
    /// An IP packet in bytes: corrupted on the way, or because the world is in the bytes mode.
    Bytes(Vec<u8>),
    /// A datagram of a traffic source.
    Datagram(Datagram),
}

impl Body {
    /// Whether it is a TCP segment, not in bytes, with data.
    pub fn has_data(&self) -> bool {
        matches!(self, Self::Segment(segment) if !segment.payload.is_empty())
    }
}

/// A datagram of a traffic source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// The source.
    pub source: u32,
    /// Its number, from 0.
    pub number: u64,
    /// Whether bits were flipped on the way.
    pub corrupted: bool,
}

/// All packets on their way.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Packets {
    /// A packet at the start of `route`, whose body still belongs to another one.
    #[inline]
    pub fn claim(&mut self, route: RouteId, size: u32) -> PacketId {
        let id = self.free.pop().unwrap_or_else(|| self.grow());
        let slot = &mut self.slots[id.0 as usize];
        (slot.route, slot.size, slot.ecn) = (route, size, Ecn::None);
        id
    }

    #[cold]
    fn grow(&mut self) -> PacketId {
        self.slots.push(Packet {
            body: Body::Segment(Box::default()),
            route: RouteId(0),
            size: 0,
            ecn: Ecn::None,
            number: 0,
        });
        PacketId(self.slots.len() as u32 - 1)
    }

    /// A second packet like `id`.
    pub fn copy(&mut self, id: PacketId) -> PacketId {
        let packet = self[id].clone();
        let copy = self.claim(packet.route, packet.size);
        self[copy] = packet;
        copy
    }

    /// The slot may be used again. What is left in it stays until then.
    pub fn remove(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// The datagrams of `source` on their way, in any order; a copy counts as one of its own.
    pub fn datagrams(&self, source: u32) -> impl Iterator<Item = u64> {
        let free: BTreeSet<PacketId> = self.free.iter().copied().collect();
        let used = (0..).map(PacketId).zip(&self.slots).filter(move |(id, _)| !free.contains(id));
        used.filter_map(move |(_, packet)| match packet.body {
            Body::Datagram(datagram) if datagram.source == source => Some(datagram.number),
            _ => None,
        })
    }

    /// Packets on their way.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id.0 as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Packets {
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id.0 as usize]
    }
}
