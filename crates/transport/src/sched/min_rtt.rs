//! The path with the smallest smoothed round trip time that has room.

use polypath_wire::{Duration, Instant, PathId};

use super::scheduler::{Choice, Scheduler, cheapest, is_busy, next_opening, quickest, why_cheapest};
use crate::about::About;
use crate::facts::{Parcel, PathView, Why};

/// Smallest round trip first; a path without a sample counts as the best, so that it gets one.
#[derive(Debug, Default)]
pub(crate) struct MinRtt;

impl MinRtt {
    /// Name and help.
    pub(crate) const ABOUT: About = About {
        name: "min_rtt",
        help: "The path with the smallest round trip of those with a usable window",
    };

    /// The same, but new data waits where `waits` holds of the quickest path, which is busy, and the one that has room.
    pub(super) fn pick_unless(
        now: Instant,
        parcel: &Parcel,
        paths: &[PathView],
        waits: impl FnOnce(&PathView, &PathView) -> bool,
    ) -> Choice {
        let choice = Self.pick(now, parcel, paths);
        let Choice::Send(id) = choice else { return choice };
        let quick = quickest(paths).filter(|quick| quick.id != id && is_busy(now, parcel, quick));
        let slow = paths.iter().find(|p| p.id == id).filter(|_| !parcel.retransmission);
        match quick.zip(slow) {
            Some((quick, slow)) if waits(quick, slow) => Choice::Wait(next_opening(now, parcel, paths)),
            _ => choice,
        }
    }
}

impl Scheduler for MinRtt {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        cheapest(now, parcel, paths, cost)
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        why_cheapest(now, parcel, paths, path, cost)
    }
}

fn cost(path: &PathView) -> (Option<Duration>, PathId) {
    (path.srtt, path.id)
}
