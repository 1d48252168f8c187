//! Who sends what: TCP flows whose every byte is checked, and sources of datagrams.

use std::net::SocketAddr;

use bytes::Bytes;
use polypath_endpoint::{
    ConnectionHandle, Event as EndpointEvent, ListenConfig, Locators, OpenError, PathReport, Reach,
};
use polypath_hip::State as HipState;
use polypath_transport::{
    Blocking, CloseReason, Connection, ConnectionConfig, ConnectionStats, Event, PathConfig, PathStats,
    Pattern, Payload,
};
use polypath_wire::hip::{Hit, udp};
use polypath_wire::millis;
use polypath_wire::{Duration, Instant, PathId, Rate};
use serde::{Deserialize, Serialize};

use crate::host::{Host, Side};
use crate::net::Net;
use crate::reordering::{Reordering, Watch};
use crate::route::Path;

/// A TCP flow in a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId(pub(crate) u32);

impl FlowId {
    /// Its number in the world, from 0, as traces have it.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A TCP flow: one connection over one or more paths between the same two hosts. The receiver reads
/// at once and checks that every byte comes once, in order.
#[derive(Clone, PartialEq, Debug, Default)]
#[repr(C)]
pub struct FlowConfig {
    /// Bytes to send; none sends until the end of the run.
    pub bytes: Option<u64>,
    /// What to send, instead of a pattern of `bytes` bytes. What arrives is kept for
    /// [`World::take_received`](crate::World::take_received).
    pub content: Option<Bytes>,
    /// What it is called in traces.
    pub name: String,
    /// Its paths, all from the sending to the receiving host.
    pub paths: Vec<(Path, PathConfig)>,
    /// The connection stays open after `bytes`, for [`World::write`](crate::World::write).
    pub open: bool,
    /// The sender sees all queues of its paths, always: a bound on what estimates can do. Not if it is
    /// secure.
    pub oracle: bool,
    /// When the connection is opened.
    pub start: Instant,
    /// When it is aborted, if it is not finished.
    pub stop: Option<Instant>,
    /// The sender's end.
    pub sender: ConnectionConfig,
    /// The receiver's end.
    pub receiver: ConnectionConfig,
}

/// What became of a flow.
#[derive(Clone, PartialEq, Debug, Default)]
#[repr(C)]
pub struct FlowReport {
    /// Bytes the receiver has read: in order, each once.
    pub bytes: u64,
    /// Whether the receiver ever read a byte that was not sent.
    pub corrupted: bool,
    /// Bytes read in each span of the world's `bin`, from the start of the run.
    pub bins: Vec<u64>,
    /// What it is called.
    pub name: String,
    /// When the connection was opened.
    pub started: Instant,
    /// When its handshake was complete.
    pub connected: Option<Instant>,
    /// When the receiver had read all bytes.
    pub finished: Option<Instant>,
    /// Why the connection ended early, if it did.
    pub lost: Option<CloseReason>,
    /// Why it could not be opened.
    pub refused: Option<OpenError>,
    /// Counters of the sender's end.
    pub sender: ConnectionStats,
    /// Counters of the sender's paths.
    pub sender_paths: Vec<PathStats>,
    /// What is below the sender's paths, in their order, if they are secure.
    pub secure_paths: Vec<Option<PathReport>>,
    /// Counters of the receiver's end.
    pub receiver: ConnectionStats,
    /// Counters of the receiver's paths, in the order of the flow's.
    pub receiver_paths: Vec<PathStats>,
    /// Head-of-line blocking at the receiver.
    pub blocking: Blocking,
    /// How far data arrived out of order, if the world watches it.
    pub reordering: Reordering,
}

impl FlowReport {
    /// Bytes read over a span that ends now, as a rate.
    pub fn goodput(&self, over: Duration) -> Rate {
        Rate::from_bytes_per(self.bytes, over)
    }

    /// Retransmissions of all paths.
    pub fn retransmissions(&self) -> u64 {
        self.sender_paths.iter().map(|p| p.retransmissions).sum()
    }
}

/// Without an end: 2⁶² bytes are 1,169 years at 1 Gbit/s.
const UNLIMITED: u64 = 1 << 62;

/// A flow under way.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flow {
    pub key: u32,
    pub receiver: Option<ConnectionHandle>,
    pub bin: Duration,
    pub report: FlowReport,
    pub config: FlowConfig,
    pub port: u16,
    pub sender: Option<ConnectionHandle>,
    /// Bytes of the content that the connection has taken.
    pub written: usize,
    /// What arrived of the content, in order.
    pub received: Vec<Payload>,
    /// In which order data arrived.
    pub watch: Watch,
}

impl Flow {
    /// The receiving host's part at the start.
    pub fn listen(&self, host: &mut Host) -> Result<(), OpenError> {
        let path = self.config.paths.first().map_or_else(PathConfig::default, |(_, path)| *path);
        let connection = self.config.receiver.clone();
        host.endpoint.listen(self.port, ListenConfig { connection, path, accept_paths: true })
    }

    /// Begins the association that the connection needs, over the flow's paths.
    pub fn associate(&mut self, now: Instant, peer: Hit, id: u32, host: &mut Host) {
        let port = |mut address: SocketAddr| {
            address.set_port(udp::PORT);
            address
        };
        let pair =
            |locators: Locators| Locators { local: port(locators.local), remote: port(locators.remote) };
        let pairs = self.config.paths.iter().map(|(path, _)| pair(path.locators)).collect();
        if host.endpoint.association(peer) == Some(HipState::Established) {
            return self.open(now, host, id, Some(peer));
        }
        match host.endpoint.associate(host.clock.local(now), peer, Reach::Pairs(pairs)) {
            Ok(()) => host.waiting.push((peer, id)),
            Err(_) => self.report.refused = Some(OpenError::NoPath),
        }
    }

    /// Opens the connection, with `peer` if it is secure, and writes everything: patterns take no room.
    pub fn open(&mut self, now: Instant, host: &mut Host, id: u32, peer: Option<Hit>) {
        let (local, config) = (host.clock.local(now), self.config.sender.clone());
        let opened = match peer {
            Some(peer) => host.endpoint.connect_peer(local, config, peer, self.port),
            None => {
                let path = |(path, config): &(Path, PathConfig)| (path.locators, *config);
                let paths: Vec<_> = self.config.paths.iter().map(path).collect();
                host.endpoint.connect(local, config, self.port, &paths)
            }
        };
        let handle = match opened {
            Ok(handle) => handle,
            Err(error) => {
                self.report.refused = Some(error);
                return;
            }
        };
        self.sender = Some(handle);
        host.assign(handle, id, Side::Sender);
        let connection = host.endpoint.connection_mut(handle).expect("it was opened just now");
        let len = self.config.bytes.unwrap_or(UNLIMITED);
        match self.config.content {
            Some(_) => _ = self.feed(host),
            None => {
                connection.write(Pattern { key: self.key, offset: 0, len }.into());
                if self.config.bytes.is_some() && !self.config.open {
                    connection.close();
                }
            }
        }
    }

    /// Writes as much of the content as there is room for, and closes after its end. Whether it did.
    fn feed(&mut self, host: &mut Host) -> bool {
        let connection = self.sender.and_then(|handle| host.endpoint.connection_mut(handle));
        let (Some(content), Some(connection)) = (&self.config.content, connection) else { return false };
        if self.written == content.len() && !content.is_empty() {
            return false;
        }
        let taken = connection.write(content.slice(self.written..).into()) as usize;
        self.written += taken;
        if self.written == content.len() {
            connection.close();
        }
        taken > 0 || content.is_empty()
    }

    /// Writes further bytes of the pattern; returns how many were taken.
    pub fn write(&mut self, more: u64, host: &mut Host) -> u64 {
        let connection = self.sender.and_then(|handle| host.endpoint.connection_mut(handle));
        let (Some(connection), Some(bytes)) = (connection, &mut self.config.bytes) else { return 0 };
        let taken = connection.write(Pattern { key: self.key, offset: *bytes, len: more }.into());
        *bytes += taken;
        if taken > 0 {
            self.report.finished = None;
        }
        taken
    }

    /// Tells the sender how long a packet would wait in all the queues of each path.
    pub fn reveal_queues(&self, now: Instant, host: &mut Host, net: &Net) {
        let Some(connection) = self.sender.and_then(|handle| host.endpoint.connection_mut(handle)) else {
            return;
        };
        let local = host.clock.local(now);
        for (n, (path, _)) in self.config.paths.iter().enumerate() {
            connection.reveal_queues(local, PathId(n as u16), net.wait(path.there));
        }
    }

    /// Aborts the connection.
    pub fn stop(&mut self, now: Instant, host: &mut Host) {
        let local = host.clock.local(now);
        if let Some(connection) = self.sender.and_then(|handle| host.endpoint.connection_mut(handle)) {
            connection.abort(local);
        }
    }

    /// Something happened to the flow's connection at `host`. Whether it did anything about it. What
    /// came is read as it comes, not on `Readable`.
    pub fn react(&mut self, now: Instant, side: Side, event: EndpointEvent, host: &mut Host) -> bool {
        match (side, event) {
            (Side::Sender, EndpointEvent::Connection(Event::Connected)) => {
                self.report.connected = Some(now);
                false
            }
            (Side::Sender, EndpointEvent::Connection(Event::Writable)) => self.feed(host),
            (_, EndpointEvent::Connection(Event::Lost(reason))) => {
                self.report.lost.get_or_insert(reason);
                false
            }
            (_, EndpointEvent::Closed) => {
                self.let_go(now, side, host);
                false
            }
            (Side::Receiver, EndpointEvent::Accepted { .. }) => self.drain(now, host),
            (Side::Receiver, EndpointEvent::Connection(Event::PeerFinished)) => {
                self.drain(now, host);
                self.report.finished.get_or_insert(now); // an empty flow never counted a byte
                let connection = self.receiver.and_then(|handle| host.endpoint.connection_mut(handle));
                connection.map(Connection::close).is_some()
            }
            _ => false,
        }
    }

    /// Reads and checks everything that has arrived.
    pub fn drain(&mut self, now: Instant, host: &mut Host) -> bool {
        let Some(connection) = self.receiver.and_then(|handle| host.endpoint.connection_mut(handle)) else {
            return false;
        };
        let mut next = connection.read(u64::MAX);
        let read = next.is_some();
        while let Some(payload) = next {
            let (len, offset) = (payload.len(), self.report.bytes);
            let expected = match &self.config.content {
                Some(content) => Payload::Bytes(content.clone()).slice(offset, offset + len),
                None => Payload::Pattern(Pattern { key: self.key, offset, len }),
            };
            self.report.corrupted |= !payload.same_bytes(&expected);
            if self.config.content.is_some() {
                self.received.push(payload);
            }
            self.count(now, len);
            next = if connection.readable() > 0 { connection.read(u64::MAX) } else { None };
        }
        read
    }

    fn count(&mut self, now: Instant, len: u64) {
        self.report.bytes += len;
        if self.bin > Duration::ZERO {
            let bin = (now.0 / self.bin.0) as usize;
            if bin >= self.report.bins.len() {
                self.report.bins.resize(bin + 1, 0);
            }
            self.report.bins[bin] += len;
        }
        if self.config.bytes == Some(self.report.bytes) {
            self.report.finished = Some(now);
        }
    }

    /// Keeps the counters of a closed connection and forgets it.
    fn let_go(&mut self, now: Instant, side: Side, host: &mut Host) {
        let handle = match side {
            Side::Sender => self.sender.take(),
            Side::Receiver => self.receiver.take(),
        };
        let Some(handle) = handle else { return };
        self.report.take_stats(now, side, &self.config, host, handle);
        host.endpoint.release(handle);
    }
}

impl FlowReport {
    /// Takes the counters of one end, those of its paths in the order of the flow's: the receiver numbers them as they
    /// show up, and base exchanges as they are done.
    pub(crate) fn take_stats(
        &mut self,
        now: Instant,
        side: Side,
        config: &FlowConfig,
        host: &Host,
        handle: ConnectionHandle,
    ) {
        let Some(connection) = host.endpoint.connection(handle) else { return };
        let ids = config.path_ids(side, host, handle);
        let stats = |id: &Option<PathId>| id.map(|id| connection.path_stats(id)).unwrap_or_default();
        let paths = ids.iter().map(stats).collect();
        match side {
            Side::Receiver => {
                (self.receiver, self.receiver_paths) = (connection.stats().clone(), paths);
                self.blocking = connection.blocking(host.clock.local(now));
            }
            Side::Sender => {
                (self.sender, self.sender_paths) = (connection.stats().clone(), paths);
                if host.endpoint.hit().is_some() {
                    let report = |id: &Option<PathId>| host.endpoint.secure_path(handle, (*id)?);
                    self.secure_paths = ids.iter().map(report).collect();
                }
            }
        }
    }
}

impl FlowConfig {
    /// What one end of the connection calls each of the flow's paths. Of several between the same
    /// addresses, one after the other, the last counts.
    pub(crate) fn path_ids(&self, side: Side, host: &Host, handle: ConnectionHandle) -> Vec<Option<PathId>> {
        let endpoint = &host.endpoint;
        if side == Side::Sender && endpoint.hit().is_none() {
            return (0..self.paths.len() as u16).map(|n| Some(PathId(n))).collect();
        }
        let outer = |id: PathId| match endpoint.hit() {
            Some(_) => endpoint.secure_path(handle, id).map(|path| path.locators),
            None => endpoint.locators(handle, id),
        };
        let ends = |l: Locators| (l.local.ip(), l.remote.ip());
        let paths = endpoint.connection(handle).into_iter().flat_map(Connection::paths);
        let known: Vec<_> = paths.filter_map(|path| Some((path, ends(outer(path)?)))).collect();
        let id = |path: &Path| {
            let seen = if side == Side::Sender { path.locators } else { path.locators.reversed() };
            known.iter().rfind(|(_, l)| *l == ends(seen)).map(|(path, _)| *path)
        };
        self.paths.iter().map(|(path, _)| id(path)).collect()
    }
}

/// Datagrams at a constant rate, perhaps with pauses.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceConfig {
    /// What it is called.
    pub name: String,
    /// Its route: the path's first direction.
    pub path: Path,
    /// Size of a datagram on the wire, bytes; 28 or more.
    pub size: u32,
    /// Rate while it sends, bit/s, headers included.
    pub rate: Rate,
    /// When the first datagram leaves.
    pub start: Instant,
    /// When it stops; none sends until the end of the run.
    pub stop: Option<Instant>,
    /// How much the time between two datagrams varies: uniformly by ± half this share of it; 0 to 1.
    /// 1 is ns-2's `random_`.
    pub randomness: f64,
    /// Pauses.
    pub pauses: Option<Pauses>,
}

/// A source that is on and off in turn.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Time on, ms.
    #[serde(with = "millis")]
    pub on: Duration,
    /// Time off, ms.
    #[serde(with = "millis")]
    pub off: Duration,
    /// Whether both are means of exponential distributions rather than fixed.
    pub exponential: bool,
}

impl SourceConfig {
    /// A constant rate in datagrams of `size` bytes over `path`, from `start` to the end of the run.
    pub fn constant(name: &str, path: Path, size: u32, rate: Rate, start: Instant) -> Self {
        let (stop, randomness, pauses) = (None, 0.0, None);
        Self { name: name.to_owned(), path, size, rate, start, stop, randomness, pauses }
    }
}
