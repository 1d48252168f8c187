//! What lies between the hosts: hops, routes over them, and the packets on their way.

use std::collections::BTreeMap;

use polypath_endpoint::{Locators, Trail};
use polypath_wire::{Duration, Ecn, Instant};

use crate::bytes;
use crate::events::{Alarm, Event, Events};
use crate::packet::{Body, PacketId, Packets, Traveller};
use crate::route::{Route, RouteId};
use crate::tap::Taps;
use crate::topology::{HopId, NodeId};
use polypath_hop::{Drop, Fate, Hop, Label};

/// Stands after the last hop of a route.
const END: HopId = HopId(u32::MAX);

#[derive(Debug, Default)]
pub(crate) struct Net {
    pub now: Instant,
    pub events: Events,
    pub packets: Packets,
    pub hops: Vec<NetHop>,
    pub hop_names: Vec<String>,
    pub routes: Vec<Route>,
    /// The same by the locators as the far end sees them.
    by_locators: BTreeMap<Locators, RouteId>,
    /// The hops of all routes, one after the other, each with [`END`].
    steps: Vec<HopId>,
    pub taps: Taps,
    /// Packets sent.
    sent: u64,
    /// The second copy of a duplicated packet.
    copy: Option<(Traveller, u32)>,
}

/// A hop and when its next event is due, in as few lines of the cache as may be: each packet of a large world brings
/// those of its hops in anew.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct NetHop {
    pub hop: Hop<Traveller>,
    pub alarm: Alarm,
}

const _: () = assert!(size_of::<NetHop>() == 3 * 64);

impl NetHop {
    fn due(&self) -> Instant {
        self.hop.next_event().unwrap_or(Instant::MAX)
    }

    /// Sees that its next event comes when it is due.
    fn arm(&mut self, events: &mut Events) {
        let due = self.due();
        events.set(&mut self.alarm, due);
    }
}

impl Net {
    /// Adds a hop.
    pub fn add_hop(&mut self, name: String, hop: Hop<Traveller>) {
        let alarm = Alarm::of_hop(HopId(self.hops.len() as u32));
        self.hops.push(NetHop { hop, alarm });
        self.hop_names.push(name);
    }

    /// Adds a route of `hops` to `to`, whose far end sees `locators`.
    pub fn add_route(&mut self, hops: Box<[HopId]>, to: NodeId, locators: Locators) -> RouteId {
        let id = RouteId(self.routes.len() as u32);
        let first = self.steps.len() as u32;
        self.steps.extend(hops.iter().copied().chain([END]));
        self.routes.push(Route { hops, to, locators, trail: Trail::default(), first });
        self.by_locators.insert(locators, id);
        id
    }

    /// The route whose far end sees `locators`.
    pub fn route_of(&self, locators: &Locators) -> Option<RouteId> {
        self.by_locators.get(locators).copied()
    }

    /// Sends a packet on its way.
    pub fn send(&mut self, id: PacketId) {
        self.send_from(self.routes[self.packets[id].route.0 as usize].first, id);
    }

    /// The same if it is known where its route begins.
    pub fn send_from(&mut self, step: u32, id: PacketId) {
        self.sent += 1;
        let packet = &mut self.packets[id];
        packet.number = self.sent;
        let size = packet.size;
        self.enter(Traveller { packet: id, step }, size);
    }

    /// How long a packet waits in the queues of a route as they are now.
    pub fn wait(&self, route: RouteId) -> Duration {
        let hops = self.routes[route.0 as usize].hops.iter();
        hops.fold(Duration::ZERO, |sum, hop| sum + self.hops[hop.index()].hop.wait(self.now))
    }

    /// Puts a packet into the next hop of its route. Gives it back if it is at the end.
    fn enter(&mut self, Traveller { packet, step }: Traveller, size: u32) -> Option<PacketId> {
        let at = self.steps[step as usize];
        if at == END {
            return Some(packet);
        }
        let hop = &mut self.hops[at.index()];
        let label = match hop.hop.reads_labels() {
            true => {
                let packet = &self.packets[packet];
                Label { size, flow: packet.flow(), ecn_capable: packet.ecn != Ecn::None }
            }
            false => size.into(),
        };
        let before = hop.due();
        match hop.hop.enqueue(self.now, Traveller { packet, step: step + 1 }, label) {
            Ok(()) if hop.due() == before => {}
            Ok(()) => hop.arm(&mut self.events),
            Err(cause) => self.lose(at, packet, cause),
        }
        None
    }

    /// The next packet that has left the hop `at` by now and is at the end of its route. The others
    /// go on. Afterwards the hop's next event is known.
    pub fn next_arrival(&mut self, at: HopId) -> Option<PacketId> {
        loop {
            let (traveller, size) = match self.copy {
                None => self.depart(at)?,
                Some(copy) => {
                    self.copy = None;
                    copy
                }
            };
            if let Some(id) = self.enter(traveller, size) {
                return Some(id);
            }
        }
    }

    fn depart(&mut self, at: HopId) -> Option<(Traveller, u32)> {
        loop {
            let hop = &mut self.hops[at.index()];
            let Some(departure) = hop.hop.poll(self.now) else {
                hop.arm(&mut self.events);
                return None;
            };
            let (traveller, id, size) = (departure.item, departure.item.packet, departure.size);
            let (copies, corrupted) = match departure.fate {
                Fate::Arrived { copies, corrupted, marked } => {
                    if marked {
                        self.packets[id].ecn = Ecn::Marked;
                    }
                    (copies, corrupted)
                }
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
                self.copy = Some((Traveller { packet: self.packets.copy(id), ..traveller }, size));
            }
            return Some((traveller, size));
        }
    }

    #[cold]
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
        let route = &self.routes[self.packets[id].route.0 as usize];
        let passed = route.hops.iter().take_while(|hop| **hop != at);
        let delay = passed.fold(Duration::ZERO, |sum, hop| sum + self.hops[hop.index()].hop.config().delay);
        self.events.push(self.now + delay, Event::TooBig(at, id));
    }

    /// Flips a bit, or a few, anywhere in the packet.
    #[cold]
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
