//! All connections of one host.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use polypath_transport::{
    Connection, ConnectionConfig, DropReason, PathConfig, Ports, Record, Segment, State,
};
use polypath_wire::tcp::{MIN_HEADER_LEN, TcpFlags};
use polypath_wire::{Instant, PathId, Seed, WireError};

use crate::config::{EndpointConfig, ListenConfig};
use crate::demux::{Demux, Route};
use crate::error::OpenError;
use crate::frame::decode_datagram;
use crate::input::Input;
use crate::isn::IsnKey;
use crate::packet::{Packet, decode_packet};
use crate::paths::{Locators, PathTable};
use crate::reset::{RateLimit, reset_for};
use crate::slots::{ConnectionHandle, Join, Slot, Slots};
use crate::stats::EndpointStats;
use crate::timers::Timers;

/// A segment to be sent, and between which locators.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The connection it belongs to; none for a reset that answers a stranger.
    pub handle: Option<ConnectionHandle>,
    /// Between which locators.
    pub locators: Locators,
    /// The segment.
    pub segment: Segment,
}

/// What the application should know of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer opened the connection through the listener on this port; its handshake is complete.
    Accepted {
        /// Our port.
        port: u16,
    },
    /// The connection says so.
    Connection(polypath_transport::Event),
    /// The connection is closed and reaches nobody. It remains for reading and for its statistics
    /// until it is [released](Endpoint::release).
    Closed,
}

/// All connections of one host, as one function of (configuration, seed, timed inputs).
///
/// Four kinds of method: *inputs* ([`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout),
/// [`connect`](Self::connect), [`listen`](Self::listen), and whatever is done to a connection through
/// [`connection_mut`](Self::connection_mut)), *outputs* ([`poll_transmit`](Self::poll_transmit),
/// [`poll_event`](Self::poll_event), [`poll_record`](Self::poll_record), [`poll_timeout`](Self::poll_timeout)),
/// and *questions* ([`connection`](Self::connection), [`stats`](Self::stats), …).
/// After any input poll in this order: transmit until `None`, events and records until `None`, then the
/// timeout. [`pump`](crate::pump()) does the first and the last.
///
/// A connection is known by its ports and by the locators of its paths. Nothing is authenticated here.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    isn: IsnKey,
    next_port: u16,
    slots: Slots,
    half_open: u32,
    listeners: BTreeMap<u16, ListenConfig>,
    demux: Demux,
    timers: Timers,
    /// Slots that may have something to send or to say.
    ready: VecDeque<u32>,
    resets: VecDeque<(Locators, Segment)>,
    reset_limit: RateLimit,
    replies: VecDeque<Bytes>,
    events: VecDeque<(ConnectionHandle, Event)>,
    records: VecDeque<(ConnectionHandle, Record)>,
    stats: EndpointStats,
}

const FIRST_EPHEMERAL_PORT: u16 = 49_152;

impl Endpoint {
    /// An endpoint without connections. Initial sequence numbers and ephemeral ports follow from `seed`.
    pub fn new(config: EndpointConfig, seed: Seed) -> Self {
        Self {
            isn: IsnKey::new(seed),
            next_port: FIRST_EPHEMERAL_PORT + (seed.child("ports").0 % 0x4000) as u16,
            slots: Slots::default(),
            half_open: 0,
            listeners: BTreeMap::new(),
            demux: Demux::default(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            resets: VecDeque::new(),
            reset_limit: RateLimit::new(config.resets_per_second),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            records: VecDeque::new(),
            stats: EndpointStats::default(),
            config,
        }
    }

    /// Opens a connection to the peer's port `remote_port`: the SYN leaves on the first path, and the
    /// others join when it is answered.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ConnectionConfig,
        remote_port: u16,
        paths: &[(Locators, PathConfig)],
    ) -> Result<ConnectionHandle, OpenError> {
        let (first, _) = paths.first().ok_or(OpenError::NoPath)?;
        if paths.len() > self.max_paths() {
            return Err(OpenError::TooManyPaths { max: self.config.max_paths });
        }
        if self.slots.len() >= self.config.max_connections as usize {
            return Err(OpenError::TooManyConnections { max: self.config.max_connections });
        }
        let ports = self.free_ports(remote_port, paths).ok_or(OpenError::InUse(*first))?;
        let isn = self.isn.at(now, first, ports);
        let path_configs: Vec<_> = paths.iter().map(|(_, config)| *config).collect();
        let connection = Connection::connect(now, config, ports, isn, &path_configs);
        self.stats.connected += 1;
        let table = PathTable::new(paths.iter().map(|(locators, _)| *locators));
        Ok(self.install(connection, ports, table, None))
    }

    /// Accepts connections to our port `port`.
    pub fn listen(&mut self, port: u16, config: ListenConfig) -> Result<(), OpenError> {
        if self.listeners.contains_key(&port) {
            return Err(OpenError::PortTaken(port));
        }
        self.listeners.insert(port, config);
        Ok(())
    }

    /// Accepts no more connections to `port`; those accepted live on. Whether there was a listener.
    pub fn unlisten(&mut self, port: u16) -> bool {
        self.listeners.remove(&port).is_some()
    }

    /// A connection, if the handle is valid.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.slots.find(handle).map(|slot| &slot.connection)
    }

    /// A connection to write to, read from or close. Poll afterwards.
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let index = self.slots.index(handle)?;
        self.mark(index);
        self.slots.at(index).map(|slot| &mut slot.connection)
    }

    /// All connections, in no meaningful but a reproducible order.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionHandle, &Connection)> {
        self.slots.iter().map(|slot| (slot.handle, &slot.connection))
    }

    /// The application has no more interest in a connection it has closed or aborted: it is
    /// forgotten as soon as it is closed, and raises no more events. Data that nobody will read
    /// resets it (RFC 1122 §4.2.2.13).
    pub fn release(&mut self, handle: ConnectionHandle) {
        let Some(index) = self.slots.index(handle) else { return };
        let Some(slot) = self.slots.at(index) else { return };
        slot.released = true;
        if slot.retired {
            self.slots.remove(index);
        }
    }

    /// Ports of a connection.
    pub fn ports(&self, handle: ConnectionHandle) -> Option<Ports> {
        self.slots.find(handle).map(|slot| slot.ports)
    }

    /// Locators of a path in use.
    pub fn locators(&self, handle: ConnectionHandle, path: PathId) -> Option<Locators> {
        self.slots.find(handle)?.paths.locators(path)
    }

    /// Counters.
    pub fn stats(&self) -> &EndpointStats {
        &self.stats
    }

    /// Adds a path to an open connection.
    pub fn add_path(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        locators: Locators,
        config: PathConfig,
    ) -> Result<PathId, OpenError> {
        let max = self.max_paths();
        let index = self.slots.index(handle).ok_or(OpenError::NoConnection)?;
        let slot = self.slots.at(index).filter(|s| !s.retired).ok_or(OpenError::NoConnection)?;
        if slot.paths.len() >= max {
            return Err(OpenError::TooManyPaths { max: self.config.max_paths });
        }
        if self.demux.find(&locators, slot.ports).is_some() {
            return Err(OpenError::InUse(locators));
        }
        let path = slot.connection.add_path(now, config);
        slot.paths.insert(path, locators);
        self.demux.insert(&locators, slot.ports, Route { index, path });
        self.mark(index);
        Ok(path)
    }

    /// Removes a path. What is in flight on it is sent again on others.
    pub fn remove_path(&mut self, now: Instant, handle: ConnectionHandle, path: PathId) {
        let Some(index) = self.slots.index(handle) else { return };
        let Some(slot) = self.slots.at(index) else { return };
        if let Some(locators) = slot.paths.remove(path) {
            self.demux.remove(&locators, slot.ports);
            slot.connection.remove_path(now, path);
            self.mark(index);
        }
    }

    /// Something arrived.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Segment { locators, segment } => self.handle_segment(now, locators, segment),
            Input::Datagram { locators, bytes } => match decode_datagram(&bytes) {
                Ok(segment) => self.handle_segment(now, locators, segment),
                Err(error) => self.drop_unparsed(error),
            },
            Input::Packet { bytes } => match decode_packet(&bytes) {
                Ok(packet) => self.handle_packet(now, packet),
                Err(error) => self.drop_unparsed(error),
            },
        }
    }

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Calling early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.timers.pop_due(now) {
            if let Some(slot) = self.slots.at(index) {
                slot.connection.handle_timeout(now);
                self.mark(index);
            }
        }
    }

    /// The next segment to send. A segment returned counts as sent.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some((locators, segment)) = self.resets.pop_front() {
            return Some(Transmit { handle: None, locators, segment });
        }
        while let Some(index) = self.ready.front().copied() {
            if let Some(slot) = self.slots.at(index) {
                while let Some(transmit) = slot.connection.poll_transmit(now) {
                    if let Some(locators) = slot.paths.locators(transmit.path) {
                        return Some(Transmit {
                            handle: Some(slot.handle),
                            locators,
                            segment: transmit.segment,
                        });
                    }
                }
            }
            self.ready.pop_front();
            self.settle(now, index);
        }
        None
    }

    /// The next IP packet that belongs to no connection: the answer to an echo request.
    #[must_use]
    pub fn poll_packet(&mut self) -> Option<Bytes> {
        self.replies.pop_front()
    }

    /// The next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<(ConnectionHandle, Event)> {
        self.events.pop_front()
    }

    /// The next observation.
    #[must_use]
    pub fn poll_record(&mut self) -> Option<(ConnectionHandle, Record)> {
        self.records.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: never late, sometimes early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        match packet {
            Packet::Segment { locators, segment } => self.handle_segment(now, locators, segment),
            Packet::TooBig { locators, ports, mtu, .. } => self.too_big(now, &locators, ports, mtu),
            Packet::Echo { reply } if self.replies.len() < MAX_REPLIES => self.replies.push_back(reply),
            Packet::Echo { .. } | Packet::Other => {}
        }
    }

    /// Makes the segments of a path fit a router's MTU, but not smaller than every link must carry.
    fn too_big(&mut self, now: Instant, locators: &Locators, ports: Ports, mtu: u32) {
        let Some(Route { index, path }) = self.demux.find(locators, ports) else { return };
        let Some(slot) = self.slots.at(index) else { return };
        let (least_mtu, ip_header) = if locators.remote.is_ipv4() { (576, 20) } else { (1280, 40) };
        slot.connection.path_mss(now, path, mtu.max(least_mtu) - ip_header - MIN_HEADER_LEN as u32);
        self.stats.too_big += 1;
        self.mark(index);
    }

    fn handle_segment(&mut self, now: Instant, locators: Locators, segment: Segment) {
        self.stats.segments += 1;
        let ports = Ports { local: segment.header.dst_port, remote: segment.header.src_port };
        let known = self.demux.find(&locators, ports);
        if let Some(Route { index, path }) = known.or_else(|| self.join(now, &locators, ports, &segment)) {
            if let Some(slot) = self.slots.at(index) {
                slot.connection.handle(now, path, segment);
                self.mark(index);
            }
        } else if is_syn(&segment) && self.listeners.contains_key(&ports.local) {
            self.accept(now, locators, ports, &segment);
        } else {
            self.refuse(now, locators, &segment);
        }
    }

    /// A segment from new locators that belongs to a connection which takes new paths.
    fn join(&mut self, now: Instant, locators: &Locators, ports: Ports, segment: &Segment) -> Option<Route> {
        let index = self.joinable(ports, segment)?;
        let slot = self.slots.at(index)?;
        let path = slot.connection.add_path(now, slot.join?.path);
        slot.paths.insert(path, *locators);
        let route = Route { index, path };
        self.demux.insert(locators, ports, route);
        self.stats.paths_joined += 1;
        Some(route)
    }

    /// The one connection with these ports that would take `segment` on a new path.
    fn joinable(&self, ports: Ports, segment: &Segment) -> Option<u32> {
        let max = self.max_paths();
        let takes = |slot: &Slot| slot.paths.len() < max && slot.takes(segment);
        let candidates = self.demux.candidates(ports).take(MAX_CANDIDATES);
        let mut fitting = candidates.filter(|index| self.slots.get(*index).is_some_and(takes));
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Answers a SYN for one of our listeners.
    fn accept(&mut self, now: Instant, locators: Locators, ports: Ports, syn: &Segment) {
        let full = self.slots.len() >= self.config.max_connections as usize;
        if full || self.half_open >= self.config.max_half_open {
            self.stats.refused += 1;
            return;
        }
        let Some(listener) = self.listeners.get(&ports.local) else { return };
        let isn = self.isn.at(now, &locators, ports);
        let config = listener.connection.clone();
        let join = listener.accept_paths.then_some(Join { isn: syn.header.seq, path: listener.path });
        let connection = Connection::accept(now, config, ports, isn, &[listener.path], PathId::FIRST, syn);
        self.stats.accepted += 1;
        self.half_open += 1;
        let handle = self.install(connection, ports, PathTable::new([locators]), join);
        if let Some(slot) = self.slots.index(handle).and_then(|index| self.slots.at(index)) {
            slot.half_open = true;
        }
    }

    /// Answers a segment of no connection with a reset, within limits.
    fn refuse(&mut self, now: Instant, locators: Locators, segment: &Segment) {
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

    fn install(
        &mut self,
        mut connection: Connection,
        ports: Ports,
        paths: PathTable,
        join: Option<Join>,
    ) -> ConnectionHandle {
        if self.config.record != Default::default() {
            connection.record(self.config.record);
        }
        let index = self.slots.insert(|handle| Slot {
            handle,
            connection,
            ports,
            paths,
            join,
            half_open: false,
            queued: false,
            retired: false,
            released: false,
        });
        let slot = self.slots.at(index).expect("it was inserted just now");
        for (path, locators) in slot.paths.iter() {
            self.demux.insert(&locators, ports, Route { index, path });
        }
        if join.is_some() {
            self.demux.open(ports, index);
        }
        let handle = slot.handle;
        self.mark(index);
        handle
    }

    /// Puts a slot in the queue of those that may have something to say.
    fn mark(&mut self, index: u32) {
        if let Some(slot) = self.slots.at(index)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push_back(index);
        }
    }

    /// Takes what a connection has to say beside segments.
    fn settle(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index) else { return };
        slot.queued = false;
        let mut unwanted_data = false;
        while let Some(event) = slot.connection.poll_event() {
            let event = match event {
                polypath_transport::Event::Connected if slot.half_open => {
                    slot.half_open = false;
                    self.half_open -= 1;
                    Event::Accepted { port: slot.ports.local }
                }
                other => Event::Connection(other),
            };
            if slot.released {
                unwanted_data |= event == Event::Connection(polypath_transport::Event::Readable);
            } else if !slot.half_open {
                self.events.push_back((slot.handle, event));
            }
        }
        if unwanted_data {
            slot.connection.abort(now);
            return self.mark(index);
        }
        while let Some(record) = slot.connection.poll_record() {
            self.records.push_back((slot.handle, record));
        }
        if slot.connection.state() == State::Closed {
            self.retire(index);
        } else {
            self.timers.set(index, slot.connection.poll_timeout());
        }
    }

    /// Takes a closed connection out of the reach of segments and timers.
    fn retire(&mut self, index: u32) {
        self.timers.set(index, None);
        let Some(slot) = self.slots.at(index).filter(|slot| !slot.retired) else { return };
        slot.retired = true;
        for (_, locators) in slot.paths.iter() {
            self.demux.remove(&locators, slot.ports);
        }
        self.demux.close(slot.ports, index);
        if slot.half_open {
            self.half_open -= 1;
            slot.released = true;
        }
        if slot.released {
            self.slots.remove(index);
        } else {
            self.events.push_back((slot.handle, Event::Closed));
        }
    }

    /// Our next ephemeral port that no connection between these locators has.
    fn free_ports(&mut self, remote: u16, paths: &[(Locators, PathConfig)]) -> Option<Ports> {
        for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
            let ports = Ports { local: self.next_port, remote };
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            let taken = self.listeners.contains_key(&ports.local)
                || paths.iter().any(|(locators, _)| self.demux.find(locators, ports).is_some());
            if !taken {
                return Some(ports);
            }
        }
        None
    }

    fn max_paths(&self) -> usize {
        usize::from(self.config.max_paths.clamp(1, 64))
    }
}

/// Most connections with the same ports that are looked at for a segment from new locators.
const MAX_CANDIDATES: usize = 8;
/// Most echo replies that wait to be sent.
const MAX_REPLIES: usize = 64;

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
        flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::RST)
    }
}
