//! The receiving half: order, window, and when to acknowledge what on which path.

use std::collections::VecDeque;

use polypath_wire::tcp::{SackBlocks, Timestamps};
use polypath_wire::{Duration, Instant, PathId, Seq};

use super::config::ConnectionConfig;
use super::timers::{Timer, Timers};
use crate::payload::Payload;
use crate::recv::path_receiver::PathReceiver;
use crate::recv::reorder::{Inserted, ReorderBuffer};
use crate::recv::sack::SackReporter;

/// An acknowledgment that waits to be sent, on the path of what it acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingAck {
    /// On this path.
    pub path: PathId,
    /// Offset of the segment that caused it, if that came out of order: its block goes first.
    pub trigger: Option<u64>,
    /// What that segment carried, if all of it had arrived before (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// The bytes.
    pub buffer: ReorderBuffer,
    /// Per path.
    pub paths: Vec<PathReceiver>,
    reporter: SackReporter,
    pending: VecDeque<PendingAck>,
    /// Bytes received in order that no acknowledgment told of yet, and where the last came.
    unacked: u64,
    unacked_path: PathId,
    last_ack: u64,
    /// Right edge of the window as last advertised.
    edge: u64,
    capacity: u64,
    /// Offset of the peer's FIN, once seen.
    fin: Option<u64>,
    /// Everything before it has come, too.
    finished: bool,
    delay: Duration,
    /// Each segment has an acknowledgment of its own: the multi-route option has room for one reply.
    one_by_one: bool,
    /// Segment size of the peer, for "every second segment".
    pub peer_segment: u64,
}

impl Receiver {
    /// An empty receiver.
    pub fn new(config: &ConnectionConfig) -> Self {
        Self {
            buffer: ReorderBuffer::new(config.receive_buffer, config.reorder_store),
            paths: Vec::new(),
            reporter: SackReporter::default(),
            pending: VecDeque::new(),
            unacked: 0,
            unacked_path: PathId::FIRST,
            last_ack: 0,
            edge: config.receive_buffer.min(65_535),
            capacity: config.receive_buffer,
            fin: None,
            finished: false,
            delay: config.delayed_ack,
            one_by_one: false,
            peer_segment: 536,
        }
    }

    /// Both ends agreed on the multi-route option: acknowledgments are neither delayed nor merged.
    pub fn agree_routes(&mut self) {
        self.delay = Duration::ZERO;
        self.one_by_one = true;
    }

    /// RCV.NXT: the next offset expected, one past the FIN once everything came.
    pub fn next(&self) -> u64 {
        self.buffer.next() + u64::from(self.finished)
    }

    /// The peer's data and its FIN have all arrived.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// Whether the peer's stream may end at `offset`: where it said first, and not before its data.
    pub fn may_end_at(&self, offset: u64) -> bool {
        self.fin.map_or(offset >= self.buffer.end(), |fin| fin == offset)
    }

    /// First offset beyond the window.
    pub fn window_end(&self) -> u64 {
        (self.buffer.next() + self.buffer.window()).max(self.edge)
    }

    /// Takes an acceptable segment's data and FIN.
    pub fn on_data(
        &mut self,
        now: Instant,
        path: PathId,
        offset: u64,
        data: Payload,
        fin: bool,
        timers: &mut Timers,
    ) -> Inserted {
        let len = data.len();
        self.paths[path.index()].bytes += len;
        self.peer_segment = self.peer_segment.max(len);
        let was = self.next();
        let had_holes = !self.buffer.held().is_empty();
        if fin && self.fin.is_none() {
            self.fin = Some(offset + len);
        }
        let data = match self.fin {
            Some(fin) if offset + len > fin => data.slice(0, fin.saturating_sub(offset)),
            _ => data,
        };
        let inserted = self.buffer.insert(offset, data);
        self.finished = self.fin == Some(self.buffer.next());
        let in_order = offset <= was && self.next() > was;
        if !in_order && self.buffer.held().containing(offset).is_some() {
            self.reporter.touch(path, offset);
        }
        let trigger = (!in_order).then_some(offset);
        self.unacked += inserted.delivered;
        self.unacked_path = path;
        let at_once = !in_order
            || had_holes
            || fin
            || self.delay == Duration::ZERO
            || inserted.duplicate > 0
            || self.unacked >= 2 * self.peer_segment;
        if len > 0 && inserted.duplicate == len {
            self.ack_duplicate(path, offset, len, timers);
        } else if at_once {
            self.ack_now(path, trigger, timers);
        } else if !timers.is_set(Timer::DelayedAck) {
            timers.set(Timer::DelayedAck, now + self.delay);
        }
        inserted
    }

    /// Timestamps of an acceptable segment at `offset` on `path`.
    #[inline]
    pub fn on_timestamps(&mut self, now: Instant, path: PathId, offset: i64, ts: Option<Timestamps>) {
        self.paths[path.index()].on_segment(now, ts, offset <= self.last_ack as i64);
    }

    /// Acknowledge at once on `path`. Acknowledgments of what came in order merge; those of what came
    /// out of order do not, since each carries news of its own.
    pub fn ack_now(&mut self, path: PathId, trigger: Option<u64>, timers: &mut Timers) {
        timers.stop(Timer::DelayedAck);
        let ack = PendingAck { path, trigger, duplicate: None };
        if trigger.is_none()
            && !self.one_by_one
            && let Some(last) = self.pending.back_mut()
            && last.trigger.is_none()
        {
            *last = ack;
        } else {
            self.pending.push_back(ack);
        }
    }

    /// Acknowledge at once on `path`, and tell that these `len` bytes at `offset` had arrived before.
    pub fn ack_duplicate(&mut self, path: PathId, offset: u64, len: u64, timers: &mut Timers) {
        timers.stop(Timer::DelayedAck);
        let duplicate = Some((offset, offset + len));
        self.pending.push_back(PendingAck { path, trigger: Some(offset), duplicate });
    }

    /// The delayed acknowledgment is due.
    pub fn on_delayed_ack(&mut self, timers: &mut Timers) {
        if self.unacked > 0 {
            self.ack_now(self.unacked_path, None, timers);
        }
    }

    /// Whether acknowledgments wait to be sent.
    pub fn has_acks(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next acknowledgment to send.
    pub fn pop_ack(&mut self) -> Option<PendingAck> {
        self.pending.pop_front()
    }

    /// A data segment leaves on `path`: what waits in order for that path travels with it.
    pub fn piggyback(&mut self, path: PathId, timers: &mut Timers) {
        if self.pending.front().is_some_and(|a| a.trigger.is_none() && a.path == path) {
            self.pending.pop_front();
        }
        if self.unacked_path == path {
            timers.stop(Timer::DelayedAck);
            self.unacked = 0;
        }
    }

    /// A segment with an acknowledgment leaves: the window field for it.
    pub fn advertise(&mut self, shift: u8) -> u16 {
        self.last_ack = self.next();
        self.unacked = 0;
        let end = self.buffer.next() + self.buffer.window();
        // RFC 9293 §3.8.6.2.2: the edge stays until it can move by a segment
        let end = if end >= self.edge + self.worth_telling() { end } else { self.edge };
        let field = (end.saturating_sub(self.next()) >> shift).min(65_535);
        self.edge = end.min(self.next() + (65_535 << shift)); // the field may fall short by its scale
        field as u16
    }

    /// The window field as it was last advertised, for a segment that acknowledges nothing.
    pub fn advertised(&self, shift: u8) -> u16 {
        (self.edge.saturating_sub(self.next()) >> shift).min(65_535) as u16
    }

    /// Up to `max` SACK blocks for `ack`.
    #[inline]
    pub fn sack_blocks(&mut self, ack: &PendingAck, max: usize, seq: impl Fn(u64) -> Seq) -> SackBlocks {
        match self.buffer.held().is_empty() && ack.duplicate.is_none() {
            true => SackBlocks::default(),
            false => self.report_blocks(ack, max, seq),
        }
    }

    #[inline(never)]
    fn report_blocks(&mut self, ack: &PendingAck, max: usize, seq: impl Fn(u64) -> Seq) -> SackBlocks {
        self.reporter.blocks(
            ack.path,
            ack.trigger.unwrap_or(u64::MAX),
            ack.duplicate,
            self.buffer.held(),
            max,
            seq,
        )
    }

    /// After a read: tells the peer if the window has become worth telling of (RFC 9293 §3.8.6.2.2).
    pub fn after_read(&mut self, path: PathId, timers: &mut Timers) {
        let remaining = self.edge.saturating_sub(self.next());
        let window = self.buffer.window();
        let worth = self.worth_telling();
        if self.pending.is_empty() && window >= 2 * remaining && window - remaining >= worth {
            self.ack_now(path, None, timers);
        }
    }

    /// By how much the window must grow to be worth telling.
    fn worth_telling(&self) -> u64 {
        self.peer_segment.min(self.capacity / 2).max(1)
    }
}
