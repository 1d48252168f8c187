//! Making segments: what is due goes out in the order handshake, control, data, acknowledgments.

use polypath_wire::tcp::{MultiRoute, SackBlocks, TcpFlags};
use polypath_wire::{Ecn, Instant, PathId, Seq};

use super::config::AckReturn;
use super::connection::{Connection, State};
use super::receiver::PendingAck;
use super::record::Observation;
use super::sender::Outgoing;
use super::timers::Timer;
use crate::payload::Payload;
use crate::segment::{Segment, Transmit};

/// Bare acknowledgments that tell the peer of a path on which nothing comes back.
const ANNOUNCEMENTS: u32 = 6;

/// Bytes of a segment that SACK blocks take: before them, with padding, and each.
const SACK_HEADER: u64 = 4;
const SACK_BLOCK: u64 = 8;

impl Connection {
    /// The next segment to send. A segment returned counts as sent.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut segment = Segment::default();
        let path = self.poll_transmit_into(now, &mut segment)?;
        Some(Transmit { path, segment })
    }

    /// The same for a driver that keeps segments in slots: it is written over `segment`, and the path
    /// returned.
    #[must_use]
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, segment: &mut Segment) -> Option<PathId> {
        if self.paths.is_empty() {
            return None;
        }
        let data = self.sender.has_work(&self.engine);
        match data || self.has_more_than_data() {
            true => self.next_segment(now, data, segment),
            false => None, // every second time it is asked for
        }
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) or [`poll_event`](Self::poll_event) may have something.
    pub fn has_output(&self) -> bool {
        let segments =
            !self.paths.is_empty() && (self.sender.has_work(&self.engine) || self.has_more_than_data());
        segments || self.readable_news || !self.events.is_empty()
    }

    #[inline]
    fn has_more_than_data(&self) -> bool {
        self.receiver.has_acks()
            || !self.control.is_empty()
            || matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// `data`: there may be some to send.
    fn next_segment(&mut self, now: Instant, data: bool, segment: &mut Segment) -> Option<PathId> {
        if let Some(control) = self.control.pop_front() {
            *segment = control.segment;
            let path = self.path_for_answer(control.path);
            self.engine.on_bare(now, path);
            return Some(path);
        }
        match self.state {
            State::Closed => None,
            State::SynSent => self.next_handshake(now, segment).or_else(|| self.next_early(now, segment)),
            State::SynReceived => self.next_of_accepted(now, data, segment),
            State::TimeWait => self.next_ack(now, segment),
            _ if data => self.next_data(now, segment).or_else(|| self.next_ack(now, segment)),
            _ => self.next_ack(now, segment),
        }
    }

    pub(super) fn next_data(&mut self, now: Instant, segment: &mut Segment) -> Option<PathId> {
        if self.config.max_burst > 0 && self.burst >= self.config.max_burst {
            return None;
        }
        let Some(outgoing) = self.sender.next(now, &mut self.engine) else {
            if self.sender.window_blocked() {
                self.arm_persist(now);
            }
            return None;
        };
        self.burst += 1;
        let Outgoing { path, offset, len, retransmission } = outgoing;
        if let Some(why) = self.engine.take_why() {
            self.observe_packet(now, path, || Observation::Picked { offset, why });
        }
        self.observe_packet(now, path, || Observation::Sent { offset, len, retransmission });
        self.write_data(now, &outgoing, segment);
        if self.blocked {
            self.tell_writable();
        }
        Some(path)
    }

    fn write_data(&mut self, now: Instant, outgoing: &Outgoing, segment: &mut Segment) {
        let written = self.sender.stream.end();
        let end = outgoing.offset + u64::from(outgoing.len);
        let synchronized = self.state != State::SynSent;
        let flags = if synchronized { TcpFlags::ACK } else { TcpFlags::default() };
        self.write_bare(now, outgoing.path, self.snd_seq(outgoing.offset), flags, segment);
        segment.payload = self.sender.stream.slice(outgoing.offset, end.min(written));
        if end > written {
            segment.header.flags = segment.header.flags | TcpFlags::FIN;
            self.fin_sent();
        } else if end == written {
            segment.header.flags = segment.header.flags | TcpFlags::PSH;
        }
        if synchronized {
            self.acknowledge_too(now, outgoing.path, segment);
            self.mark_data(now, outgoing, segment);
        }
    }

    /// Data acknowledges what came.
    fn acknowledge_too(&mut self, now: Instant, path: PathId, segment: &mut Segment) {
        self.receiver.piggyback(path, &mut self.engine.timers);
        self.acknowledge(segment);
        if self.sender.sack && !self.receiver.buffer.held().is_empty() {
            self.fill_with_blocks(path, segment);
        }
        self.receiver.acknowledged(now, path);
    }

    /// SACK blocks where the data leaves room for them (RFC 2018 §4).
    #[cold]
    fn fill_with_blocks(&mut self, path: PathId, segment: &mut Segment) {
        let left = u64::from(self.engine.views()[path].mss).saturating_sub(segment.payload.len());
        let most = (left.saturating_sub(SACK_HEADER) / SACK_BLOCK) as usize;
        let most = most.min(segment.header.options.sack_room());
        if most > 0 {
            segment.header.options.sack = self.sack_blocks(&PendingAck::on(path), most);
        }
    }

    fn sack_blocks(&mut self, ack: &PendingAck, most: usize) -> SackBlocks {
        let first = self.first_rcv_seq();
        self.receiver.sack_blocks(ack, most, |offset| first.plus(offset as u32))
    }

    pub(super) fn next_ack(&mut self, now: Instant, segment: &mut Segment) -> Option<PathId> {
        let pending = self.receiver.pop_ack()?;
        let path = self.ack_path(pending.path);
        self.write_bare(now, path, self.snd_seq(self.sender.map.nxt()), TcpFlags::ACK, segment);
        self.acknowledge(segment);
        if let Some(multi_route) = &mut segment.header.options.multi_route {
            multi_route.reply = self.receiver.paths.get(pending.path).and_then(|p| p.route);
        }
        if self.sender.sack {
            let most = if self.handshake.timestamps { 3 } else { 4 }; // RFC 2018 §3
            segment.header.options.sack = self.sack_blocks(&pending, most);
        }
        if path == pending.path {
            self.echo_mark(path, segment);
        }
        self.date(now, &pending, segment);
        self.receiver.acknowledged(now, pending.path);
        self.engine.on_bare(now, path);
        Some(path)
    }

    /// With several paths an acknowledgment bears the time at which the newest segment arrived on its path, not the time at which it leaves.
    /// So the peer does not take the wait for further segments for a delay of the path. One that tells of no segment, but of the window, is
    /// newer than those before it.
    fn date(&self, now: Instant, pending: &PendingAck, segment: &mut Segment) {
        let came = self.receiver.newest_on(now, pending.path).filter(|_| self.paths.len() > 1);
        if let Some((timestamps, came)) = segment.header.options.timestamps.as_mut().zip(came) {
            timestamps.value = self.clock(came);
        }
    }

    /// The path of an acknowledgment of what came on `from`.
    fn ack_path(&mut self, from: PathId) -> PathId {
        if self.config.ack_return == AckReturn::RoundRobin {
            self.last_return = self.paths.after(self.last_return);
            return self.last_return;
        }
        self.path_for_answer(from)
    }

    /// An answer goes where the question came from, unless that path has been removed since.
    #[inline]
    pub(super) fn path_for_answer(&self, path: PathId) -> PathId {
        match self.paths.contains(path) {
            true => path,
            false => self.engine.path_for_control(self.paths.after(path)),
        }
    }

    fn acknowledge(&mut self, segment: &mut Segment) {
        segment.header.ack = self.rcv_seq();
        segment.header.window = self.receiver.advertise(self.handshake.our_shift);
    }

    /// A segment without data, acknowledgment or window.
    pub(super) fn bare_segment(&self, now: Instant, path: PathId, seq: Seq, flags: TcpFlags) -> Segment {
        let mut segment = Segment::default();
        self.write_bare(now, path, seq, flags, &mut segment);
        segment
    }

    /// The same, written over `segment`.
    #[inline(always)]
    fn write_bare(&self, now: Instant, path: PathId, seq: Seq, flags: TcpFlags, segment: &mut Segment) {
        let Segment { header, payload, ecn } = segment;
        (header.src_port, header.dst_port) = (self.ports.local, self.ports.remote);
        (header.seq, header.ack, header.flags) = (seq, Seq(0), flags);
        (header.window, header.urgent) = (0, 0);
        header.options.clear();
        header.options.timestamps = self.handshake.timestamps.then(|| self.timestamps(now, path));
        header.options.multi_route =
            self.handshake.multi_route.then_some(MultiRoute { route: path.place(), reply: None });
        (*payload, *ecn) = (Payload::EMPTY, Ecn::None);
    }

    /// Sends a bare acknowledgment on `path`, from which the peer learns that the path exists even if
    /// we have no data for it; again after a while, a few times, until something comes back there. Does
    /// nothing before the handshake is complete.
    pub fn announce(&mut self, now: Instant, path: PathId) {
        let open = !matches!(self.state, State::SynSent | State::SynReceived | State::Closed);
        if open && self.paths.contains(path) {
            let next = self.snd_seq(self.sender.map.nxt());
            let mut segment = self.bare_segment(now, path, next, TcpFlags::ACK);
            self.acknowledge(&mut segment);
            self.control.push_back(Transmit { path, segment });
            let receiver = &mut self.receiver.paths[path];
            receiver.announced += 1;
            if receiver.announced < ANNOUNCEMENTS {
                let wait = self.config.initial_rto.times(1 << receiver.announced);
                self.engine.timers.set(Timer::Probe(path), now + wait);
            }
        }
    }

    /// Asks the peer for an acknowledgment on `path`: a sequence number it has seen already
    /// (RFC 9293 §3.8.4).
    pub(super) fn send_probe(&mut self, now: Instant, path: PathId) {
        let before = self.snd_seq(self.sender.map.una()).plus(u32::MAX);
        let mut segment = self.bare_segment(now, path, before, TcpFlags::ACK);
        self.acknowledge(&mut segment);
        self.control.push_back(Transmit { path, segment });
    }

    /// Sequence number of `offset` in our stream.
    pub(super) fn snd_seq(&self, offset: u64) -> Seq {
        self.handshake.isn.plus(1).plus(offset as u32)
    }

    /// Offset of `seq` in our stream; negative before its first byte.
    pub(super) fn snd_offset(&self, seq: Seq) -> i64 {
        let una = self.sender.map.una();
        una as i64 + i64::from(seq.distance(self.snd_seq(una)))
    }

    /// Sequence number of the next byte expected.
    pub(super) fn rcv_seq(&self) -> Seq {
        self.first_rcv_seq().plus(self.receiver.next() as u32)
    }

    /// Sequence number of the first byte of the peer's stream.
    pub(super) fn first_rcv_seq(&self) -> Seq {
        self.handshake.peer.map_or(Seq(0), |p| p.0.plus(1))
    }

    /// Offset of `seq` in the peer's stream; negative before its first byte.
    pub(super) fn rcv_offset(&self, seq: Seq) -> i64 {
        self.receiver.next() as i64 + i64::from(seq.distance(self.rcv_seq()))
    }
}
