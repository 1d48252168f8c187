//! What an acceptable segment says: acknowledgment, window, data and FIN (RFC 9293 §3.10.7.4, fifth to
//! eighth step).

use polypath_wire::tcp::{SackBlocks, TcpFlags};
use polypath_wire::{Instant, PathId};

use super::connection::{Connection, State};
use super::record::{DropReason, Observation};
use super::sender::{Ack, Acked};
use crate::facts::PathState;
use crate::recv::reorder::Inserted;
use crate::segment::Segment;

impl Connection {
    /// Fifth step. Returns whether the rest of the segment counts.
    pub(super) fn handle_ack(&mut self, now: Instant, path: PathId, offset: i64, segment: &Segment) -> bool {
        let una = self.snd_offset(segment.header.ack);
        if self.state == State::SynReceived && !self.complete_handshake(now, path, una, segment) {
            return false;
        }
        if let Some(reason) = self.refuses_ack(una) {
            self.dropped(now, path, reason);
            self.challenge(now, path);
            return false;
        }
        if segment.header.flags.contains(TcpFlags::ECE) && self.handshake.ecn {
            self.engine.on_mark_echoed(now, path);
        }
        let mut blocks = [(0, 0); SackBlocks::CAPACITY];
        let n = segment.header.options.sack.len();
        if n > 0 {
            self.locate(&segment.header.options.sack, &mut blocks);
        }
        let una = una.max(0) as u64;
        let window = u64::from(segment.header.window) << self.handshake.peer_shift;
        let ts = segment.header.options.timestamps.filter(|_| self.handshake.timestamps);
        let shut = !self.sender.map.is_idle() && self.sender.window.left(self.sender.map.una()) == 0;
        let moved = self.sender.window.update(offset, una, window, ts.map(|ts| ts.value));
        if shut && self.sender.window.left(una) > 0 {
            self.engine.on_window_reopened(now);
        }
        self.sender.offer(&mut self.engine);
        if self.sender.map.is_idle() && n == 0 {
            return true; // nothing is outstanding: it can say nothing more
        }
        let reply = segment.header.options.multi_route.filter(|_| self.handshake.multi_route);
        let ours = |place| self.paths.at_place(place).filter(|route| self.engine.has_joined(*route));
        let bare = segment.payload.is_empty();
        let ack = Ack {
            path,
            route: reply.and_then(|m| m.reply).and_then(ours).unwrap_or(path),
            una,
            blocks: &blocks[..n],
            bare,
            pure: bare && !moved && !segment.header.flags.contains(TcpFlags::FIN),
            echo: ts.map(|ts| self.clock_instant(now, ts.echo)),
            reverse: ts.map(|ts| since_peer_clock(now, ts.value)),
        };
        let acked = self.sender.on_ack(now, &ack, &mut self.engine);
        self.after_ack(now, path, una, &acked);
        true
    }

    /// SACK blocks as offsets. Below zero is below everything: as a range it is empty, and thus bad.
    #[inline(never)]
    fn locate(&self, sack: &SackBlocks, blocks: &mut [(u64, u64)]) {
        let offset = |seq| self.snd_offset(seq).max(0) as u64;
        for (block, reported) in blocks.iter_mut().zip(sack.iter()) {
            *block = (offset(reported.start), offset(reported.end));
        }
    }

    /// Whether the ACK is of our SYN; if not, it is reset.
    #[cold]
    fn complete_handshake(&mut self, now: Instant, path: PathId, una: i64, segment: &Segment) -> bool {
        let ours = (0..=self.sender.map.nxt() as i64).contains(&una);
        if ours {
            self.establish(now, path, segment);
        } else {
            self.dropped(now, path, DropReason::AckOfUnsent);
            self.reset_answer(now, path, segment);
        }
        ours
    }

    /// Why an acknowledgment of everything below `una` does not count, if so.
    fn refuses_ack(&self, una: i64) -> Option<DropReason> {
        if una > self.sender.map.nxt() as i64 {
            return Some(DropReason::AckOfUnsent);
        }
        let old = una < self.sender.map.una() as i64 && self.is_old_ack(una);
        old.then_some(DropReason::OldAck)
    }

    /// RFC 5961 §5.2, against blind injection. Of several paths a slow one may deliver what was sent any
    /// number of windows ago; but never is there an acknowledgment from before the stream.
    #[cold]
    fn is_old_ack(&self, una: i64) -> bool {
        let behind = self.sender.map.una() as i64 - una;
        una < 0 || (self.paths.len() == 1 && behind > self.sender.window.largest as i64)
    }

    fn after_ack(&mut self, now: Instant, path: PathId, una: u64, acked: &Acked) {
        for _ in 0..acked.bad_blocks {
            self.dropped(now, path, DropReason::BadSack);
        }
        self.count_episodes(acked);
        self.observe_losses(now);
        if !acked.failed.is_empty() {
            let failed: Vec<_> = self.paths().filter(|path| acked.failed.contains(*path)).collect();
            failed.into_iter().for_each(|path| self.observe_path(now, path, PathState::Failed));
        }
        self.stats.bytes_acked = self.sender.map.una().min(self.sender.stream.end());
        if acked.delivered > 0 {
            self.persists = 0;
            self.tell_writable();
            self.observe_packet(now, path, || Observation::Acked { una, newly: acked.delivered });
        }
        self.observe_state(now, path);
        self.observe_bottlenecks(now);
        if acked.advanced && self.sender.is_done() {
            self.our_fin_acknowledged(now);
        }
    }

    /// Seventh and eighth step.
    pub(super) fn handle_data(&mut self, now: Instant, path: PathId, offset: i64, segment: &mut Segment) {
        let mut fin = segment.header.flags.contains(TcpFlags::FIN);
        let len = segment.payload.len();
        if len == 0 && !fin {
            return;
        }
        let early = self.state == State::SynReceived && self.handshake.early;
        if !early && !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            return self.dropped(now, path, DropReason::WrongState);
        }
        // what begins before the stream is the SYN's own number, which carries nothing
        let skipped = offset.min(0).unsigned_abs();
        let payload = std::mem::take(&mut segment.payload);
        let payload = if skipped == 0 { payload } else { payload.slice(skipped, len) };
        let offset = offset.max(0) as u64;
        if fin && !self.receiver.may_end_at(offset + payload.len()) {
            self.dropped(now, path, DropReason::UnexpectedFlag);
            fin = false;
        }
        self.stats.segments_received += u64::from(len > 0);
        self.stats.out_of_order += u64::from(len > 0 && offset > self.receiver.next());
        let inserted = self.receiver.on_data(now, path, offset, payload, fin, &mut self.engine.timers);
        self.after_data(now, path, len, &inserted);
        if self.receiver.has_finished() {
            self.peer_finished(now);
        }
    }

    /// `len` bytes came and were put into the buffer, which says `inserted`.
    fn after_data(&mut self, now: Instant, path: PathId, len: u64, inserted: &Inserted) {
        self.stats.bytes_received += inserted.delivered;
        self.stats.duplicate_bytes += inserted.duplicate;
        self.stats.bytes_early = self.receiver.buffer.occupancy();
        self.stats.reorder_peak = self.stats.reorder_peak.max(self.stats.bytes_early);
        if inserted.refused > 0 {
            self.dropped(now, path, DropReason::BufferFull);
        }
        if inserted.mismatch {
            self.dropped(now, path, DropReason::OverlapMismatch);
        }
        if inserted.delivered > 0 {
            self.readable_news = true;
            let (offset, len) = (self.receiver.buffer.next(), inserted.delivered);
            self.observe_packet(now, path, || Observation::Delivered { offset, len });
        } else if inserted.refused < len {
            let occupancy = self.receiver.buffer.occupancy();
            self.observe_packet(now, path, || Observation::Reorder { occupancy });
        }
    }
}

/// `now` minus the peer's clock of 1 ms, in nanoseconds up to a constant.
fn since_peer_clock(now: Instant, value: u32) -> i64 {
    let (ms, rest) = ((now.0 / 1_000_000) as u32, now.0 % 1_000_000);
    i64::from(ms.wrapping_sub(value) as i32) * 1_000_000 + rest as i64
}
