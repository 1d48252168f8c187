//! Keep-alives that a driver relays: it joins two connections, and what asks on one whether the other host is there is answered
//! when the peer of the other has answered (RFC 9293 §3.8.4, RFC 1122 §4.2.3.6).

use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Instant, PathId};

use super::connection::{Connection, Event, State};
use super::heartbeat::Beat;
use super::relaying::{BEHIND, Probes, Relaying, Verdict};
use crate::segment::Segment;

impl Connection {
    /// From now on the driver answers probes of this form: [`Event::Probed`] tells of one, [`Self::answer_probe`] answers it, and
    /// [`Self::probe`] asks the peer. With `None` the connection answers at once again, also what waits.
    pub fn relay(&mut self, now: Instant, probes: Option<Probes>) {
        self.answer_probe(now);
        self.relaying = probes.map(|probes| Box::new(Relaying::new(now, probes)));
    }

    /// Asks the peer whether it, or the host behind it, is there; [`Event::ProbeAnswered`] says that it is. A probe may be lost:
    /// ask again when asked again. After an unanswered one, heartbeats leave on all paths. `false` if nothing can be asked:
    /// the driver does not relay, or both directions have ended.
    pub fn probe(&mut self, now: Instant) -> bool {
        let open = self.may_be_probed();
        let Some(relaying) = self.relaying.as_mut().filter(|_| open) else { return false };
        let probes = relaying.probes;
        let (number, was_answered) = relaying.next_probe();
        let path = self.engine.path_for_control(self.last_path);
        match probes {
            Probes::KeepAlives => self.send_probe(now, path),
            Probes::Heartbeats if was_answered => self.send_beat(now, path, Beat::Ask(number)),
            Probes::Heartbeats => {
                let paths: Vec<_> = self.paths().collect();
                paths.into_iter().for_each(|path| self.send_beat(now, path, Beat::Ask(number)));
            }
        }
        true
    }

    /// Answers the peer's probes that [`Event::Probed`] announced.
    pub fn answer_probe(&mut self, now: Instant) {
        let Some(relaying) = &mut self.relaying else { return };
        let probes = relaying.probes;
        let (waiting, number) = relaying.take_waiting();
        let paths: Vec<_> = self.paths().filter(|path| waiting.contains(*path)).collect();
        for path in paths {
            match probes {
                Probes::KeepAlives => self.receiver.ack_now(path, None, &mut self.engine.timers),
                Probes::Heartbeats => self.send_beat(now, path, Beat::Answer(number)),
            }
        }
    }

    /// Either end is asked whether it is there, so the connection is idle: the memory of what was measured long ago, and of what was under way, is given back if
    /// all was acknowledged.
    pub(super) fn rest(&mut self, now: Instant) {
        if self.sender.map.is_idle() {
            self.engine.rest(now);
            self.sender.shrink();
            self.receiver.buffer.shrink();
            self.control.shrink_to_fit();
        }
    }

    /// Takes `segment` if it is a keep-alive that the driver answers: it repeats the last sequence number that came, without data or
    /// with one byte of garbage.
    #[cold]
    pub(super) fn defers_keep_alive(
        &mut self,
        now: Instant,
        path: PathId,
        offset: i64,
        segment: &Segment,
    ) -> bool {
        let flags = segment.header.flags;
        let repeats = offset + 1 == self.receiver.next() as i64
            && segment.payload.len() <= 1
            && flags.contains(TcpFlags::ACK)
            && !flags.intersects(TcpFlags::SYN | TcpFlags::FIN);
        // Linux probes a closed window like this, too, and whoever sends a byte again that came just now needs the answer.
        let is_shut = self.receiver.advertised(self.handshake.our_shift) == 0;
        let is_busy = |r: &Relaying| !segment.payload.is_empty() && r.is_busy(now);
        let deferred = self.relaying.as_ref().is_some_and(|r| r.probes == Probes::KeepAlives && !is_busy(r));
        deferred && repeats && !is_shut && self.defers(now, path, 0)
    }

    /// The same for heartbeat `number`.
    pub(super) fn defers_heartbeat(&mut self, now: Instant, path: PathId, number: u32) -> bool {
        let deferred = self.relaying.as_ref().is_some_and(|r| r.probes == Probes::Heartbeats);
        deferred && number >= BEHIND && self.defers(now, path, number)
    }

    fn defers(&mut self, now: Instant, path: PathId, number: u32) -> bool {
        let open = self.may_be_probed();
        let Some(relaying) = self.relaying.as_mut().filter(|_| open) else { return false };
        let verdict = relaying.on_probe(now, path, number);
        if verdict == Verdict::Tell {
            self.events.push_back(Event::Probed);
        }
        verdict != Verdict::Answer
    }

    /// Heartbeat `number`, one of those for the host behind the peer, was answered.
    pub(super) fn on_probe_answered(&mut self, number: u32) {
        if self.relaying.as_mut().is_some_and(|r| r.on_answer(number)) {
            self.events.push_back(Event::ProbeAnswered);
        }
    }

    /// An acceptable segment came.
    #[inline]
    pub(super) fn note_heard(&mut self, now: Instant) {
        if self.relaying.as_mut().is_some_and(|r| r.on_heard(now)) {
            self.events.push_back(Event::ProbeAnswered);
        }
    }

    fn may_be_probed(&self) -> bool {
        use State as S;
        !matches!(self.state, S::SynSent | S::SynReceived | S::TimeWait | S::Closed)
    }
}
