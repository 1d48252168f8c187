//! Opening: SYN, SYN-ACK and what they agree upon (RFC 9293 §3.5, RFC 7323, RFC 2018).

use polypath_wire::tcp::{MultiRoute, TcpFlags, TcpOptions, Timestamps};
use polypath_wire::{Duration, Instant, PathId};

use super::connection::{CloseReason, Connection, Event, State};
use super::handshake::TIMESTAMP_TICK;
use super::record::DropReason;
use super::timers::Timer;
use crate::engine::config::PathConfig;
use crate::segment::Segment;

/// Segment size of a peer that names none (RFC 9293 §3.7.1, of IPv4; whoever knows that it is IPv6 names that one's).
const DEFAULT_MSS: u32 = 536;

/// Timestamps take 12 bytes of each data segment (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u32 = 12;

/// SYNs or SYN-ACKs that are remembered.
const MOST_SENT: usize = 16;

/// The multi-route option takes 8 bytes of each segment.
const MULTI_ROUTE_LEN: u32 = 8;

impl Connection {
    pub(super) fn start_handshake(&mut self, now: Instant, path: PathId) {
        self.handshake.path = if self.paths.contains(path) { path } else { self.paths.after(path) };
        self.handshake.due = true;
        let timeout = self.config.initial_rto.times(1 << self.handshake.attempts.min(6));
        self.engine.timers.set(Timer::HANDSHAKE, now + timeout.min(self.config.max_rto));
    }

    /// Each attempt takes the next path, so that a dead first path does not keep us from connecting.
    pub(super) fn on_handshake_timeout(&mut self, now: Instant) {
        self.handshake.attempts += 1;
        if self.handshake.attempts > self.config.max_timeouts {
            return self.lose(CloseReason::TimedOut);
        }
        self.start_handshake(now, self.paths.after(self.handshake.path));
    }

    /// The SYN or SYN-ACK, if it is due.
    #[cold]
    pub(super) fn next_handshake(&mut self, now: Instant, segment: &mut Segment) -> Option<PathId> {
        if !std::mem::take(&mut self.handshake.due) {
            return None;
        }
        let answer = self.state == State::SynReceived;
        let path = self.path_for_answer(self.handshake.path);
        if self.handshake.sent.len() < MOST_SENT {
            self.handshake.sent.push((path, now));
        }
        *segment = self.bare_segment(now, path, self.handshake.isn, TcpFlags::SYN);
        segment.header.window = self.receiver.buffer.window().min(65_535) as u16;
        if answer {
            segment.header.flags = TcpFlags::SYN | TcpFlags::ACK;
            segment.header.ack = self.first_rcv_seq();
        }
        self.offer_ecn(answer, segment);
        segment.header.options = self.syn_options(now, path, answer);
        Some(path)
    }

    /// What we offer, or of what was offered we accept.
    fn syn_options(&self, now: Instant, path: PathId, answer: bool) -> TcpOptions {
        let timestamps = self.handshake.timestamps.then(|| self.timestamps(now, path));
        TcpOptions {
            mss: self.paths.iter().map(|(_, p)| p.mss.min(65_535) as u16).min(),
            window_scale: self.handshake.scaling.then_some(self.handshake.our_shift),
            sack_permitted: if answer { self.sender.sack } else { self.config.sack },
            timestamps,
            multi_route: self
                .handshake
                .multi_route
                .then_some(MultiRoute { route: path.place(), reply: None }),
            ..Default::default()
        }
    }

    /// Takes the sequence number and the options of the peer's SYN.
    pub(super) fn learn_options(&mut self, now: Instant, path: PathId, syn: &Segment) {
        let options = &syn.header.options;
        let mss = options.mss.map_or(DEFAULT_MSS, u32::from).max(64);
        self.handshake.peer = Some((syn.header.seq, mss));
        self.handshake.timestamps &= options.timestamps.is_some();
        self.handshake.scaling &= options.window_scale.is_some();
        if self.handshake.scaling {
            self.handshake.peer_shift = options.window_scale.map_or(0, |s| s.min(14)); // RFC 7323 §2.3
        } else {
            self.handshake.our_shift = 0;
        }
        self.handshake.multi_route &= options.multi_route.is_some();
        self.agree_ecn(syn.header.flags);
        if self.config.multi_route && !self.handshake.multi_route {
            let others: Vec<_> = self.paths().filter(|p| *p != path).collect();
            others.into_iter().for_each(|other| self.remove_path(now, other));
        }
        let sack = self.config.sack && options.sack_permitted;
        if sack != self.sender.sack || self.engine.lanes().is_empty() {
            self.engine.agree(self.config.loss.build(sack), self.handshake.multi_route);
        }
        self.sender.agree(sack, self.handshake.multi_route);
        self.receiver.agree(&self.config, sack, self.handshake.multi_route);
        self.sender.window.open(u64::from(syn.header.window)); // never scaled in a SYN
        self.sender.offer(&mut self.engine);
        let sizes: Vec<_> = self.paths.iter().map(|(_, p)| self.payload_size(p)).collect();
        for ((path, config), mss) in self.paths.iter().zip(sizes) {
            match self.engine.has_joined(path) {
                true => self.engine.set_mss(now, path, mss, self.sender.largest(mss)),
                false => self.engine.add_path(now, path, config, mss),
            }
        }
        self.sender.follow(&mut self.engine);
        self.receiver.paths.get_mut(path).into_iter().for_each(|p| p.heard = true);
        self.learn_route(path, syn);
        self.receiver.on_timestamps(now, path, 0, options.timestamps);
    }

    /// Remembers what the peer calls `path`: its numbers need not be ours.
    pub(super) fn learn_route(&mut self, path: PathId, segment: &Segment) {
        if let Some(option) = segment.header.options.multi_route.filter(|_| self.handshake.multi_route) {
            self.receiver.paths.get_mut(path).into_iter().for_each(|p| p.route = Some(option.route));
        }
    }

    /// Payload of a full segment on `path`: the smaller of both sides' segment sizes, less the options
    /// that every segment carries (RFC 6691).
    pub(super) fn payload_size(&self, path: &PathConfig) -> u32 {
        let unknown = if self.handshake.early { u32::MAX } else { DEFAULT_MSS };
        let peer = self.handshake.peer.map_or(unknown, |p| p.1);
        let timestamps = if self.handshake.timestamps { TIMESTAMPS_LEN } else { 0 };
        let multi_route = if self.handshake.multi_route { MULTI_ROUTE_LEN } else { 0 };
        path.segment_size().min(peer).saturating_sub(timestamps + multi_route).max(32)
    }

    /// A segment arrived in SYN-SENT (RFC 9293 §3.10.7.3).
    #[cold]
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, path: PathId, segment: &Segment) {
        let header = &segment.header;
        let has = |flag| header.flags.contains(flag);
        let acceptable = (0..=self.sender.map.nxt() as i64).contains(&self.snd_offset(header.ack));
        if has(TcpFlags::ACK) && !acceptable {
            self.dropped(now, path, DropReason::AckOfUnsent);
            if !has(TcpFlags::RST) {
                self.reset_answer(now, path, segment);
            }
            return;
        }
        if has(TcpFlags::RST) {
            match has(TcpFlags::ACK) {
                true => self.lose(CloseReason::Refused),
                false => self.dropped(now, path, DropReason::WrongState),
            }
            return;
        }
        if !has(TcpFlags::SYN) {
            return self.dropped(now, path, DropReason::WrongState);
        }
        self.learn_options(now, path, segment);
        self.last_path = path;
        if has(TcpFlags::ACK) {
            self.receiver.ack_now(path, None, &mut self.engine.timers);
            self.establish(now, path, segment);
        } else {
            self.state = State::SynReceived; // simultaneous open
            self.handshake.early = false;
            self.handshake.sent.clear();
            self.start_handshake(now, path);
        }
    }

    /// `answer` completes the handshake.
    #[cold]
    pub(super) fn establish(&mut self, now: Instant, path: PathId, answer: &Segment) {
        self.engine.timers.stop(Timer::HANDSHAKE);
        self.handshake.due = false;
        self.sender.holds_fin = false;
        let told = self.state == State::SynReceived && self.handshake.early;
        self.state = State::Established;
        let sent = std::mem::take(&mut self.handshake.sent);
        match self.answered_first(&sent, answer) {
            // The SYN's path is measured, as data's is. The answer may have come on another path, and its way back counts.
            Some((first, sent)) => self.engine.measured(now, first, now.since(sent)),
            None => {
                let lost = sent.iter().filter(|(on, _)| *on == path).count().saturating_sub(1);
                self.engine.after_lost_syns(now, path, lost as u32);
            }
        }
        if self.config.keep_alive > Duration::ZERO {
            self.engine.timers.set(Timer::KEEP_ALIVE, now + self.config.keep_alive);
        }
        if self.config.knowledge.heartbeat > Duration::ZERO {
            self.engine.timers.set(Timer::HEARTBEAT, now + self.config.knowledge.heartbeat);
        }
        if !told {
            self.tell(Event::Connected);
        }
    }

    /// The first of the SYNs or SYN-ACKs that were `sent`, if `answer`, which completes the handshake, is to it for certain: then none was
    /// lost, the way may be longer than its timer, and the round trip is known (RFC 7323 §4).
    fn answered_first(&self, sent: &[(PathId, Instant)], answer: &Segment) -> Option<(PathId, Instant)> {
        let (first, others) = sent.split_first()?;
        let timestamps = answer.header.options.timestamps.filter(|_| self.handshake.timestamps);
        let answers = |sent: &(PathId, Instant)| timestamps.is_some_and(|t| t.echo == self.clock(sent.1));
        (others.is_empty() || answers(first) && !others.iter().any(answers)).then_some(*first)
    }

    /// Timestamps for a segment that leaves now on `path`.
    pub(super) fn timestamps(&self, now: Instant, path: PathId) -> Timestamps {
        let echo = self.receiver.paths.get(path).and_then(|p| p.echo());
        Timestamps { value: self.clock(now), echo: echo.unwrap_or(0) }
    }

    /// Our timestamp clock: 1 ms, with an offset that tells nothing of the host (RFC 7323 §5.4).
    pub(super) fn clock(&self, now: Instant) -> u32 {
        ((now.0 / TIMESTAMP_TICK) as u32).wrapping_add(self.handshake.isn.0)
    }

    /// When our clock showed `value`, if that was not long before `now`: the latest such instant.
    pub(super) fn clock_instant(&self, now: Instant, value: u32) -> Instant {
        let age = u64::from(self.clock(now).wrapping_sub(value)) * TIMESTAMP_TICK;
        Instant((now.0 / TIMESTAMP_TICK * TIMESTAMP_TICK).saturating_sub(age) + TIMESTAMP_TICK - 1)
    }
}
