//! One TCP connection over any number of paths.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, PathId, PathSet, Seq};

use super::config::{ConnectionConfig, PathConfig};
use super::handshake::Handshake;
use super::receiver::Receiver;
use super::record::{Record, RecordFilter};
use super::sender::Sender;
use super::stats::{ConnectionStats, PathStats};
use super::timers::{Timer, Timers};
use crate::facts::PathState;
use crate::payload::Payload;
use crate::sched::SchedulerConfig;
use crate::segment::{Segment, Transmit};

/// States of RFC 9293 §3.3.2 (LISTEN is the endpoint's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Why a connection ended other than by FINs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The peer reset it.
    Reset,
    /// Nothing came back for too long.
    TimedOut,
    /// We aborted it.
    Aborted,
    /// The peer refused it (RST in answer to our SYN).
    Refused,
}

/// What the application should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is something to read.
    Readable,
    /// There is room to write again.
    Writable,
    /// The peer sent its FIN and all its data has become readable.
    PeerFinished,
    /// Both sides finished and all our data was acknowledged (we may linger in TIME-WAIT).
    Finished,
    /// The connection ended early.
    Lost(CloseReason),
}

/// Local and remote TCP port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

/// One TCP connection over any number of paths.
///
/// Four kinds of method: *inputs* ([`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout),
/// [`write`](Self::write), [`close`](Self::close), …), *outputs* ([`poll_transmit`](Self::poll_transmit),
/// [`poll_timeout`](Self::poll_timeout), [`poll_event`](Self::poll_event), [`poll_record`](Self::poll_record)),
/// *reads* ([`read`](Self::read)) and *questions* ([`state`](Self::state), [`stats`](Self::stats), …).
/// After any input poll in this order: transmit until `None`, events and records until `None`, then the timeout.
///
/// The parts: `handshake.rs` opens it, `input.rs` takes segments, `output.rs` makes them, `timeouts.rs`
/// does what is due; `sender.rs` is the sending half, `receiver.rs` the receiving one;
/// `observe.rs` tells of it all.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: ConnectionConfig,
    pub(super) ports: Ports,
    pub(super) state: State,
    pub(super) handshake: Handshake,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) timers: Timers,
    pub(super) paths: Vec<PathConfig>,
    /// Paths that were taken away; their ids are not used again.
    pub(super) removed: PathSet,
    /// Segments that are neither data nor acknowledgments of data: RST, probes.
    pub(super) control: VecDeque<Transmit>,
    pub(super) stats: ConnectionStats,
    /// Path of the last acceptable segment.
    pub(super) last_path: PathId,
    /// Path of the last acknowledgment, if they take turns.
    pub(super) last_return: PathId,
    /// Answers to unacceptable segments that may still be sent in the present second (RFC 5961 §7).
    pub(super) challenges: (u64, u32),
    /// Probes of an idle connection or a closed window since anything was heard.
    pub(super) unanswered: u32,
    pub(super) persists: u32,
    /// Number of the last heartbeat.
    pub(super) heartbeats: u32,
    /// Segments sent in answer to the present event.
    pub(super) burst: u32,
    /// A write was cut short: tell when there is room.
    pub(super) blocked: bool,
    /// Something to read has come since that was told.
    pub(super) readable_news: bool,
    pub(super) finish_told: bool,
    pub(super) peer_finish_told: bool,
    pub(super) events: VecDeque<Event>,
    pub(super) filter: RecordFilter,
    pub(super) records: VecDeque<Record>,
}

impl Connection {
    /// Opens a connection: a SYN leaves on the first path; the others join when it is answered, and
    /// stand in for the first while it is not. `isn` is the initial sequence number (RFC 6528: the
    /// driver draws it).
    pub fn connect(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
    ) -> Self {
        let mut connection = Self::new(config, ports, isn, paths, State::SynSent);
        connection.start_handshake(now, PathId::FIRST);
        connection
    }

    /// Answers the SYN `syn` that came on `path`, which indexes `paths`.
    pub fn accept(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
        path: PathId,
        syn: &Segment,
    ) -> Self {
        let mut connection = Self::new(config, ports, isn, paths, State::SynReceived);
        connection.learn_options(now, path, syn);
        connection.last_path = path;
        connection.start_handshake(now, path);
        connection
    }

    fn new(config: ConnectionConfig, ports: Ports, isn: Seq, paths: &[PathConfig], state: State) -> Self {
        let mut connection = Self {
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            handshake: Handshake::new(&config, isn),
            config,
            ports,
            state,
            timers: Timers::default(),
            paths: Vec::new(),
            removed: PathSet::EMPTY,
            control: VecDeque::new(),
            stats: ConnectionStats::default(),
            last_path: PathId::FIRST,
            last_return: PathId::FIRST,
            challenges: (0, 0),
            unanswered: 0,
            persists: 0,
            heartbeats: 0,
            burst: 0,
            blocked: false,
            readable_news: false,
            finish_told: false,
            peer_finish_told: false,
            events: VecDeque::new(),
            filter: RecordFilter::default(),
            records: VecDeque::new(),
        };
        paths.iter().for_each(|p| connection.enrol(p));
        connection
    }

    /// Which observations to make; none by default.
    pub fn record(&mut self, filter: RecordFilter) {
        self.filter = filter;
    }

    /// Adds a path to an open connection; there may be 64 in its life, as many as a `PathSet` holds.
    pub fn add_path(&mut self, now: Instant, path: PathConfig) -> PathId {
        self.enrol(&path);
        if self.handshake.peer.is_some() {
            let mss = self.payload_size(&path);
            self.sender.add_path(now, &path, mss);
        }
        PathId((self.paths.len() - 1) as u8)
    }

    /// Removes a path; what is in flight on it is sent again on others.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        if path.index() >= self.paths.len() || self.removed.contains(path) {
            return;
        }
        self.burst = 0;
        self.removed.insert(path);
        if self.sender.has_joined(path) {
            self.sender.remove_path(now, path, &mut self.timers);
            self.observe_losses(now);
        }
        self.observe_path(now, path, PathState::Removed);
        if path == self.handshake.path && self.timers.is_set(Timer::Handshake) {
            self.start_handshake(now, self.next_path(path));
        }
    }

    /// The path after `path` in the order of their ids that is still there, or `path` itself.
    pub(super) fn next_path(&self, path: PathId) -> PathId {
        let count = self.paths.len();
        let mut after = (1..count).map(|i| PathId(((path.index() + i) % count) as u8));
        after.find(|p| !self.removed.contains(*p)).unwrap_or(path)
    }

    /// The path carries no larger segments than `mss` bytes of payload, as an ICMP message says: never
    /// more than before.
    pub fn path_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        let known = self.paths.get(path.index()).map_or(0, PathConfig::segment_size);
        self.path_carries(now, path, mss.min(known));
    }

    /// The path was found to carry segments of `mss` bytes of payload: more than before, or less (RFC 8899).
    /// Less than RFC 879's 536 is believed down to 64 bytes.
    pub fn path_carries(&mut self, now: Instant, path: PathId, mss: u32) {
        let Some(config) = self.paths.get_mut(path.index()) else { return };
        if config.segment_size() == mss {
            return;
        }
        config.carried = Some(mss.max(64));
        let config = *config;
        if self.sender.has_joined(path) {
            let mss = self.payload_size(&config);
            self.sender.set_mss(now, path, mss);
            self.observe_losses(now);
        }
    }

    /// The peer answered something else than a segment on `path` (a heartbeat), `rtt` after it was asked:
    /// a path that had failed works again, and one with nothing in flight is measured.
    pub fn path_answered(&mut self, now: Instant, path: PathId, rtt: Duration) {
        if !self.sender.has_joined(path) || self.removed.contains(path) {
            return;
        }
        if self.sender.path_state(path) == PathState::Failed {
            self.sender.revive(now, path, &mut self.timers);
            self.observe_path(now, path, PathState::Active);
        }
        if self.sender.flight_size(path) == 0 {
            self.sender.measured(now, path, rtt);
        }
    }

    /// A packet that leaves on `path` now waits this long in all of its queues: somebody sees them, which
    /// no host does. What is measured afterwards replaces it.
    pub fn reveal_queues(&mut self, now: Instant, path: PathId, wait: Duration) {
        self.sender.reveal_queues(now, path, wait);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: never late, sometimes early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next event for the application.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        let connecting = self.events.front() == Some(&Event::Connected); // that comes before all else
        if !connecting && std::mem::take(&mut self.readable_news) && self.receiver.buffer.readable() > 0 {
            return Some(Event::Readable);
        }
        self.events.pop_front()
    }

    /// The next observation.
    #[must_use]
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// Bytes that [`write`](Self::write) would take now.
    pub fn writable(&self) -> u64 {
        self.sender.stream.room()
    }

    /// Appends to the stream as much of `data` as the send buffer has room for; returns how many
    /// bytes were taken (0 after `close`). Patterns always fit: they are not stored. If less than all
    /// was taken, [`Event::Writable`] tells when half the buffer is free.
    pub fn write(&mut self, data: Payload) -> u64 {
        if self.state == State::Closed {
            return 0;
        }
        let taken = self.sender.stream.write(&data);
        self.blocked |= taken < data.len();
        taken
    }

    /// The next bytes of the peer's stream, at most `max`; reading opens the window.
    pub fn read(&mut self, max: u64) -> Option<Payload> {
        let chunk = self.receiver.buffer.read(max)?;
        if self.receiver.has_finished() {
            self.tell_peer_finished();
        } else if !matches!(self.state, State::Closed | State::TimeWait) {
            self.receiver.after_read(self.last_path, &mut self.timers);
        }
        Some(chunk)
    }

    /// From now on `scheduler` chooses the paths: R-M/TCP's modes of distribution and of duplication may
    /// follow one another.
    pub fn set_scheduler(&mut self, scheduler: SchedulerConfig) {
        self.sender.set_scheduler(scheduler.build());
    }

    /// No more writes; a FIN follows the last byte, if need be after the handshake: an empty stream
    /// arrives too. The peer may go on sending (half-close). To give up instead, [`abort`](Self::abort).
    pub fn close(&mut self) {
        self.sender.stream.finish();
    }

    /// Ends the connection at once with a RST.
    pub fn abort(&mut self, _now: Instant) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            if self.state != State::SynSent {
                self.send_reset();
            }
            self.lose(CloseReason::Aborted);
        }
    }

    /// State.
    pub fn state(&self) -> State {
        self.state
    }

    /// Local and remote port.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Whether nothing is left to do or to send: it can be forgotten.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.control.is_empty()
    }

    /// Counters.
    pub fn stats(&self) -> &ConnectionStats {
        &self.stats
    }

    /// Number of paths ever added.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Whether a path may carry data.
    pub fn path_state(&self, path: PathId) -> Option<PathState> {
        self.sender.views.get(path.index()).map(|v| v.state)
    }

    /// Counters and state of one path; zeros for a path that is not there or has not joined yet.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        if !self.sender.has_joined(path) {
            return PathStats::default();
        }
        let received = self.receiver.paths.get(path.index()).map_or(0, |p| p.bytes);
        PathStats { bytes_received: received, ..self.sender.path_stats(path) }
    }

    fn enrol(&mut self, path: &PathConfig) {
        self.paths.reserve_exact(1);
        self.receiver.paths.reserve_exact(1);
        self.paths.push(*path);
        self.receiver.paths.push(Default::default());
        self.timers.add_path();
    }

    /// Enters `state` at the end of the connection.
    pub(super) fn finish(&mut self, state: State) {
        self.state = state;
        if state == State::Closed {
            self.timers.stop_all();
        }
    }

    /// Ends the connection early.
    pub(super) fn lose(&mut self, reason: CloseReason) {
        self.finish(State::Closed);
        self.events.push_back(Event::Lost(reason));
    }
}
