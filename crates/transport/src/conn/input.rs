//! Which of the segments that arrive count (RFC 9293 §3.10.7.4, first to fourth step).

use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Duration, Instant, PathId, Seq};

use super::connection::{Connection, State};
use super::record::DropReason;
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
        if !self.paths.knows(path) {
            return self.dropped(now, path, DropReason::UnknownPath);
        }
        match self.state {
            State::Closed => self.dropped(now, path, DropReason::WrongState),
            State::SynSent => self.handle_in_syn_sent(now, path, segment),
            _ => self.handle_synchronized(now, path, segment),
        }
    }

    /// Both sides know their sequence numbers.
    fn handle_synchronized(&mut self, now: Instant, path: PathId, segment: &mut Segment) {
        let offset = self.rcv_offset(segment.header.seq);
        let flags = segment.header.flags;
        let timestamps = segment.header.options.timestamps.filter(|_| self.handshake.timestamps);
        let exempt = flags.intersects(TcpFlags::RST | TcpFlags::SYN); // a SYN is not of this connection
        if self.handshake.timestamps && timestamps.is_none() && !exempt {
            return self.dropped(now, path, DropReason::MissingTimestamp);
        }
        let old =
            timestamps.is_some() && self.receiver.paths.get(path).is_some_and(|p| p.is_old(now, timestamps));
        if old && !flags.contains(TcpFlags::RST) {
            self.dropped(now, path, DropReason::OldTimestamp); // RFC 7323 §5.3 R1
            return self.challenge(now, path);
        }
        let empty = segment.payload.is_empty();
        if empty && flags == TcpFlags::ACK && self.handle_heartbeat(now, path, segment) {
            return;
        }
        if !self.is_acceptable(offset, segment.seq_len()) {
            return self.handle_unacceptable(now, path, offset, segment);
        }
        if self.is_early(flags) {
            return self.handle_early(now, path, offset, segment);
        }
        self.learn_route(path, segment);
        if exempt || !flags.contains(TcpFlags::ACK) {
            return self.handle_exceptional(now, path, offset, flags);
        }
        self.heard_from(now, path, empty);
        if self.handle_ack(now, path, offset, segment) {
            self.receiver.on_timestamps(now, path, offset, timestamps);
            if let Some(ts) = timestamps.filter(|_| self.receiver.thins() && !empty) {
                self.receiver.on_echo(now, path, self.clock_instant(now, ts.echo));
            }
            if !empty {
                self.note_mark(path, segment.ecn, flags);
            }
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
            if offset >= self.earliest_recent() {
                self.learn_route(path, segment); // a slow path may bring nothing but what came already
            }
            let known = self.receiver.paths.get_mut(path);
            known.into_iter().for_each(|p| p.bytes += segment.payload.len());
            self.stats.segments_received += u64::from(!segment.payload.is_empty());
            self.stats.duplicate_bytes += segment.payload.len();
        }
        if self.state == State::TimeWait && flags.contains(TcpFlags::FIN) {
            self.engine.timers.set(Timer::TIME_WAIT, now + self.config.time_wait);
        }
        let closed_window = beyond && self.receiver.window_end() == self.receiver.next();
        if closed_window && offset == self.receiver.next() as i64 && flags.contains(TcpFlags::ACK) {
            self.handle_ack(now, path, offset, segment); // §3.10.7.4: valid ACKs count in a closed window
        }
        if self.defers_keep_alive(now, path, offset, segment) {
            return;
        }
        if segment.payload.is_empty() {
            self.rest(now);
            self.challenge(now, path);
        } else if beyond || offset < 0 {
            self.receiver.ack_now(path, Some(offset.max(0) as u64), &mut self.engine.timers);
        } else {
            let len = segment.payload.len();
            self.receiver.ack_duplicate(path, offset as u64, len, &mut self.engine.timers);
        }
    }

    /// An acceptable segment came on `path`: the peer lives. If it carries no data, it answers something
    /// that we sent there, so a path that had failed works again.
    pub(super) fn heard_from(&mut self, now: Instant, path: PathId, answer: bool) {
        self.unanswered = 0;
        self.note_heard(now);
        if let Some(known) = self.receiver.paths.get_mut(path) {
            self.last_path = path;
            known.heard = true;
        }
        if self.engine.timers.is_set(Timer::KEEP_ALIVE) {
            self.engine.timers.set(Timer::KEEP_ALIVE, now + self.config.keep_alive);
        }
        if answer && self.engine.path_state(path) == PathState::Failed && !self.engine.is_silent(path) {
            self.revive(now, path);
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
            self.receiver.ack_now(path, None, &mut self.engine.timers);
        }
    }

    /// Whether `segment` could come from our peer: its sequence numbers lie where the peer may send and
    /// acknowledge, or did a window ago, for a faster path may have brought all that since. A segment from an
    /// unknown address must pass this before it adds a path.
    pub fn recognizes(&self, segment: &Segment) -> bool {
        let synchronized = !matches!(self.state, State::Closed | State::SynSent);
        let acked = self.snd_offset(segment.header.ack);
        let window = self.sender.window.largest as i64;
        let end = self.receiver.window_end() as i64;
        let acknowledges = segment.header.flags.contains(TcpFlags::ACK)
            && acked <= self.sender.map.nxt() as i64
            && acked >= self.sender.map.una() as i64 - window; // RFC 5961 §5
        synchronized
            && (acknowledges || self.is_early(segment.header.flags))
            && (self.earliest_recent()..=end).contains(&self.rcv_offset(segment.header.seq))
    }

    /// What the peer may have sent a window ago.
    fn earliest_recent(&self) -> i64 {
        let (next, end) = (self.receiver.next() as i64, self.receiver.window_end() as i64);
        (next - (end - next)).max(0)
    }

    /// Whether we sent `seq` and the peer has not acknowledged it: what an ICMP message quotes must
    /// pass this (RFC 5927 §4.1).
    pub fn has_in_flight(&self, seq: Seq) -> bool {
        let (una, nxt) = (self.sender.map.una() as i64, self.sender.map.nxt() as i64);
        (una..nxt).contains(&self.snd_offset(seq))
    }
}
