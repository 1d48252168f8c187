//! What scheduler and controller see of the paths.

use polypath_wire::{Instant, PathId};

use super::lane::Lane;
use super::machine::Engine;
use crate::facts::{PathState, PathView};

/// A queue stands where round trips are longer than the smallest by this part of it.
const QUEUED: u64 = 8;

impl Engine {
    /// Brings all views up to date.
    pub(crate) fn refresh_all(&mut self, now: Instant) {
        for i in 0..self.lanes.len() {
            self.refresh_alone(now, self.lanes.id_at(i));
        }
        self.share_room();
    }

    /// Brings the view of `path` up to date.
    #[inline(always)]
    pub(crate) fn refresh(&mut self, now: Instant, path: PathId) {
        self.refresh_alone(now, path);
        self.share_room();
    }

    /// The part of it that changes with what is in flight.
    #[inline(always)]
    pub(super) fn refresh_room(&mut self, now: Instant, path: PathId) {
        refresh_flight(now, &mut self.views[path], &self.lanes[path]);
        self.hold(now, path);
        self.share_room();
    }

    /// All of it but what others leave of its room.
    #[inline(always)]
    fn refresh_alone(&mut self, now: Instant, path: PathId) {
        let (view, lane) = (&mut self.views[path], &self.lanes[path]);
        let estimator = &lane.estimator;
        view.srtt = estimator.rtt.srtt();
        view.rttvar = estimator.rtt.rttvar();
        view.min_rtt = estimator.rtt.min();
        view.window = self.controller.window(path);
        view.others = self.rules.others.then(|| lane.others.wait());
        let excess = self.observers.watch.excess(path) + view.others.unwrap_or_default();
        view.one_way = estimator.base_one_way().map(|base| base + excess);
        view.rate = estimator.bottleneck();
        view.least = 0;
        refresh_flight(now, view, lane);
        self.hold(now, path);
    }

    /// What must have room there before a segment leaves, if that may be more than the segment.
    #[inline(always)]
    fn hold(&mut self, now: Instant, path: PathId) {
        if !self.rules.simple {
            self.hold_some(now, path);
        }
    }

    #[inline(never)]
    fn hold_some(&mut self, now: Instant, path: PathId) {
        if self.lanes.len() > 1 {
            self.compare_with_others(path);
        } else {
            self.views[path].least = 0;
        }
        if self.rules.offload {
            self.views[path].least = self.held(now, path).max(self.views[path].least);
        }
    }

    /// What only matters among several paths.
    fn compare_with_others(&mut self, path: PathId) {
        let (view, lane) = (&mut self.views[path], &self.lanes[path]);
        let excess = self.observers.watch.excess(path) + view.others.unwrap_or_default();
        view.clocked = lane.estimator.clocked_one_way(&self.clock).map(|base| base + excess);
        view.least = least(lane, view);
    }

    /// Bytes that the next segment needs room for: where a network card cuts, all that is to leave with it.
    #[inline(always)]
    pub(super) fn next_takes(&self, path: PathId) -> u64 {
        let view = &self.views[path];
        let mss = u64::from(view.mss);
        if self.rules.offload { view.least.max(mss) } else { mss }
    }

    /// Cuts the room of each of several paths to what all have together: the controller's total window, or the
    /// path's share of the peer's.
    #[inline(always)]
    fn share_room(&mut self) {
        if self.lanes.len() > 1 {
            self.share_among_several();
        }
    }

    #[inline(never)]
    fn share_among_several(&mut self) {
        let total = self.controller.total_window();
        if self.rules.divide_window {
            self.divide_room();
        }
        let Some(total) = total else { return };
        let in_flight: u64 = self.views.iter().map(|v| v.in_flight).sum();
        let left = total as i64 - in_flight as i64;
        for view in self.views.iter_mut() {
            let own = match self.rules.divide_window {
                true => view.room,
                false => self.controller.window(view.id) as i64 - view.in_flight as i64,
            };
            view.room = own.min(left);
            if in_flight == 0 {
                view.room = view.room.max(view.mss.into()); // a window below a segment would stay closed: no acknowledgment is due
            }
        }
    }

    /// Cuts the room of each path to its share of the peer's window, but to no less than a segment: nothing could leave.
    fn divide_room(&mut self) {
        let open = || self.views.iter().filter(|v| v.state == PathState::Active);
        let windows: u64 = open().map(|v| self.controller.window(v.id)).sum();
        for view in self.views.iter_mut() {
            let window = self.controller.window(view.id);
            let share = u128::from(self.offered) * u128::from(window) / u128::from(windows.max(1));
            let share = (share as u64).max(view.mss.into());
            view.room = window.min(share) as i64 - view.in_flight as i64;
        }
    }

    /// FlightSize, not counting what limited transmit sent beyond the window (RFC 3042, RFC 5681 §3.2).
    pub(crate) fn flight_size(&self, path: PathId) -> u64 {
        let mss = self.views[path].mss;
        let lane = &self.lanes[path];
        let all = lane.flight.flight_size(mss) + lane.aside;
        all.min(self.controller.window(path))
    }
}

/// What is in flight, and what follows from it; the rate of the view is up to date, since only [`Engine::refresh`]
/// follows what changes it.
#[inline(always)]
fn refresh_flight(now: Instant, view: &mut PathView, lane: &Lane) {
    debug_assert_eq!(view.rate, lane.estimator.bottleneck());
    view.take_up(lane.in_flight());
    view.idle_at = lane.idle_at(now, view.in_flight, view.rate);
}

/// The bytes that must have room on one of several paths before a segment leaves. With several paths acknowledgments release single
/// segments, with one path pairs. A pair that meets a full queue loses one more segment, so several paths release pairs, too, for equal shares
/// of the queue. Where no queue stands, or little is in flight, each segment leaves as it has room.
fn least(lane: &Lane, view: &PathView) -> u64 {
    let queues = view.min_rtt.zip(view.srtt).is_some_and(|(min, srtt)| srtt >= min + min.over(QUEUED));
    let is_enough = view.in_flight >= lane.together && view.window >= 2 * lane.together;
    if queues && is_enough { lane.together } else { 0 }
}
