//! Closing: FINs and resets (RFC 9293 §3.6, §3.10.4, §3.10.5).

use polypath_wire::tcp::{TcpFlags, TcpOptions};
use polypath_wire::{Duration, Instant, PathId, Seq};

use super::connection::{CloseReason, Connection, Event, State};
use super::record::DropReason;
use super::timers::Timer;
use crate::segment::{Segment, Transmit};

impl Connection {
    /// No more writes; a FIN follows the last byte, if need be after the handshake: an empty stream
    /// arrives too. The peer may go on sending (half-close). To give up instead, [`abort`](Self::abort).
    pub fn close(&mut self) {
        self.sender.stream.finish();
        self.sender.cut_short = false;
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

    /// An ICMP error says that a segment with this sequence number cannot be delivered: it means our SYN. Once the
    /// connection is there such an error means nothing: the way may mend (RFC 9293 §3.9.2.2).
    /// The connection ends for this `reason`.
    pub fn unreachable(&mut self, seq: Seq, reason: CloseReason) {
        if self.state == State::SynSent && seq == self.handshake.isn {
            self.lose(reason);
        }
    }

    /// Nobody waits for the peer's FIN any more: from now on FIN-WAIT-2 lasts
    /// [`fin_wait`](crate::ConnectionConfig::fin_wait), unless that time runs already.
    pub fn limit_fin_wait(&mut self, now: Instant) {
        let limited = self.config.fin_wait > Duration::ZERO && self.state == State::FinWait2;
        if limited && !self.engine.timers.is_set(Timer::TIME_WAIT) {
            self.engine.timers.set(Timer::TIME_WAIT, now + self.config.fin_wait);
        }
    }

    /// Our FIN leaves.
    pub(super) fn fin_sent(&mut self) {
        match self.state {
            State::Established => self.finish(State::FinWait1),
            State::CloseWait => self.finish(State::LastAck),
            _ => {}
        }
    }

    #[cold]
    pub(super) fn our_fin_acknowledged(&mut self, now: Instant) {
        self.events.push_back(Event::Delivered);
        match self.state {
            State::FinWait1 => self.finish(State::FinWait2),
            State::Closing => self.time_wait(now),
            State::LastAck => self.finish(State::Closed),
            _ => {}
        }
        self.tell_finished();
    }

    /// The peer's FIN and all before it have come.
    #[cold]
    pub(super) fn peer_finished(&mut self, now: Instant) {
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

    #[cold]
    fn time_wait(&mut self, now: Instant) {
        self.finish(State::TimeWait);
        self.engine.timers.stop_all();
        self.engine.timers.set(Timer::TIME_WAIT, now + self.config.time_wait);
    }

    /// RFC 5961 §3: only the exact next sequence number resets.
    pub(super) fn handle_reset(&mut self, now: Instant, path: PathId, offset: i64) {
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

    /// Ends the connection early.
    pub(super) fn lose(&mut self, reason: CloseReason) {
        self.finish(State::Closed);
        self.events.push_back(Event::Lost(reason));
    }

    /// Enters `state` at the end of the connection.
    pub(super) fn finish(&mut self, state: State) {
        self.state = state;
        if state == State::Closed {
            self.engine.timers.stop_all();
        }
    }

    /// A RST that the peer must believe: its sequence number is the next one.
    pub(super) fn send_reset(&mut self) {
        let path = self.engine.path_for_control(self.last_path);
        let seq = self.snd_seq(self.sender.map.nxt());
        let mut segment = self.bare_segment(Instant::ZERO, path, seq, TcpFlags::RST | TcpFlags::ACK);
        segment.header.options = TcpOptions::default();
        segment.header.ack = self.rcv_seq();
        self.control.push_back(Transmit { path, segment });
    }

    /// A RST in answer to a segment that acknowledges what we did not send (RFC 9293 §3.5.2, group 2).
    #[cold]
    pub(super) fn reset_answer(&mut self, now: Instant, path: PathId, segment: &Segment) {
        let mut reset = self.bare_segment(now, path, segment.header.ack, TcpFlags::RST);
        reset.header.options = TcpOptions::default();
        self.control.push_back(Transmit { path, segment: reset });
    }
}
