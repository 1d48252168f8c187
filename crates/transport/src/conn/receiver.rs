//! The receiving half: order and window; `acks.rs` says when to acknowledge what on which path.

mod acks;

use std::collections::VecDeque;

use polypath_wire::tcp::Timestamps;
use polypath_wire::{Duration, Instant, PathId, PathSet};

pub(super) use self::acks::PendingAck;
use super::config::ConnectionConfig;
use super::timers::Timers;
use crate::path_map::PathMap;
use crate::payload::Payload;
use crate::recv::config::{AckConfig, Thinning};
use crate::recv::path_receiver::PathReceiver;
use crate::recv::reorder::{Inserted, ReorderBuffer};
use crate::recv::sack::SackReporter;

/// The receiving half of a connection.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Receiver {
    /// The bytes.
    pub buffer: ReorderBuffer,
    /// Per path.
    pub paths: PathMap<PathReceiver>,
    pending: VecDeque<PendingAck>,
    /// How acknowledgments are thinned, if they are, and on which paths one is due.
    thinning: Option<Thinning>,
    due: PathSet,
    /// Bytes received in order and not acknowledged yet.
    unacked: u64,
    last_ack: u64,
    /// Right edge of the window as last advertised.
    edge: u64,
    /// Largest window: of the configuration, what the reads so far allow of it, and what a
    /// [limit](super::Connection::limit_memory) leaves.
    capacity: u64,
    opened: u64,
    limit: u64,
    grows: bool,
    /// Segment size of the peer, for "every second segment": the largest that came, but several that came as one are no segment.
    pub peer_segment: u64,
    /// Largest segment that a path may carry, bytes of payload.
    largest: u64,
    delay: Duration,
    /// Offset of the peer's FIN, once seen.
    fin: Option<u64>,
    /// Everything before it has come, too.
    finished: bool,
    /// The handshake agreed on SACK: blocks are remembered, for they will be reported.
    sack: bool,
    /// Each segment has an acknowledgment of its own: the multi-route option has room for one reply.
    one_by_one: bool,
    /// Where the last of these bytes came.
    unacked_path: PathId,
    reporter: SackReporter,
}

impl Receiver {
    /// An empty receiver.
    pub(super) fn new(config: &ConnectionConfig) -> Self {
        let unread = config.unread_window.unwrap_or(u64::MAX).min(config.receive_buffer);
        Self {
            buffer: ReorderBuffer::new(unread, config.reorder_store),
            paths: PathMap::default(),
            reporter: SackReporter::default(),
            sack: false,
            pending: VecDeque::new(),
            thinning: None,
            due: PathSet::EMPTY,
            unacked: 0,
            unacked_path: PathId::FIRST,
            last_ack: 0,
            edge: unread.min(65_535),
            capacity: config.receive_buffer,
            opened: unread,
            limit: u64::MAX,
            grows: config.grow_window,
            fin: None,
            finished: false,
            delay: config.delayed_ack,
            one_by_one: false,
            peer_segment: 536,
            largest: 0,
        }
    }

    /// Segments of up to `mss` bytes may come on `path`.
    pub(super) fn add_path(&mut self, path: PathId, mss: u32) {
        self.largest = self.largest.max(mss.into());
        self.paths.insert(PathReceiver::new(path));
    }

    /// None come on `path` any more but late ones. What came there and waits for an acknowledgment has it at once,
    /// on another path.
    pub(super) fn remove_path(&mut self, path: PathId, timers: &mut Timers) {
        let waits = self.paths.remove(path).is_some_and(|p| p.clock.waits());
        self.due.remove(path);
        if waits {
            self.ack_now(path, None, timers);
        }
    }

    /// What both ends agreed on decides when to acknowledge. The multi-route option wants an acknowledgment for
    /// each segment; without SACK a sender counts those of what comes out of order.
    pub(super) fn agree(&mut self, config: &ConnectionConfig, sack: bool, multi_route: bool) {
        self.one_by_one = multi_route;
        self.delay = if multi_route { Duration::ZERO } else { config.delayed_ack };
        self.thinning = match config.acks {
            AckConfig::Thinned(thinning) if sack && self.delay > Duration::ZERO => Some(thinning),
            _ => None,
        };
        self.reporter.share(self.thinning.is_some());
        self.sack = sack;
    }

    /// RCV.NXT: the next offset expected, one past the FIN once everything came.
    pub(super) fn next(&self) -> u64 {
        self.buffer.next() + u64::from(self.finished)
    }

    /// The peer's data and its FIN have all arrived.
    pub(super) fn has_finished(&self) -> bool {
        self.finished
    }

    /// Whether the peer's stream may end at `offset`: where it said first, and not before its data.
    pub(super) fn may_end_at(&self, offset: u64) -> bool {
        self.fin.map_or(offset >= self.buffer.end(), |fin| fin == offset)
    }

    /// First offset beyond the window.
    pub(super) fn window_end(&self) -> u64 {
        (self.buffer.next() + self.buffer.window()).max(self.edge)
    }

    /// Takes an acceptable segment's data and FIN.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        path: PathId,
        offset: u64,
        data: Payload,
        fin: bool,
        timers: &mut Timers,
    ) -> Inserted {
        let len = data.len();
        let known = self.paths.get_mut(path);
        known.into_iter().for_each(|p| p.bytes += len);
        self.peer_segment = self.peer_segment.max(len.min(self.largest));
        let (was, end) = (self.next(), self.buffer.end());
        let only = self.paths.len() == 1;
        let had_holes = !self.buffer.held().is_empty();
        if fin && self.fin.is_none() {
            self.fin = Some(offset + len);
        }
        let data = match self.fin {
            Some(fin) if offset + len > fin => data.slice(0, fin.saturating_sub(offset)),
            _ => data,
        };
        let inserted = self.buffer.insert(now, offset, data);
        self.finished = self.fin == Some(self.buffer.next());
        let in_order = offset <= was && self.next() > was;
        if self.sack
            && !in_order
            && self.paths.contains(path)
            && let Some(block) = self.buffer.held().containing(offset)
        {
            self.reporter.touch(path, offset, block);
        }
        self.unacked += inserted.delivered;
        self.unacked_path = path;
        if len > 0 && inserted.duplicate == len {
            self.ack_duplicate(path, offset, len, timers);
        } else if let Some((thinning, known)) = self.thinning.zip(self.paths.get_mut(path)) {
            let PathReceiver { clock, skipped, .. } = known;
            let gap = std::mem::take(skipped) || (only && offset > end);
            clock.on_segment(now, (offset, offset + len), gap, &thinning);
            if fin || inserted.duplicate > 0 || inserted.refused > 0 {
                clock.hurry();
            }
            self.consult(now, path, &thinning, timers);
        } else if !in_order || had_holes || fin || inserted.duplicate > 0 || self.is_enough() {
            self.ack_now(path, (!in_order).then_some(offset), timers);
        } else {
            self.ack_later(now, timers);
        }
        inserted
    }

    /// Timestamps of an acceptable segment at `offset` on `path`.
    #[inline]
    pub(super) fn on_timestamps(&mut self, now: Instant, path: PathId, offset: i64, ts: Option<Timestamps>) {
        if let Some(ts) = ts
            && let Some(path) = self.paths.get_mut(path)
        {
            path.on_segment(now, ts, offset <= self.last_ack as i64);
        }
    }

    /// A segment with an acknowledgment leaves: the window field for it.
    pub(super) fn advertise(&mut self, shift: u8) -> u16 {
        self.last_ack = self.next();
        self.unacked = 0;
        let end = self.buffer.next() + self.buffer.window();
        // RFC 9293 §3.8.6.2.2: the edge stays until it can move by a segment; it goes back only if memory is short
        let moves = end >= self.edge + self.worth_telling() || end < self.edge;
        let end = if moves { end } else { self.edge };
        let field = (end.saturating_sub(self.next()) >> shift).min(65_535);
        self.edge = end.min(self.next() + (65_535 << shift)); // the field may fall short by its scale
        field as u16
    }

    /// The window field as it was last advertised, for a segment that acknowledges nothing.
    pub(super) fn advertised(&self, shift: u8) -> u16 {
        (self.edge.saturating_sub(self.next()) >> shift).min(65_535) as u16
    }

    /// The application reads: from the first time on the whole buffer is the window, unless it [grows](Self::grow). Whether it
    /// was opened.
    pub(super) fn open(&mut self) -> bool {
        let opens = !self.grows && !self.is_open();
        if opens {
            self.resize(self.capacity);
        }
        opens
    }

    /// Whether the whole buffer is the window.
    pub(super) fn is_open(&self) -> bool {
        self.opened == self.capacity
    }

    /// Opens the window to `window`, as far as the buffer goes, if it is smaller. Whether it was.
    pub(super) fn grow(&mut self, window: u64) -> bool {
        let window = window.min(self.capacity);
        let grew = self.opened < window;
        if grew {
            self.resize(window);
        }
        grew
    }

    fn resize(&mut self, opened: u64) {
        self.opened = opened;
        self.buffer.resize(opened.min(self.limit));
    }

    /// The window is at most `limit` bytes from now on, even if more was advertised: what comes beyond it is dropped.
    pub(super) fn limit(&mut self, limit: u64) {
        self.limit = limit;
        self.resize(self.opened);
    }

    /// Bytes held, in order or not.
    pub(super) fn held(&self) -> u64 {
        self.buffer.readable() + self.buffer.occupancy()
    }

    /// After a read: tells the peer if the window has become worth telling of (RFC 9293 §3.8.6.2.2).
    pub(super) fn after_read(&mut self, path: PathId, timers: &mut Timers) {
        let remaining = self.edge.saturating_sub(self.next());
        let window = self.buffer.window();
        let worth = self.worth_telling();
        if self.pending.is_empty() && window >= 2 * remaining && window - remaining >= worth {
            self.ack_now(path, None, timers);
        }
    }

    /// By how much the window must grow to be worth telling.
    fn worth_telling(&self) -> u64 {
        self.peer_segment.min(self.opened.min(self.limit) / 2).max(1)
    }
}
