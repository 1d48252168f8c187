//! The path on which the segment is expected to arrive first (Polishchuk and Gurtov, mHIP, §III.B and §IV.B).
//!
//! Arrival = the sender's queue + transmission + network delay. A path whose window is full is
//! skipped and the next best taken. While nothing is known of a path it counts as the best, so
//! that the first segments on it teach us.

use polypath_wire::{Instant, PathId};

use super::scheduler::{Choice, Scheduler, arrival, cheapest, why_cheapest};
use crate::about::About;
use crate::facts::{Parcel, PathView, Why};

/// Earliest arrival first.
#[derive(Debug, Default)]
pub(crate) struct EarliestArrival;

impl EarliestArrival {
    /// Name and help.
    pub(crate) const ABOUT: About =
        About { name: "earliest_arrival", help: "The path on which the segment should arrive first" };
}

impl Scheduler for EarliestArrival {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        cheapest(now, parcel, paths, |p| (arrival(now, p, parcel.len), p.id))
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        why_cheapest(now, parcel, paths, path, |p| (arrival(now, p, parcel.len), p.id))
    }
}
