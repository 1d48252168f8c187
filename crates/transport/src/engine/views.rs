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
        (0..self.lanes.len()).for_each(|i| self.refresh(now, self.lanes.id_at(i)));
    }

    /// Brings the view of `path` up to date.
    #[inline(always)]
    pub(crate) fn refresh(&mut self, now: Instant, path: PathId) {
        let (view, lane) = (&mut self.views[path], &self.lanes[path]);
        let estimator = &lane.estimator;
        view.srtt = estimator.rtt.srtt();
        view.rttvar = estimator.rtt.rttvar();
        view.min_rtt = estimator.rtt.min();
        view.window = self.controller.window(path);
        let excess = self.observers.watch.excess(path);
        view.one_way = estimator.base_one_way().map(|base| base + excess);
        view.rate = estimator.bottleneck();
        view.least = 0;
        self.refresh_room(now, path);
    }

    /// The part of it that changes with what is in flight.
    #[inline(always)]
    pub(super) fn refresh_room(&mut self, now: Instant, path: PathId) {
        let (view, lane) = (&mut self.views[path], &self.lanes[path]);
        view.take_up(lane.in_flight());
        view.idle_at = lane.estimator.idle_at(now, view.in_flight);
        if self.lanes.len() > 1 {
            self.refresh_among_others(path);
        }
    }

    #[inline(never)]
    fn refresh_among_others(&mut self, path: PathId) {
        let (view, lane) = (&mut self.views[path], &self.lanes[path]);
        let excess = self.observers.watch.excess(path);
        view.clocked = lane.estimator.clocked_one_way(&self.clock).map(|base| base + excess);
        view.least = least(lane, view);
        self.share_room();
    }

    /// Cuts the room of each path to what all have together: the controller's total window, or the
    /// path's share of the peer's.
    fn share_room(&mut self) {
        let total = self.controller.total_window();
        if total.is_none() && !self.rules.divide_window {
            return;
        }
        let offered = self.offered;
        let open = || self.views.iter().filter(|v| v.state == PathState::Active);
        let in_flight: u64 = self.views.iter().map(|v| v.in_flight).sum();
        let windows: u64 = open().map(|v| self.controller.window(v.id)).sum();
        for view in self.views.iter_mut() {
            let window = self.controller.window(view.id);
            let share = u128::from(offered) * u128::from(window) / u128::from(windows.max(1));
            let own = if self.rules.divide_window { window.min(share as u64) } else { window };
            let left = total.map_or(i64::MAX, |total| total as i64 - in_flight as i64);
            view.room = (own as i64 - view.in_flight as i64).min(left);
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

/// The bytes that must have room on one of several paths before a segment leaves. With several paths acknowledgments release single
/// segments, with one path pairs. A pair that meets a full queue loses one more segment, so several paths release pairs, too, for equal shares
/// of the queue. Where no queue stands, or little is in flight, each segment leaves as it has room.
fn least(lane: &Lane, view: &PathView) -> u64 {
    let queues = view.min_rtt.zip(view.srtt).is_some_and(|(min, srtt)| srtt >= min + min.over(QUEUED));
    let is_enough = view.in_flight >= lane.together && view.window >= 2 * lane.together;
    if queues && is_enough { lane.together } else { 0 }
}
