//! Duplication mode of R-M/TCP (Rojviboonchai, Osuga and Aida, §2.1): every segment on every path, so that any one of them may
//! die without a pause; or only what is sent again.
//!
//! A path that is full holds the others back, or its copies would be missing when another dies; but not
//! for longer than one and a half round trips, for then it may be dead itself. If it is not, it gets the copies that it missed.

use polypath_wire::{Duration, Instant, PathId, PathSet};
use serde::{Deserialize, Serialize};

use super::round_robin::RoundRobin;
use super::scheduler::{Choice, Scheduler, is_open, next_opening};
use crate::about::About;
use crate::facts::{Parcel, PathState, PathView, Why};
use crate::path_map::PathMap;

/// How long a full path is waited for while its round trip is not known.
const PATIENCE: Duration = Duration::from_millis(100);

/// Parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DuplicateConfig {
    /// Only what is sent again; new data takes each path in turn.
    pub lost_only: bool,
}

/// Copies on all paths. With `lost_only` what a timer gave up is distributed over the other paths instead,
/// if there are any.
#[derive(Debug, Default)]
pub(crate) struct Duplicate {
    config: DuplicateConfig,
    in_turn: RoundRobin,
    /// The paths that are full, and since when.
    full_since: PathMap<(PathId, Instant)>,
}

impl Duplicate {
    /// Name and help.
    pub(crate) const ABOUT: About =
        About { name: "duplicate", help: "A copy on every path, against losses: no faster than the slowest" };

    /// No path is full yet.
    pub(crate) fn new(config: DuplicateConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Until when `path` is worth waiting for, if it is full.
    fn patience(&mut self, now: Instant, path: &PathView, len: u32) -> Option<Instant> {
        if is_open(now, path, len) || path.state != PathState::Active {
            self.full_since.remove(path.id);
            return None;
        }
        let (_, since) = *self.full_since.or_insert(path.id, |path| (path, now));
        let until = since + path.srtt.map_or(PATIENCE, |srtt| srtt.times(3).over(2));
        Some(until).filter(|until| *until > now)
    }
}

impl Scheduler for Duplicate {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        if self.config.lost_only && !parcel.retransmission {
            return self.in_turn.pick(now, parcel, paths);
        }
        let others =
            paths.iter().filter(|p| self.config.lost_only && parcel.timed_out.is_some_and(|on| on != p.id));
        let others: Vec<PathView> = others.filter(|p| p.state == PathState::Active).copied().collect();
        if !others.is_empty() {
            return self.in_turn.pick(now, parcel, &others);
        }
        let held_until = paths.iter().filter_map(|p| self.patience(now, p, parcel.len)).min();
        let opens = next_opening(now, parcel, paths);
        if !self.config.lost_only && held_until.is_some() {
            return Choice::Wait(held_until.into_iter().chain(opens).min());
        }
        let open: PathSet = paths.iter().filter(|p| is_open(now, p, parcel.len)).map(|p| p.id).collect();
        match open {
            PathSet::EMPTY => Choice::Wait(opens),
            open if self.config.lost_only => Choice::Copies(open),
            _ => Choice::Copies(active(paths)),
        }
    }

    fn copies(&self, paths: &[PathView]) -> PathSet {
        if self.config.lost_only { PathSet::EMPTY } else { active(paths) }
    }

    fn on_path_removed(&mut self, path: PathId) {
        self.full_since.remove(path);
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        self.in_turn.why(now, parcel, paths, path)
    }
}

/// The paths that have not failed.
fn active(paths: &[PathView]) -> PathSet {
    paths.iter().filter(|p| p.state == PathState::Active).map(|p| p.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(id: u16, room: i64) -> PathView {
        PathView { room, srtt: Some(Duration::from_millis(20)), ..PathView::new(PathId(id), 1000) }
    }

    const NEW: Parcel =
        Parcel { offset: 0, len: 1000, retransmission: false, timed_out: None, waiting: 1000, window: 1000 };

    fn set(ids: &[u16]) -> Choice {
        Choice::Copies(ids.iter().map(|id| PathId(*id)).collect::<PathSet>())
    }

    #[test]
    fn all_paths_take_it_and_a_full_one_is_waited_for() {
        let mut scheduler = Duplicate::new(DuplicateConfig::default());
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(scheduler.pick(at(0), &NEW, &[view(0, 9000), view(1, 9000)]), set(&[0, 1]));
        let full = [view(0, 9000), view(1, 0)];
        assert_eq!(scheduler.pick(at(5), &NEW, &full), Choice::Wait(Some(at(35))));
        assert_eq!(scheduler.pick(at(34), &NEW, &full), Choice::Wait(Some(at(35))));
        assert_eq!(scheduler.pick(at(35), &NEW, &full), set(&[0, 1]), "the full one gets its copy later");
        assert_eq!(scheduler.pick(at(36), &NEW, &[view(0, 9000), view(1, 9000)]), set(&[0, 1]));
        assert_eq!(scheduler.pick(at(37), &NEW, &full), Choice::Wait(Some(at(67))));
        let failed = [view(0, 9000), PathView { state: PathState::Failed, ..view(1, 0) }];
        assert_eq!(scheduler.pick(at(38), &NEW, &failed), set(&[0]));
    }

    #[test]
    fn a_path_that_comes_full_is_waited_for_as_the_one_before_in_its_place_was_not() {
        let mut scheduler = Duplicate::new(DuplicateConfig::default());
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let next = PathId::PLACES as u16 + 1;
        assert_eq!(scheduler.pick(at(0), &NEW, &[view(0, 9000), view(1, 0)]), Choice::Wait(Some(at(30))));
        scheduler.on_path_removed(PathId(1));
        assert_eq!(scheduler.pick(at(40), &NEW, &[view(0, 9000), view(next, 0)]), Choice::Wait(Some(at(70))));
    }

    #[test]
    fn only_what_is_sent_again_takes_all_if_asked() {
        let mut scheduler = Duplicate::new(DuplicateConfig { lost_only: true });
        let paths = [view(0, 9000), view(1, 9000)];
        let lost = Parcel { retransmission: true, ..NEW };
        let timed_out = Parcel { timed_out: Some(PathId(0)), ..lost };
        let picks = [NEW, NEW, lost, timed_out].map(|parcel| scheduler.pick(Instant::ZERO, &parcel, &paths));
        let [first, second] = [0, 1].map(|path| Choice::Send(PathId(path)));
        assert_eq!(picks, [first, second, set(&[0, 1]), second]);
        assert_eq!(scheduler.pick(Instant::ZERO, &timed_out, &paths[..1]), set(&[0]), "there is no other");
    }
}
