//! All connections of one host.

mod arrival;
mod changes;
mod cover;
mod intercept;
mod opening;
mod packets;
mod recall;
mod secure;
mod sharing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use polypath_transport::Event as TcpEvent;
use polypath_transport::{Connection, PathConfig, Ports, Record, Segment, State};
use polypath_wire::deadlines::Numbered;
use polypath_wire::{Instant, PathId, Seed};

use crate::beside::SharedPaths;
use crate::config::{EndpointConfig, ListenConfig};
use crate::cover::{Cargo, Cover, Plain};
use crate::demux::{Demux, Route, Trail};
use crate::error::OpenError;
use crate::isn::IsnKey;
use crate::known::KnownPaths;
use crate::lane::PacketLane;
use crate::news::News;
use crate::outlet::Outlet;
use crate::paths::Locators;
use crate::reset::RateLimit;
use crate::slots::{ConnectionHandle, Slot, Slots};
use crate::stats::EndpointStats;
use crate::unserved::Unserved;
use cover::AnyCover;
use intercept::Intercept;
pub use intercept::{Answer, Incoming};

/// What the application should know of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer opened the connection through the listener on this port; its handshake is complete.
    Accepted {
        /// Our port.
        port: u16,
    },
    /// The connection says so.
    Connection(TcpEvent),
    /// The connection is closed and reaches nobody. It remains for reading and for its statistics
    /// until it is [released](Endpoint::release).
    Closed,
}

/// All connections of one host, as one function of (configuration, seed, timed inputs).
///
/// Four kinds of method: *inputs* ([`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout),
/// [`connect`](Self::connect), [`listen`](Self::listen), and whatever is done to a connection through
/// [`connection_mut`](Self::connection_mut)), *outputs* ([`pump`](crate::pump()),
/// [`poll_event`](Self::poll_event), [`poll_record`](Self::poll_record), [`poll_timeout`](Self::poll_timeout)),
/// and *questions* ([`connection`](Self::connection), [`stats`](Self::stats), …).
/// After any input pump, which sends all that is ready, then poll events and records until `None`.
/// The pump returns the timeout.
///
/// A connection is known by its ports and by the locators of its paths. Nothing is authenticated here,
/// unless it is a [secure](Self::secure) endpoint: then the locators are HITs, proved by HIP.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint {
    slots: Slots,
    /// Where each segment is written before it is sent.
    segment: Box<Segment>,
    /// Packets of other transports beside the connections.
    lane: Option<Box<PacketLane>>,
    /// What stands between the connections and the network.
    cover: AnyCover,
    /// Slots that may have something to send or to say.
    ready: VecDeque<u32>,
    timers: Numbered,
    events: VecDeque<(ConnectionHandle, Event)>,
    records: VecDeque<(ConnectionHandle, Record)>,
    replies: VecDeque<Bytes>,
    resets: VecDeque<(Locators, Segment)>,
    config: EndpointConfig,
    demux: Demux,
    stats: EndpointStats,
    isn: IsnKey,
    next_port: u16,
    half_open: u32,
    unserved: Unserved,
    listeners: BTreeMap<u16, Box<ListenConfig>>,
    /// How SYNs for ports without a listener are answered, if not by a reset.
    intercept: Option<Box<Intercept>>,
    /// Where the last segment of a driver went that keeps no trails.
    last: Option<(Locators, Trail)>,
    reset_limit: RateLimit,
    /// What connections measured, for those to come.
    known: KnownPaths,
    /// What was measured on paths, for connections that were quiet.
    news: News,
    /// What connections have under way on paths that they share.
    shared: SharedPaths,
}

impl Endpoint {
    /// An endpoint without connections. Initial sequence numbers and ephemeral ports follow from `seed`.
    pub fn new(config: EndpointConfig, seed: Seed) -> Self {
        Self {
            isn: IsnKey::new(seed),
            next_port: opening::FIRST_EPHEMERAL_PORT + (seed.child("ports").0 % 0x4000) as u16,
            slots: Slots::default(),
            half_open: 0,
            unserved: Unserved::default(),
            listeners: BTreeMap::new(),
            intercept: None,
            demux: Demux::default(),
            last: None,
            timers: Numbered::default(),
            ready: VecDeque::new(),
            segment: Box::default(),
            resets: VecDeque::new(),
            reset_limit: RateLimit::new(config.resets_per_second),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            records: VecDeque::new(),
            stats: EndpointStats::default(),
            known: KnownPaths::default(),
            news: News::default(),
            shared: SharedPaths::default(),
            cover: AnyCover::Plain(Plain),
            lane: None,
            config,
        }
    }

    /// Sets the maximum number of connections. Existing connections stay open, even above it.
    pub fn limit_connections(&mut self, max: u32) {
        self.config.max_connections = max;
    }

    /// Accepts connections to our port `port`.
    pub fn listen(&mut self, port: u16, config: ListenConfig) -> Result<(), OpenError> {
        if self.listeners.contains_key(&port) {
            return Err(OpenError::PortTaken(port));
        }
        config.connection.check(None)?;
        self.listeners.insert(port, Box::new(config));
        Ok(())
    }

    /// Accepts no more connections to `port`; those accepted live on. Whether there was a listener.
    pub fn unlisten(&mut self, port: u16) -> bool {
        self.listeners.remove(&port).is_some()
    }

    /// A connection, if the handle is valid. It knows of its paths what was measured when it last sent or received.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.slots.find(handle).map(|slot| &slot.connection)
    }

    /// A connection to write to, read from or close. Poll afterwards. One that a peer opened counts as taken up from
    /// now on.
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let index = self.slots.index(handle)?;
        self.share_memory(index);
        let slot = self.slots.at(index)?;
        slot.unserved.take().into_iter().for_each(|peer| self.unserved.leave(peer));
        if !std::mem::replace(&mut slot.queued, true) {
            self.ready.push_back(index);
        }
        Some(&mut slot.connection)
    }

    /// Whether a connection has something to send or to say, so that pumping is worth it.
    pub fn has_output(&self, handle: ConnectionHandle) -> bool {
        self.connection(handle).is_some_and(Connection::has_output)
    }

    /// All connections, in no meaningful but a reproducible order.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionHandle, &Connection)> {
        self.slots.iter().map(|slot| (slot.handle, &slot.connection))
    }

    /// The application has no more interest in a connection it has closed or aborted: it is
    /// forgotten as soon as it is closed, and raises no more events. Data that nobody will read
    /// resets it (RFC 1122 §4.2.2.13), and a peer that has everything but does not finish is
    /// [not waited for](polypath_transport::ConnectionConfig::fin_wait) for ever. Pump afterwards.
    pub fn release(&mut self, handle: ConnectionHandle) {
        let Some(index) = self.slots.index(handle) else { return };
        self.serve(index);
        let Some(slot) = self.slots.at(index) else { return };
        slot.released = true;
        if slot.retired {
            self.slots.remove(index);
        } else {
            self.mark(index);
        }
    }

    /// Ports of a connection.
    pub fn ports(&self, handle: ConnectionHandle) -> Option<Ports> {
        self.slots.find(handle).map(|slot| slot.ports)
    }

    /// Locators of a path in use.
    pub fn locators(&self, handle: ConnectionHandle, path: PathId) -> Option<Locators> {
        self.slots.find(handle)?.paths.locators(path).copied()
    }

    /// Bytes that all connections hold, if they are [limited](EndpointConfig::memory).
    pub fn memory(&self) -> u64 {
        self.slots.memory()
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
        let path = self.start_path(now, index, locators, config);
        let path = path.ok_or(OpenError::TooManyPaths { max: self.config.max_paths })?;
        self.mark(index);
        Ok(path)
    }

    /// Removes a path. What is in flight on it is sent again on others.
    pub fn remove_path(&mut self, now: Instant, handle: ConnectionHandle, path: PathId) {
        let Some(index) = self.slots.index(handle) else { return };
        let Some(slot) = self.slots.at(index) else { return };
        if let Some((locators, counted)) = slot.paths.remove(path) {
            self.shared.leave(&locators, counted);
            self.demux.remove(&locators, slot.ports);
            self.demux.open(slot.ports, index); // late segments of the path are of no connection otherwise, and reset it
            slot.connection.remove_path(now, path);
            self.mark(index);
        }
    }

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Calling early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.timers.pop_due(now) {
            self.catch_up(now, index);
            if let Some(slot) = self.slots.at(index) {
                slot.connection.handle_timeout(now);
                self.mark(index);
            }
        }
        self.cover_timeout(now);
        self.lane.iter_mut().for_each(|lane| lane.handle_timeout(now));
    }

    /// Gives `outlet` the segments that are due, until it is full. What it gets counts as sent.
    pub(crate) fn transmit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        self.cover.transmit(now, outlet);
        self.transmit_frames(now, outlet);
        while !outlet.is_full()
            && let Some((locators, segment)) = self.resets.pop_front()
        {
            *self.segment = segment;
            self.cover.seal(now, &locators, Cargo::Segment(&mut self.segment), outlet);
        }
        while !outlet.is_full()
            && let Some(index) = self.ready.pop_front()
        {
            self.catch_up(now, index);
            self.tell_beside(now, index);
            self.give_turns(now, index);
            let Some(slot) = self.slots.at(index) else { continue };
            while let Some(path) = slot.connection.poll_transmit_into(now, &mut self.segment) {
                if let Some(locators) = slot.paths.locators(path) {
                    self.cover.seal(now, locators, Cargo::Segment(&mut self.segment), outlet);
                }
                if outlet.is_full() {
                    return self.ready.push_front(index);
                }
            }
            self.settle(now, index);
            if self.give_turns(now, index) {
                self.mark(index);
            }
        }
    }

    /// Takes a segment that was just read, to write the next one into its memory, and leaves another.
    pub fn reuse(&mut self, segment: &mut Box<Segment>) {
        std::mem::swap(&mut self.segment, segment);
    }

    /// The next IP packet that belongs to no connection: the answer to an echo request.
    #[must_use]
    pub fn poll_packet(&mut self) -> Option<Bytes> {
        self.replies.pop_front()
    }

    /// Whether there may be something to poll beside segments and the timeout.
    pub fn has_news(&self) -> bool {
        !self.events.is_empty() || !self.records.is_empty() || self.cover.has_news()
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
        let connections = self.timers.next();
        if !self.cover.authenticates() {
            return connections; // no peers: nothing for a cover or a lane to do in time
        }
        let lane = self.lane.as_ref().and_then(|lane| lane.poll_timeout());
        connections.into_iter().chain(self.cover.poll_timeout()).chain(lane).min()
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

    /// A connection that a peer opened does not wait any more.
    fn serve(&mut self, index: u32) {
        let peer = self.slots.at(index).and_then(|slot| slot.unserved.take());
        peer.into_iter().for_each(|peer| self.unserved.leave(peer));
    }

    /// Takes what a connection has to say beside segments.
    #[inline]
    fn settle(&mut self, now: Instant, index: u32) {
        self.share_memory(index);
        self.hear_paths(now, index);
        self.slots.rouse(index);
        let Some(slot) = self.slots.at(index) else { return };
        slot.queued = false;
        let (mut more, mut finished) = (false, false);
        while let Some(event) = slot.connection.poll_event() {
            finished |= event == TcpEvent::Finished;
            more |= slot.react(now, event);
            let accepted = event == TcpEvent::Connected && std::mem::take(&mut slot.half_open);
            self.half_open -= u32::from(accepted);
            slot.held |= accepted;
            let port = slot.ports.local;
            let event = if accepted { Event::Accepted { port } } else { Event::Connection(event) };
            if !slot.released && slot.held {
                self.events.push_back((slot.handle, event));
            }
        }
        if more {
            return self.mark(index);
        }
        while let Some(record) = slot.connection.poll_record() {
            self.records.push_back((slot.handle, record));
        }
        let state = slot.connection.state();
        if finished || state == State::Closed {
            self.remember(now, index);
        }
        let Some(slot) = self.slots.at(index) else { return };
        if state == State::Closed {
            return self.retire(index);
        }
        if state == State::FinWait2 && slot.released {
            slot.connection.limit_fin_wait(now);
        }
        self.timers.set(index, slot.connection.poll_timeout());
    }

    /// Counts what a connection holds, and limits it if memory is short.
    #[inline]
    fn share_memory(&mut self, index: u32) {
        if let Some(most) = self.config.memory {
            self.slots.share_memory(index, most);
        }
    }

    /// Ends the connection with that key if it only waits for late segments.
    fn vacate(&mut self, locators: &Locators, ports: Ports) {
        let Some(Route { index, .. }) = self.demux.find(locators, ports) else { return };
        if self.slots.get(index).is_some_and(|slot| slot.connection.state() == State::TimeWait) {
            self.retire(index);
        }
    }

    /// Takes a closed connection out of the reach of segments and timers.
    fn retire(&mut self, index: u32) {
        self.timers.set(index, None);
        let Some(slot) = self.slots.at(index).filter(|slot| !slot.retired) else { return };
        slot.retired = true;
        for (_, locators, counted) in slot.paths.counted() {
            self.shared.leave(locators, std::mem::take(counted));
        }
        for (_, locators) in slot.paths.iter() {
            self.demux.remove(&locators, slot.ports);
        }
        self.demux.close(slot.ports, index);
        self.half_open -= u32::from(slot.half_open);
        if slot.released || !slot.held {
            self.serve(index);
            self.slots.remove(index);
        } else {
            self.events.push_back((slot.handle, Event::Closed));
        }
    }
}

impl Slot {
    /// What an event asks of the endpoint itself; whether there is more to send because of it.
    fn react(&mut self, now: Instant, event: TcpEvent) -> bool {
        match event {
            TcpEvent::Readable if self.released => self.connection.abort(now),
            TcpEvent::Probed if self.released => self.connection.relay(now, None),
            TcpEvent::Connected if !self.half_open && self.paths.len() > 1 => {
                self.paths.iter().for_each(|(path, _)| self.connection.announce(now, path));
            }
            _ => return false,
        }
        true
    }
}
