//! What is known of the queues on the way: our own, and those of others, of which marked packets and
//! heartbeats tell. A path that is found congested is closed (Polishchuk and Gurtov, §III.B).

use polypath_wire::{Duration, Instant, PathId};

use super::lane::Lane;
use super::machine::Engine;
use crate::facts::{Beside, PathState};

impl Engine {
    /// How long a packet given to `path` now waits behind our own.
    pub(super) fn own_wait(&self, now: Instant, path: PathId) -> Duration {
        let (view, lane) = (&self.views[path], &self.lanes[path]);
        lane.idle_at(now, view.in_flight, lane.estimator.bottleneck()).since(now)
    }

    /// Others of the association have this under way on `path`, or nothing.
    #[inline]
    pub(crate) fn set_beside(&mut self, now: Instant, path: PathId, beside: Option<Beside>) {
        let Some(lane) = self.lanes.get_mut(path) else { return };
        if std::mem::replace(&mut lane.beside, beside) != beside {
            self.refresh_room(now, path);
        }
    }

    /// Something waited for `wait` on `path`: what of that is not our own queue is the queue of others.
    #[inline]
    pub(super) fn note_wait(&mut self, now: Instant, path: PathId, wait: Duration) {
        if self.rules.others && self.lanes.len() > 1 {
            self.note_others(now, path, wait);
        }
    }

    #[inline(never)]
    fn note_others(&mut self, now: Instant, path: PathId, wait: Duration) {
        let own = self.own_wait(now, path);
        let Lane { estimator, others, .. } = &mut self.lanes[path];
        others.sample(now, wait - own, estimator.rtt.srtt().unwrap_or_default());
    }

    /// A segment without data leaves on `path`.
    #[inline(always)]
    pub(crate) fn on_bare(&mut self, now: Instant, path: PathId) {
        if let Some(overhead) = self.views.get(path).map(|view| view.overhead).filter(|bytes| *bytes > 0) {
            self.lanes[path].estimator.occupy(now, overhead.into());
            self.refresh(now, path);
        }
    }

    /// A packet on `path` waits this long: of it the model knows our own part.
    pub(crate) fn reveal_queues(&mut self, now: Instant, path: PathId, wait: Duration) {
        let Some(p) = self.lanes.get(path) else { return };
        let own = p.idle_at(now, p.flight.in_flight(), p.estimator.bottleneck()).since(now);
        self.observers.watch.reveal(path, wait - own);
        self.refresh(now, path);
    }

    /// A heartbeat leaves on `path`.
    pub(crate) fn heartbeat_sent(&mut self, now: Instant, path: PathId, number: u32) {
        let wait = self.own_wait(now, path);
        self.observers.watch.on_heartbeat_sent(now, path, u64::from(number), wait);
    }

    /// A heartbeat came back on `path`. Returns whether that opens the path again.
    pub(crate) fn on_heartbeat(&mut self, now: Instant, path: PathId, number: u32) -> bool {
        let Some(p) = self.lanes.get(path) else { return false };
        let round_trip = p.estimator.configured_round_trip();
        let reopened = self.observers.watch.on_heartbeat(now, path, u64::from(number), round_trip);
        let congested = self.views[path].state == PathState::Congested;
        if reopened && congested {
            self.views[path].state = PathState::Active;
        }
        self.refresh(now, path);
        reopened && congested
    }

    /// A marked packet that came late closes its path.
    pub(super) fn check_mark(&mut self, now: Instant, path: PathId) {
        let (highest, fastest) =
            (self.lanes[path].flight.highest_delivered(), self.lanes[path].estimator.rtt.min());
        let Some((highest, fastest)) = highest.zip(fastest) else { return };
        if let Some(late) = self.observers.watch.on_delivered(now, path, highest, fastest) {
            self.close_congested(path, late);
        }
    }

    /// Closes `path`, which is congested, if that leaves another one open; `late`: by how much more than
    /// expected its packets take.
    #[cold]
    pub(super) fn close_congested(&mut self, path: PathId, late: Duration) {
        let open = self.views.iter().filter(|v| v.state == PathState::Active).count();
        if self.views[path].state == PathState::Active && open > 1 {
            self.views[path].state = PathState::Congested;
            self.observers.watch.close(path, late);
        }
    }

    /// "At least one available path should not be congested": if none is open, all that are closed are.
    pub(super) fn keep_one_open(&mut self) {
        if self.views.iter().any(|v| v.state == PathState::Active) {
            return;
        }
        for view in self.views.iter_mut().filter(|v| v.state == PathState::Congested) {
            view.state = PathState::Active;
            self.observers.watch.reopen(view.id);
        }
    }
}
