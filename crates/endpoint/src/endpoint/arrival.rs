//! What happens when something arrives.

use bytes::BytesMut;
use polypath_transport::{CloseReason, Connection, DropReason, Ports, Segment};
use polypath_wire::tcp::{self, MIN_HEADER_LEN, TcpFlags};
use polypath_wire::{Ecn, Instant, PathId, Seq, WireError, shim};

use super::Endpoint;
use crate::cover::{Cover, Inner};
use crate::demux::{Route, Trail};
use crate::frame;
use crate::input::Input;
use crate::packet::{Packet, decode_packet};
use crate::paths::{Locators, PathTable};
use crate::reset::reset_for;
use crate::slots::{ConnectionHandle, Join, Slot};

/// Most connections with the same ports that are looked at for a segment from new locators.
const MAX_CANDIDATES: usize = 8;
/// Most echo replies that wait to be sent.
const MAX_REPLIES: usize = 64;

impl Endpoint {
    /// Something arrived.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Segment { locators, mut segment } => {
                self.handle_segment(now, &locators, &mut segment);
            }
            Input::Datagram { locators, ecn, bytes } => {
                self.handle_datagram(now, &locators, ecn, bytes);
            }
            Input::Packet { bytes } => match decode_packet(&bytes) {
                Ok(packet) => self.handle_packet(now, packet),
                Err(error) => self.drop_unparsed(error),
            },
            Input::TooBig { locators, ports, seq, mtu } => self.too_big(now, &locators, ports, seq, mtu),
            Input::PathMtu { locators, mtu } => self.path_mtu(now, &locators, mtu),
            Input::LocalUp { local, info } => self.local_up(now, local, info),
            Input::LocalDown { local } => self.local_down(now, local),
            Input::Known { name, path, age } => self.known.insert(now, name, path, age),
        }
    }

    /// A UDP payload arrived: of a segment, or of HIP or ESP if the endpoint is secure. Returns the connection that it
    /// belongs to.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        locators: &Locators,
        ecn: Ecn,
        bytes: BytesMut,
    ) -> Option<ConnectionHandle> {
        let inner = self.cover.open(now, locators, ecn, bytes);
        self.apply(now);
        let Inner { path, next_header, checksum, ecn, bytes } = inner?;
        match next_header {
            tcp::PROTOCOL => match frame::decode(&bytes, checksum) {
                Ok(mut segment) => {
                    segment.ecn = ecn;
                    return self.handle_segment(now, &path, &mut segment);
                }
                Err(error) => self.drop_unparsed(error),
            },
            shim::NEXT_HEADER => self.handle_frame(now, &path, ecn, &bytes),
            _ => self.cover.note_other(),
        }
        None
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        match packet {
            Packet::Segment { locators, mut segment } => {
                self.handle_segment(now, &locators, &mut segment);
            }
            Packet::TooBig { locators, ports, seq, mtu } => self.too_big(now, &locators, ports, seq, mtu),
            Packet::Unreachable { locators, ports, seq, reason } => {
                self.unreachable(&locators, ports, seq, reason);
            }
            Packet::Echo { reply } if self.replies.len() < MAX_REPLIES => self.replies.push_back(reply),
            Packet::Echo { .. } | Packet::Other => {}
        }
    }

    /// Makes the segments of a path fit a router's MTU, but not smaller than every link must carry.
    fn too_big(&mut self, now: Instant, locators: &Locators, ports: Ports, seq: Seq, mtu: u32) {
        let Some(Route { index, path }) = self.demux.find(locators, ports) else { return };
        let Some(slot) = self.slots.at(index).filter(|s| s.connection.has_in_flight(seq)) else { return };
        let (least_mtu, ip_header) = if locators.remote.is_ipv4() { (576, 20) } else { (1280, 40) };
        slot.connection.path_mss(now, path, mtu.max(least_mtu) - ip_header - MIN_HEADER_LEN as u32);
        self.stats.too_big += 1;
        self.mark(index);
    }

    /// A SYN of ours cannot be delivered.
    fn unreachable(&mut self, locators: &Locators, ports: Ports, seq: Seq, reason: CloseReason) {
        let Some(Route { index, .. }) = self.demux.find(locators, ports) else { return };
        if let Some(slot) = self.slots.at(index) {
            slot.connection.unreachable(seq, reason);
            self.mark(index);
        }
    }

    /// A segment arrived, in a slot of the driver's: its payload is taken out of it. Returns the
    /// connection that it belongs to.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        locators: &Locators,
        segment: &mut Segment,
    ) -> Option<ConnectionHandle> {
        let last = self.last.filter(|(known, _)| known == locators);
        let mut trail = last.map_or_else(Trail::default, |(_, trail)| trail);
        let handle = self.handle_segment_on(&mut trail, now, locators, segment);
        self.last = Some((*locators, trail));
        handle
    }

    /// The same for a driver that keeps a trail for each pair of locators.
    pub fn handle_segment_on(
        &mut self,
        trail: &mut Trail,
        now: Instant,
        locators: &Locators,
        segment: &mut Segment,
    ) -> Option<ConnectionHandle> {
        self.stats.segments += 1;
        let ports = Ports { local: segment.header.dst_port, remote: segment.header.src_port };
        let known = self.demux.follow(trail, locators, ports);
        if let Some(Route { index, path }) = known.or_else(|| self.join(now, locators, ports, segment)) {
            self.share_memory(index);
            self.catch_up(now, index);
            let slot = self.slots.at(index)?;
            slot.connection.handle_mut(now, path, segment);
            if !std::mem::replace(&mut slot.queued, true) {
                self.ready.push_back(index);
            }
            return Some(slot.handle);
        }
        if is_syn(segment) && self.listeners.contains_key(&ports.local) {
            self.accept(now, *locators, ports, segment);
        } else if is_syn(segment) && self.hold(*locators, ports, segment) {
            return None;
        } else if self.demux.candidates(ports).next().is_some() || self.is_early(segment) {
            // Perhaps a late segment of a path that will join, or an early one: a reset would end its connection.
            self.stats.drops[DropReason::UnknownPath as usize] += 1;
        } else {
            self.refuse(now, *locators, segment);
        }
        None
    }

    /// A segment from new locators that belongs to a connection which takes new paths.
    fn join(&mut self, now: Instant, locators: &Locators, ports: Ports, segment: &Segment) -> Option<Route> {
        let index = self.joinable(locators, ports, segment)?;
        let join = self.slots.get(index)?.join;
        let config = self.cover.config_of(locators).or(join.map(|join| join.path))?;
        let config = self.recalled(now, locators, config);
        let proved = self.cover.is_up(locators);
        let slot = self.slots.at(index)?;
        let path = match proved {
            true => slot.connection.add_path(now, config)?,
            false => slot.connection.add_unproved_path(now, config)?,
        };
        slot.paths.insert(path, *locators);
        let route = Route { index, path };
        self.demux.insert(locators, ports, route);
        self.stats.paths_joined += 1;
        Some(route)
    }

    /// The one connection with these ports that would take `segment` on a new path.
    fn joinable(&self, locators: &Locators, ports: Ports, segment: &Segment) -> Option<u32> {
        let max = self.max_paths();
        let is_peer = |slot: &Slot| !self.cover.authenticates() || slot.is_with(locators.remote.ip());
        let takes = |slot: &Slot| slot.paths.len() < max && is_peer(slot) && slot.takes(segment);
        let candidates = self.demux.candidates(ports).take(MAX_CANDIDATES);
        let mut fitting = candidates.filter(|index| self.slots.get(*index).is_some_and(takes));
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Answers a SYN for one of our listeners.
    fn accept(&mut self, now: Instant, locators: Locators, ports: Ports, syn: &Segment) {
        let full = self.slots.len() >= self.config.max_connections as usize;
        if full && self.cover.authenticates() {
            self.stats.refused += 1;
            return self.refuse(now, locators, syn); // a peer that is known may try another way
        }
        let remote = locators.remote.ip();
        let peer = self.cover.peer_at(remote).map_or(remote, |hit| hit.as_ipv6().into());
        let admitted = self.half_open < self.config.max_half_open && self.unserved.admits(peer, &self.config);
        if full || !admitted {
            self.stats.refused += 1;
            return;
        }
        let Some(listener) = self.listeners.get(&ports.local) else { return };
        let isn = self.isn.at(now, &locators, ports);
        let mut config = listener.connection.clone();
        config.early_data = self.cover.takes_early_data(remote);
        let covered = self.cover.config_of(&locators);
        let takes_paths = listener.accept_paths || covered.is_some();
        let path = covered.unwrap_or(listener.path);
        let join = takes_paths.then_some(Join { isn: syn.header.seq, path });
        let first = self.recalled(now, &locators, path);
        let connection = Connection::accept(now, config, ports, isn, &[first], PathId::FIRST, syn);
        self.stats.accepted += 1;
        self.half_open += 1;
        let handle = self.install(connection, ports, PathTable::new([locators]), join);
        if let Some(slot) = self.slots.index(handle).and_then(|index| self.slots.at(index)) {
            (slot.half_open, slot.held) = (true, false);
            slot.unserved = Some(peer);
            self.unserved.enter(peer);
        }
    }

    /// Whether it is data whose SYN did not come, or comes after it.
    fn is_early(&self, segment: &Segment) -> bool {
        let flags = segment.header.flags;
        self.cover.authenticates() && !flags.intersects(TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST)
    }

    /// Answers a segment of no connection with a reset, within limits.
    pub(super) fn refuse(&mut self, now: Instant, locators: Locators, segment: &Segment) {
        self.stats.drops[DropReason::NoConnection as usize] += 1;
        let Some(reset) = reset_for(segment) else { return };
        if self.reset_limit.allow(now) {
            self.stats.resets_sent += 1;
            self.resets.push_back((locators, reset));
        } else {
            self.stats.resets_suppressed += 1;
        }
    }

    fn drop_unparsed(&mut self, error: WireError) {
        let reason = if error.is_checksum() { DropReason::Checksum } else { DropReason::Malformed };
        self.stats.drops[reason as usize] += 1;
    }
}

fn is_syn(segment: &Segment) -> bool {
    let flags = segment.header.flags;
    flags.contains(TcpFlags::SYN) && !flags.intersects(TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN)
}

impl Slot {
    /// Whether a segment from new locators looks like one of this connection's peer. A SYN does if it
    /// has the peer's initial sequence number: the peer tries another path before it has our answer.
    fn takes(&self, segment: &Segment) -> bool {
        let Some(join) = self.join else { return false };
        let flags = segment.header.flags;
        if flags.contains(TcpFlags::SYN) {
            return is_syn(segment) && segment.header.seq == join.isn;
        }
        !flags.contains(TcpFlags::RST) && self.connection.recognizes(segment)
    }
}
