//! One TCP connection over any number of paths.

use std::collections::VecDeque;

use polypath_wire::{Instant, PathId, Seq};

use super::config::ConnectionConfig;
use super::handshake::Handshake;
use super::paths::Paths;
use super::receiver::Receiver;
use super::record::{Record, RecordFilter};
use super::relaying::Relaying;
use super::sender::{self, Sender};
use super::stats::ConnectionStats;
use crate::cc::Env;
use crate::engine::Engine;
use crate::engine::config::PathConfig;
use crate::facts::PathState;
use crate::payload::Payload;
use crate::recv::blocking::Blocking;
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
    /// The peer refused it (RST in answer to our SYN), or an ICMP error said that nobody listens on its port.
    Refused,
    /// A router or the peer's host said that our SYN cannot be delivered.
    Unreachable,
    /// A router said that nothing leads to the peer's network.
    NetUnreachable,
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
    /// The peer acknowledged our FIN, and with it all our data.
    Delivered,
    /// Both sides finished and all our data was acknowledged (we may linger in TIME-WAIT).
    Finished,
    /// The peer asks whether its other end is there, and waits for [`Connection::answer_probe`].
    Probed,
    /// The peer answered [`Connection::probe`].
    ProbeAnswered,
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
/// The parts: `opening.rs` opens it and `closing.rs` ends it; `input.rs` says which segments count and
/// `contents.rs` what they say, `early.rs` what need not wait for the handshake, `output.rs` makes them, `timeouts.rs` does what is due; `changes.rs` adds and
/// removes paths, `heartbeat.rs` probes them, `keep_alive.rs` relays probes. `sender.rs` is the sending half, `receiver.rs` the receiving
/// one; `observe.rs` reports it all.
#[derive(Debug)]
#[repr(C)]
pub struct Connection {
    pub(super) state: State,
    pub(super) filter: RecordFilter,
    /// Path of the last acceptable segment.
    pub(super) last_path: PathId,
    /// Path of the last acknowledgment, if they take turns.
    pub(super) last_return: PathId,
    pub(super) ports: Ports,
    /// Segments sent in answer to the present event.
    pub(super) burst: u32,
    /// Probes of an idle connection or a closed window since anything was heard.
    pub(super) unanswered: u32,
    pub(super) persists: u32,
    /// A write was cut short: tell when there is room.
    pub(super) blocked: bool,
    /// Something to read has come since the last [`Event::Readable`].
    pub(super) readable_news: bool,
    pub(super) finish_told: bool,
    pub(super) peer_finish_told: bool,
    /// Probes that the driver answers, if it does.
    pub(super) relaying: Option<Box<Relaying>>,
    pub(super) handshake: Handshake,
    pub(super) paths: Paths,
    /// Segments that are neither data nor acknowledgments of data: RST, probes.
    pub(super) control: VecDeque<Transmit>,
    pub(super) events: VecDeque<Event>,
    pub(super) records: VecDeque<Record>,
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    pub(super) stats: ConnectionStats,
    /// What leaves on which path, and all timers.
    pub(super) engine: Engine,
    /// Most bytes it may hold in each direction.
    pub(super) memory: u64,
    pub(super) config: ConnectionConfig,
    /// A second, and how many answers to unacceptable segments were sent in it (RFC 5961 §7).
    pub(super) challenges: (u64, u32),
    /// Number of the last heartbeat.
    pub(super) heartbeats: u32,
}

impl Connection {
    /// Opens a connection: a SYN leaves on the first path; the others join when it is answered, and
    /// stand in for the first while it is not. Of more than 64 the first 64 count. `isn` is the initial sequence number (RFC 6528: the
    /// driver draws it).
    pub fn connect(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
    ) -> Self {
        let mut connection = Self::new(now, config, ports, isn, paths, State::SynSent);
        connection.start_handshake(now, PathId::FIRST);
        connection.send_early(now);
        connection
    }

    /// Answers the SYN `syn` that came on `path`, which indexes `paths`, at most 64.
    pub fn accept(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
        path: PathId,
        syn: &Segment,
    ) -> Self {
        let mut connection = Self::new(now, config, ports, isn, paths, State::SynReceived);
        connection.learn_options(now, path, syn);
        connection.last_path = path;
        connection.start_handshake(now, path);
        connection.accept_early();
        connection
    }

    fn new(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
        state: State,
    ) -> Self {
        let env = Env { now, seed: isn.0.into() };
        let mut connection = Self {
            engine: sender::engine(&config, &env),
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            handshake: Handshake::new(&config, isn),
            config,
            ports,
            state,
            paths: Paths::default(),
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
            memory: u64::MAX,
            finish_told: false,
            peer_finish_told: false,
            relaying: None,
            events: VecDeque::new(),
            filter: RecordFilter::default(),
            records: VecDeque::new(),
        };
        paths.iter().for_each(|p| _ = connection.enrol(p));
        connection
    }

    /// Which observations to make; none by default.
    pub fn record(&mut self, filter: RecordFilter) {
        self.filter = filter;
        self.engine.explain_choices(filter.packets);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: never late, sometimes early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.timers.next()
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
        self.writable_ahead(self.ahead())
    }

    /// The same, if `ahead` bytes may be [written and not sent](ConnectionConfig::send_ahead).
    pub(super) fn writable_ahead(&self, ahead: u64) -> u64 {
        let left = self.memory.saturating_sub(self.sender.stream.stored());
        self.sender.stream.room().min(ahead.saturating_sub(self.sender.waiting())).min(left)
    }

    /// Bytes it holds: written and not acknowledged, and received and not read.
    pub fn held(&self) -> u64 {
        self.sender.stream.stored() + self.receiver.held()
    }

    /// It holds at most `limit` bytes in each direction from now on, or the buffers of its configuration, if these are smaller. What it holds
    /// already stays. The window may shrink below what was advertised, which a peer must survive (RFC 9293 §3.8.6): this is for when memory is
    /// short.
    pub fn limit_memory(&mut self, limit: u64) {
        if self.memory != limit {
            self.memory = limit;
            self.receiver.limit(limit);
        }
    }

    /// Appends to the stream as much of `data` as the send buffer has room for; returns how many
    /// bytes were taken (0 after `close`). Patterns always fit: they are not stored. If less than all
    /// was taken, [`Event::Writable`] tells when half the buffer is free, or half of [what may be
    /// ahead](ConnectionConfig::send_ahead).
    pub fn write(&mut self, data: Payload) -> u64 {
        if self.state == State::Closed {
            return 0;
        }
        let taken = match &data {
            Payload::Bytes(_) => self.sender.stream.write(&data.slice(0, self.writable())),
            Payload::Pattern(_) => self.sender.stream.write(&data),
        };
        self.sender.cut_short = taken < data.len();
        self.blocked |= self.sender.cut_short;
        taken
    }

    /// Bytes that [`read`](Self::read) would give.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receiver.buffer.readable()
    }

    /// The next bytes of the peer's stream, at most `max`; reading opens the window, the first time
    /// [as far as it goes](ConnectionConfig::unread_window), unless it [grows](ConnectionConfig::grow_window).
    pub fn read(&mut self, max: u64) -> Option<Payload> {
        let opened = self.receiver.open();
        let chunk = self.receiver.buffer.read(max);
        if opened || chunk.is_some() {
            self.after_read();
        }
        chunk
    }

    /// Whether the peer's data and its FIN have all arrived.
    pub fn peer_has_finished(&self) -> bool {
        self.receiver.has_finished()
    }

    /// Bytes written that have not left yet.
    pub fn unsent(&self) -> u64 {
        self.sender.waiting()
    }

    pub(super) fn after_read(&mut self) {
        if self.receiver.has_finished() {
            self.tell_peer_finished();
        } else if !matches!(self.state, State::Closed | State::TimeWait) {
            self.receiver.after_read(self.last_path, &mut self.engine.timers);
        }
    }

    /// From now on `scheduler` chooses the paths: R-M/TCP's modes of distribution and of duplication may
    /// follow one another.
    pub fn set_scheduler(&mut self, scheduler: SchedulerConfig) {
        self.engine.set_scheduler(scheduler.build());
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

    /// Whether it only waits: nothing is in flight or due, and all its paths work. What is learned of these meanwhile may wait
    /// until that changes, or a segment comes.
    pub fn is_quiet(&self) -> bool {
        use State as S;
        let waits =
            matches!(self.state, S::Established | S::FinWait2 | S::CloseWait | S::TimeWait | S::Closed);
        let works = || self.engine.views().iter().all(|view| view.state == PathState::Active);
        waits && self.sender.map.is_idle() && self.sender.waiting() == 0 && works()
    }

    /// Whether both ends agreed on the multi-route option ([`ConnectionConfig::multi_route`]).
    pub fn is_multi_route(&self) -> bool {
        self.handshake.peer.is_some() && self.handshake.multi_route
    }

    /// Head-of-line blocking of the peer's stream, until `now`.
    pub fn blocking(&self, now: Instant) -> Blocking {
        self.receiver.buffer.blocking(now)
    }

    /// Counters.
    pub fn stats(&self) -> &ConnectionStats {
        &self.stats
    }
}
