//! Packets on their way, in slots that are used again.

use polypath_transport::Segment;

use crate::net::RouteId;

/// Index of a packet's slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketId(u32);

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub body: Body,
    pub route: RouteId,
    /// How many hops of its route it has entered.
    pub entered: u32,
    /// Size on the wire, bytes.
    pub size: u32,
}

/// What a packet carries.
#[derive(Clone, Debug, Default)]
pub(crate) enum Body {
    /// Nothing: the slot is free.
    #[default]
    Empty,
    /// A TCP segment as a value.
    Segment(Segment),
    /// An IP packet in bytes: corrupted on the way, or because the world is told to use bytes.
    Bytes(Vec<u8>),
    /// A datagram of a traffic source.
    Datagram(Datagram),
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
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = packet;
            return id;
        }
        self.slots.push(packet);
        PacketId(self.slots.len() as u32 - 1)
    }

    /// Empties the slot.
    pub fn take(&mut self, id: PacketId) -> Body {
        self.free.push(id);
        std::mem::take(&mut self.slots[id.0 as usize].body)
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
