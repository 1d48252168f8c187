//! Segments that arrive once both sides know their sequence numbers (RFC 9293 §3.10.7.4).

use polypath_wire::tcp::{SackBlocks, TcpFlags};
use polypath_wire::{Duration, Instant, PathId, Seq};

use super::connection::{CloseReason, Connection, State};
use super::record::{DropReason, Observation};
use super::sender::{Ack, Acked};
use super::timers::Timer;
use crate::facts::PathState;
use crate::segment::Segment;

/// Answers to unacceptable segments per second (RFC 5961 §7).
const CHALLENGES: u32 = 100;

impl Connection {
    /// A segment arrived on `path`.
    pub fn handle(&mut self, now: Instant, path: PathId, mut segment: Segment) {
        self.handle_mut(now, path, &mut segment);
    }

    /// The same for a driver that keeps segments in slots: the payload is taken out of `segment`.
    pub fn handle_mut(&mut self, now: Instant, path: PathId, segment: &mut Segment) {
        self.burst = 0;
        if path.index() >= self.paths.len() {
            return self.dropped(now, path, DropReason::UnknownPath);
        }
        match self.state {
            State::Closed => self.dropped(now, path, DropReason::WrongState),
            State::SynSent => self.handle_in_syn_sent(now, path, segment),
            _ => self.handle_synchronized(now, path, segment),
        }
    }

    /// Whether `segment` could come from our peer: its sequence numbers lie where the peer may send and
    /// acknowledge, or did a window ago, for a faster path may have brought all that since. A segment from an
    /// unknown address must pass this before it adds a path.
    pub fn recognizes(&self, segment: &Segment) -> bool {
        let synchronized = !matches!(self.state, State::Closed | State::SynSent);
        let acked = self.snd_offset(segment.header.ack);
        let window = self.sender.window.largest as i64;
        let (next, end) = (self.receiver.next() as i64, self.receiver.window_end() as i64);
        let earliest = (next - (end - next)).max(0);
        synchronized
            && segment.header.flags.contains(TcpFlags::ACK)
            && (earliest..=end).contains(&self.rcv_offset(segment.header.seq))
            && acked <= self.sender.board.nxt() as i64
            && acked >= self.sender.board.una() as i64 - window // RFC 5961 §5
    }

    /// Whether we sent `seq` and the peer has not acknowledged it: what an ICMP message quotes must
    /// pass this (RFC 5927 §4.1).
    pub fn has_in_flight(&self, seq: Seq) -> bool {
        let (una, nxt) = (self.sender.board.una() as i64, self.sender.board.nxt() as i64);
        (una..nxt).contains(&self.snd_offset(seq))
    }

    fn handle_synchronized(&mut self, now: Instant, path: PathId, segment: &mut Segment) {
        let offset = self.rcv_offset(segment.header.seq);
        let flags = segment.header.flags;
        let timestamps = segment.header.options.timestamps.filter(|_| self.handshake.timestamps);
        let exempt = flags.intersects(TcpFlags::RST | TcpFlags::SYN); // a SYN is not of this connection
        if self.handshake.timestamps && timestamps.is_none() && !exempt {
            return self.dropped(now, path, DropReason::MissingTimestamp);
        }
        let old = timestamps.is_some() && self.receiver.paths[path.index()].is_old(now, timestamps);
        if old && !flags.contains(TcpFlags::RST) {
            self.dropped(now, path, DropReason::OldTimestamp); // RFC 7323 §5.3 R1
            return self.challenge(now, path);
        }
        self.learn_route(path, segment);
        let empty = segment.payload.is_empty();
        if empty && flags == TcpFlags::ACK && self.handle_heartbeat(now, path, segment) {
            return;
        }
        if !self.is_acceptable(offset, segment.seq_len()) {
            return self.handle_unacceptable(now, path, offset, segment);
        }
        if exempt || !flags.contains(TcpFlags::ACK) {
            return self.handle_exceptional(now, path, offset, flags);
        }
        self.heard_from(now, path, empty);
        if self.handle_ack(now, path, offset, segment) {
            self.receiver.on_timestamps(now, path, offset, timestamps);
            self.handle_data(now, path, offset, segment);
        }
        self.arm_persist(now);
    }

    /// Second to fifth step for what is not an ordinary segment: a RST, a SYN, or one without ACK.
    #[cold]
    fn handle_exceptional(&mut self, now: Instant, path: PathId, offset: i64, flags: TcpFlags) {
        if flags.contains(TcpFlags::RST) {
            return self.handle_reset(now, path, offset);
        }
        self.dropped(now, path, DropReason::UnexpectedFlag);
        if flags.contains(TcpFlags::SYN) {
            self.challenge(now, path); // RFC 5961 §4
        }
    }

    /// The four tests of RFC 9293 §3.10.7.4, first step.
    fn is_acceptable(&self, offset: i64, len: u32) -> bool {
        let (next, end) = (self.receiver.next() as i64, self.receiver.window_end() as i64);
        match len {
            0 => (next..=end).contains(&offset),
            _ => offset < end && offset + i64::from(len) > next,
        }
    }

    /// Old, or beyond the window: dropped, and answered so that the peer learns where we are.
    #[cold]
    fn handle_unacceptable(&mut self, now: Instant, path: PathId, offset: i64, segment: &Segment) {
        let flags = segment.header.flags;
        let beyond = offset >= self.receiver.window_end() as i64;
        let reason = if beyond { DropReason::OutsideWindow } else { DropReason::Duplicate };
        self.dropped(now, path, reason);
        if flags.contains(TcpFlags::RST) {
            return;
        }
        if self.state == State::SynReceived && flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK)
        {
            return self.start_handshake(now, path); // the SYN again: so goes the SYN-ACK, on its path
        }
        if !beyond {
            self.receiver.paths[path.index()].bytes += segment.payload.len();
            self.stats.segments_received += u64::from(!segment.payload.is_empty());
            self.stats.duplicate_bytes += segment.payload.len();
        }
        if self.state == State::TimeWait && flags.contains(TcpFlags::FIN) {
            self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        }
        let closed_window = beyond && self.receiver.window_end() == self.receiver.next();
        if closed_window && offset == self.receiver.next() as i64 && flags.contains(TcpFlags::ACK) {
            self.handle_ack(now, path, offset, segment); // §3.10.7.4: valid ACKs count in a closed window
        }
        if segment.payload.is_empty() {
            self.challenge(now, path);
        } else if beyond || offset < 0 {
            self.receiver.ack_now(path, Some(offset.max(0) as u64), &mut self.timers);
        } else {
            let len = segment.payload.len();
            self.receiver.ack_duplicate(path, offset as u64, len, &mut self.timers);
        }
    }

    /// RFC 5961 §3: only the exact next sequence number resets.
    fn handle_reset(&mut self, now: Instant, path: PathId, offset: i64) {
        if offset != self.receiver.next() as i64 {
            self.dropped(now, path, DropReason::UnexpectedFlag);
            return self.challenge(now, path);
        }
        match self.state {
            State::TimeWait => self.finish(State::Closed),
            State::SynReceived => self.lose(CloseReason::Refused),
            _ => self.lose(CloseReason::Reset),
        }
    }

    /// Fifth step. Returns whether the rest of the segment counts.
    fn handle_ack(&mut self, now: Instant, path: PathId, offset: i64, segment: &Segment) -> bool {
        let una = self.snd_offset(segment.header.ack);
        if self.state == State::SynReceived {
            if una < 0 || una > self.sender.board.nxt() as i64 {
                self.dropped(now, path, DropReason::AckOfUnsent);
                self.reset_answer(now, path, segment);
                return false;
            }
            self.establish(now, path);
        }
        if una > self.sender.board.nxt() as i64 {
            self.dropped(now, path, DropReason::AckOfUnsent);
            self.challenge(now, path);
            return false;
        }
        if una < self.sender.board.una() as i64 && self.is_old_ack(una) {
            self.dropped(now, path, DropReason::OldAck);
            self.challenge(now, path);
            return false;
        }
        let mut blocks = [(0, 0); SackBlocks::CAPACITY];
        let n = segment.header.options.sack.len();
        if n > 0 {
            self.locate(&segment.header.options.sack, &mut blocks);
        }
        let una = una.max(0) as u64;
        let moved = self.update_window(offset, una, segment);
        if self.sender.board.is_idle() && n == 0 {
            return true; // nothing is outstanding: it can say nothing more
        }
        let ts = segment.header.options.timestamps.filter(|_| self.handshake.timestamps);
        let reply = segment.header.options.multi_route.filter(|_| self.handshake.multi_route);
        let ours = |route: &PathId| self.sender.has_joined(*route);
        let ack = Ack {
            path,
            route: reply.and_then(|m| m.reply).filter(ours).unwrap_or(path),
            una,
            blocks: &blocks[..n],
            pure: segment.payload.is_empty() && !moved && !segment.header.flags.contains(TcpFlags::FIN),
            echo: ts.map(|ts| self.clock_instant(now, ts.echo)),
            reverse: ts.map(|ts| since_peer_clock(now, ts.value)),
        };
        let acked = self.sender.on_ack(now, &ack, &mut self.timers);
        self.after_ack(now, path, una, &acked);
        true
    }

    /// SACK blocks as offsets. Below zero is below everything: as a range it is empty, and thus bad.
    #[inline(never)]
    fn locate(&self, sack: &SackBlocks, blocks: &mut [(u64, u64)]) {
        let offset = |seq| self.snd_offset(seq).max(0) as u64;
        for (block, told) in blocks.iter_mut().zip(sack.iter()) {
            *block = (offset(told.start), offset(told.end));
        }
    }

    /// RFC 5961 §5.2, against blind injection. Of several paths a slow one may deliver what was sent any
    /// number of windows ago; but never is there an acknowledgment from before the stream.
    #[cold]
    fn is_old_ack(&self, una: i64) -> bool {
        let behind = self.sender.board.una() as i64 - una;
        una < 0 || (self.paths.len() == 1 && behind > self.sender.window.largest as i64)
    }

    fn after_ack(&mut self, now: Instant, path: PathId, una: u64, acked: &Acked) {
        for _ in 0..acked.bad_blocks {
            self.dropped(now, path, DropReason::BadSack);
        }
        self.count_episodes(acked);
        self.observe_losses(now);
        self.stats.bytes_acked = self.sender.board.una().min(self.sender.stream.end());
        if acked.delivered > 0 {
            self.persists = 0;
            self.tell_writable();
            self.observe_packet(now, path, || Observation::Acked { una, newly: acked.delivered });
        }
        self.observe_state(now, path);
        if acked.advanced && self.sender.is_done() {
            self.our_fin_acknowledged(now);
        }
    }

    #[cold]
    fn our_fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.finish(State::FinWait2),
            State::Closing => self.time_wait(now),
            State::LastAck => self.finish(State::Closed),
            _ => {}
        }
        self.tell_finished();
    }

    #[cold]
    fn time_wait(&mut self, now: Instant) {
        self.finish(State::TimeWait);
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
    }

    /// SND.WND (RFC 9293 §3.10.7.4, fifth step). Between acknowledgments of the same age, which paths
    /// may reorder, the larger window counts. Returns whether the edge moved.
    fn update_window(&mut self, offset: i64, una: u64, segment: &Segment) -> bool {
        let window = u64::from(segment.header.window) << self.handshake.peer_shift;
        self.sender.window.update(offset, una, window)
    }

    /// Seventh and eighth step.
    fn handle_data(&mut self, now: Instant, path: PathId, offset: i64, segment: &mut Segment) {
        let mut fin = segment.header.flags.contains(TcpFlags::FIN);
        let len = segment.payload.len();
        if len == 0 && !fin {
            return;
        }
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
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
        let inserted = self.receiver.on_data(now, path, offset, payload, fin, &mut self.timers);
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
        if self.receiver.has_finished() {
            self.peer_finished(now);
        }
    }

    #[cold]
    fn peer_finished(&mut self, now: Instant) {
        match self.state {
            State::Established => self.finish(State::CloseWait),
            State::FinWait1 if self.sender.is_done() => self.time_wait(now),
            State::FinWait1 => self.finish(State::Closing),
            State::FinWait2 => self.time_wait(now),
            _ => {}
        }
        self.tell_peer_finished();
        self.tell_finished();
    }

    /// An acceptable segment came on `path`: the peer lives. If it carries no data, it answers something
    /// that we sent there, so a path that had failed works again.
    fn heard_from(&mut self, now: Instant, path: PathId, answer: bool) {
        self.last_path = path;
        self.unanswered = 0;
        self.receiver.paths[path.index()].heard = true;
        if self.timers.is_set(Timer::KeepAlive) {
            self.timers.set(Timer::KeepAlive, now + self.config.keep_alive);
        }
        if answer && self.sender.has_joined(path) && self.sender.path_state(path) == PathState::Failed {
            self.sender.revive(now, path, &mut self.timers);
            self.observe_event(now, Some(path), || Observation::PathState { state: PathState::Active });
        }
    }

    /// An acknowledgment in answer to something unacceptable, unless there were too many of late.
    #[cold]
    pub(super) fn challenge(&mut self, now: Instant, path: PathId) {
        let second = now.0 / Duration::from_secs(1).0;
        if self.challenges.0 != second {
            self.challenges = (second, 0);
        }
        if self.challenges.1 < CHALLENGES {
            self.challenges.1 += 1;
            self.receiver.ack_now(path, None, &mut self.timers);
        }
    }

    /// While only the peer's window holds data back, it is probed (RFC 9293 §3.8.6.1).
    #[inline]
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let open =
            matches!(self.state, State::Established | State::CloseWait | State::FinWait1 | State::LastAck);
        match self.sender.window_blocked() && open {
            true => self.await_window(now),
            false => self.timers.stop(Timer::Persist),
        }
    }

    #[cold]
    fn await_window(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Persist) {
            let path = self.sender.path_for_control(self.last_path);
            let wait = self.sender.rto(path).times(1 << self.persists.min(10)).min(self.config.max_rto);
            self.timers.set(Timer::Persist, now + wait);
        }
    }
}

/// `now` minus the peer's clock of 1 ms, in nanoseconds up to a constant.
fn since_peer_clock(now: Instant, value: u32) -> i64 {
    let (ms, rest) = ((now.0 / 1_000_000) as u32, now.0 % 1_000_000);
    i64::from(ms.wrapping_sub(value) as i32) * 1_000_000 + rest as i64
}
