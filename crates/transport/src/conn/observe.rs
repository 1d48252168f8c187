//! What a connection tells: events to the application, observations to whoever asked for them.

use polypath_wire::{Instant, PathId};

use super::connection::{Connection, Event};
use super::record::{DropReason, Observation, Record};
use super::sender::Acked;
use crate::facts::PathState;

impl Connection {
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    #[inline]
    pub(super) fn tell_writable(&mut self) {
        if self.blocked {
            self.tell_room();
        }
    }

    fn tell_room(&mut self) {
        let ahead = self.ahead();
        if self.writable_ahead(ahead) >= ahead.min(self.config.send_buffer).min(self.memory) / 2 {
            self.blocked = false;
            self.events.push_back(Event::Writable);
        }
    }

    pub(super) fn tell_peer_finished(&mut self) {
        if !self.peer_finish_told && self.receiver.has_finished() && self.receiver.buffer.readable() == 0 {
            self.peer_finish_told = true;
            self.events.push_back(Event::PeerFinished);
        }
    }

    pub(super) fn tell_finished(&mut self) {
        if !self.finish_told && self.receiver.has_finished() && self.sender.is_done() {
            self.finish_told = true;
            self.events.push_back(Event::Finished);
        }
    }

    #[cold]
    pub(super) fn dropped(&mut self, now: Instant, path: PathId, reason: DropReason) {
        self.stats.drops[reason as usize] += 1;
        self.observe_event(now, Some(path), || Observation::Dropped { reason });
    }

    pub(super) fn count_episodes(&mut self, acked: &Acked) {
        if acked.episodes == 0 && acked.undone == 0 {
            return;
        }
        self.stats.fast_recoveries += u64::from(acked.episodes);
        self.stats.undone += u64::from(acked.undone);
    }

    #[inline]
    pub(super) fn observe_losses(&mut self, now: Instant) {
        if !self.sender.losses.is_empty() {
            self.tell_losses(now);
        }
    }

    #[cold]
    fn tell_losses(&mut self, now: Instant) {
        let mut losses = std::mem::take(&mut self.sender.losses);
        for (path, offset, len, cause, episode) in losses.drain(..) {
            self.observe_event(now, Some(path), || Observation::Lost { offset, len, cause, episode });
        }
        self.sender.losses = losses;
    }

    pub(super) fn observe_path(&mut self, now: Instant, path: PathId, state: PathState) {
        self.observe_event(now, Some(path), || Observation::PathState { state });
    }

    /// Which paths share a bottleneck, if that changed.
    pub(super) fn observe_bottlenecks(&mut self, now: Instant) {
        if self.paths.len() < 2 || !self.filter.events {
            return;
        }
        let Some(verdict) = self.engine.poll_verdict() else { return };
        for (path, of) in verdict.iter() {
            self.observe_event(now, Some(path), || Observation::Bottleneck { of });
        }
    }

    pub(super) fn observe_event(
        &mut self,
        at: Instant,
        path: Option<PathId>,
        what: impl FnOnce() -> Observation,
    ) {
        if self.filter.events {
            self.keep(at, path, what);
        }
    }

    #[cold]
    fn keep(&mut self, at: Instant, path: Option<PathId>, what: impl FnOnce() -> Observation) {
        self.records.push_back(Record { at, path, what: what() });
    }

    pub(super) fn observe_packet(&mut self, at: Instant, path: PathId, what: impl FnOnce() -> Observation) {
        if self.filter.packets {
            self.keep(at, Some(path), what);
        }
    }

    /// Window and estimate of `path`, after an acknowledgment.
    #[inline]
    pub(super) fn observe_state(&mut self, at: Instant, path: PathId) {
        if self.filter.state && self.engine.has_joined(path) {
            self.tell_state(at, path);
        }
    }

    #[cold]
    fn tell_state(&mut self, at: Instant, path: PathId) {
        let stats = self.engine.path_stats(path);
        let window =
            Observation::Window { cwnd: stats.cwnd, ssthresh: stats.ssthresh, in_flight: stats.in_flight };
        self.records.push_back(Record { at, path: Some(path), what: window });
        let rtt = self.engine.latest_rtt(path);
        if let (Some(srtt), Some(rtt)) = (stats.srtt, rtt) {
            let what = Observation::Estimate { srtt, rtt, rate: stats.rate };
            self.records.push_back(Record { at, path: Some(path), what });
        }
    }
}
