//! The path with the smallest smoothed round trip time that has room.

use polypath_wire::{Duration, Instant, PathId};

use super::scheduler::{Choice, Scheduler, cheapest, why_cheapest};
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
