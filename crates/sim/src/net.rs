//! What lies between the hosts: hops, routes over them, and the packets on their way.

use polypath_endpoint::Locators;
use polypath_wire::{Duration, Instant};

use crate::bytes;
use crate::events::{Event, Events};
use crate::hop::{Drop, Fate, Hop};
use crate::packet::{Body, PacketId, Packets};
use crate::tap::Taps;
use crate::topology::{HopId, NodeId};

/// A route in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RouteId(pub u32);

/// Hops from one node to another.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Route {
    pub hops: Box<[HopId]>,
    pub to: NodeId,
    /// The locators as the far end sees them.
    pub locators: Locators,
}

#[derive(Debug, Default)]
pub(crate) struct Net {
    pub now: Instant,
    pub events: Events,
    pub packets: Packets,
    pub hops: Vec<NetHop>,
    pub routes: Vec<Route>,
    pub taps: Taps,
    /// Packets sent.
    sent: u64,
    /// The second copy of a duplicated packet.
    copy: Option<PacketId>,
}

#[derive(Debug)]
pub(crate) struct NetHop {
    pub name: String,
    pub hop: Hop<PacketId>,
    /// When the earliest of its events in the queue is; `MAX` while there is none. It moves closer only
    /// where a packet passes one that is held back.
    armed: Instant,
}

impl NetHop {
    pub fn new(name: String, hop: Hop<PacketId>) -> Self {
        Self { name, hop, armed: Instant::MAX }
    }
}

impl Net {
    /// Sends a packet on its way.
    pub fn send(&mut self, packet: PacketId) {
        self.sent += 1;
        self.packets[packet].number = self.sent;
        self.enter(packet);
    }

    /// Puts a packet into the next hop of its route. Gives it back if it is at the end.
    pub fn enter(&mut self, id: PacketId) -> Option<PacketId> {
        let packet = &mut self.packets[id];
        let Some(&at) = self.routes[packet.route.0 as usize].hops.get(packet.entered as usize) else {
            return Some(id);
        };
        packet.entered += 1;
        let hop = &mut self.hops[at.index()];
        match hop.hop.enqueue(self.now, id, packet.size) {
            Ok(()) => self.arm(at),
            Err(cause) => self.lose(at, id, cause),
        }
        None
    }

    /// The next packet that has left the hop `at` by now and is at the end of its route. The others
    /// go on. Afterwards the hop's next event is in the queue.
    pub fn next_arrival(&mut self, at: HopId) -> Option<PacketId> {
        loop {
            let id = match self.copy.take() {
                Some(id) => id,
                None => self.depart(at)?,
            };
            if let Some(id) = self.enter(id) {
                return Some(id);
            }
        }
    }

    fn depart(&mut self, at: HopId) -> Option<PacketId> {
        loop {
            let hop = &mut self.hops[at.index()];
            let Some(departure) = hop.hop.poll(self.now) else {
                if hop.armed <= self.now {
                    hop.armed = Instant::MAX;
                }
                self.arm(at);
                return None;
            };
            let id = departure.item;
            let (copies, corrupted) = match departure.fate {
                Fate::Arrived { copies, corrupted } => (copies, corrupted),
                Fate::Lost(cause) => {
                    self.lose(at, id, cause);
                    continue;
                }
            };
            if let Some(word) = corrupted {
                self.corrupt(id, word);
            }
            if self.taps.watches(at) {
                self.taps.left(self.now, at, &self.packets[id], &self.routes);
            }
            if copies > 1 {
                self.copy = Some(self.packets.copy(id));
            }
            return Some(id);
        }
    }

    fn arm(&mut self, at: HopId) {
        let hop = &mut self.hops[at.index()];
        if let Some(next) = hop.hop.next_event().filter(|next| *next < hop.armed) {
            hop.armed = next;
            self.events.push(next, Event::Hop(at));
        }
    }

    fn lose(&mut self, at: HopId, id: PacketId, cause: Drop) {
        if self.taps.watches(at) {
            self.taps.dropped(self.now, at, &self.packets[id], cause);
        }
        if cause == Drop::TooBig && !matches!(self.packets[id].body, Body::Datagram(_)) {
            self.complain(at, id);
        } else {
            self.packets.remove(id);
        }
    }

    /// The router before `at` tells the sender of the packet that it was too big (RFC 1191). Its message
    /// takes as long as the packet took at least, and is not lost.
    fn complain(&mut self, at: HopId, id: PacketId) {
        let packet = &self.packets[id];
        let passed = self.routes[packet.route.0 as usize].hops.iter().take(packet.entered as usize - 1);
        let delay = passed.fold(Duration::ZERO, |sum, hop| sum + self.hops[hop.index()].hop.config().delay);
        self.events.push(self.now + delay, Event::TooBig(at, id));
    }

    /// Flips a bit, or a few, anywhere in the packet.
    fn corrupt(&mut self, id: PacketId, word: u64) {
        let packet = &mut self.packets[id];
        let locators = &self.routes[packet.route.0 as usize].locators;
        match &mut packet.body {
            Body::Datagram(datagram) => datagram.corrupted = true,
            Body::Bytes(bytes) => bytes::flip(bytes, word),
            Body::Segment(segment) => {
                let mut bytes = bytes::encode(segment, &locators.reversed());
                bytes::flip(&mut bytes, word);
                packet.body = Body::Bytes(bytes);
            }
        }
    }
}
