//! What leaves again on a quicker path where nothing new can leave.
//!
//! At the end of the data, or of the peer's window, a path that is free would idle while a slower one still delivers what left there
//! before. Then the quicker path carries a copy of each segment that should arrive there sooner. On its own path a segment is expected as
//! late as round trips are long, and as late as the path goes on at the rate of its last sample: the scheduler's estimate, the largest of
//! ten round trips, stays too large for long after a rate has fallen. If a segment is late, or nothing has been delivered for longer than a
//! round trip takes, it is not expected any more.

use polypath_wire::{Duration, Instant, PathId};

use super::machine::Engine;
use crate::facts::{PathState, PathView};
use crate::path::transmission::{Cargo, Transmission};
use crate::sched::scheduler::{clocked_arrival, excess, is_open, one_way};

impl Engine {
    /// Whether cargo under way may leave again on another path.
    #[inline]
    pub(crate) fn reinjects(&self) -> bool {
        self.lanes.len() > 1 && self.scheduler.reinjects()
    }

    /// Cargo under way that an open path, which is returned, should deliver sooner than its own. It counts as copied.
    #[cold]
    pub(crate) fn take_reinjection(&mut self, now: Instant) -> Option<(PathId, Cargo)> {
        (0..self.lanes.len()).find_map(|i| self.take_from(now, self.lanes.id_at(i)))
    }

    fn take_from(&mut self, now: Instant, from: PathId) -> Option<(PathId, Cargo)> {
        let len = self.views[from].mss;
        let usable = |v: &&PathView| v.id != from && !v.spill && v.mss >= len && is_open(now, v, len);
        let timed = self.views.iter().filter(usable).filter_map(|v| Some((v, v.rttvar?)));
        // The delay varies: the copy is worth sending if it arrives first even if it is late.
        let (sooner, to) = timed.map(|(v, var)| (clocked_arrival(now, v, len) + var, v.id)).min()?;
        let fits = |cargo: &Cargo| cargo.len <= self.views[to].mss + 1; // a FIN takes no room
        let (number, cargo) = self.first_after(now, from, sooner).filter(|(_, cargo)| fits(cargo))?;
        self.lanes[from].flight.reinject(number);
        Some((to, cargo))
    }

    /// The first cargo under way on `path` without a copy that should arrive there after `sooner`.
    fn first_after(&self, now: Instant, path: PathId, sooner: Instant) -> Option<(u64, Cargo)> {
        let (view, lane) = (&self.views[path], &self.lanes[path]);
        let alone = |number, since| lane.flight.oldest_alone(number, since);
        let oldest = alone(0, sooner)?;
        let (number, found) = match one_way(view) {
            Some(way) if view.state == PathState::Active && !self.is_late(now, path, oldest.1) => {
                let back = view.min_rtt.map_or(Duration::ZERO, |rtt| rtt - way);
                let rate = lane.estimator.bandwidth.latest().or(view.rate);
                let before = rate.map_or(u64::MAX, |rate| rate.bytes_in((sooner + back).since(now)));
                let number = lane.flight.first_number() + before / u64::from(view.mss.max(1));
                alone(number, sooner - (way + excess(view).unwrap_or_default()))?
            }
            _ => oldest,
        };
        Some((number, found.cargo))
    }

    /// Whether `oldest`, or any other transmission on `path`, should have been delivered by now.
    fn is_late(&self, now: Instant, path: PathId, oldest: &Transmission) -> bool {
        let estimator = &self.lanes[path].estimator;
        let rtt = estimator.rtt.srtt().zip(estimator.rtt.rttvar());
        let since = oldest.sent_at.min(estimator.bandwidth.measured_at());
        rtt.is_some_and(|(srtt, var)| now.since(since) > srtt + var.times(4))
    }
}
