//! The path with the smallest smoothed round trip time that has room.

use polypath_wire::Instant;

use super::scheduler::{Choice, Scheduler, cheapest};
use crate::facts::{Parcel, PathView};

/// Smallest round trip first; a path without a sample counts as the best, so that it gets one.
#[derive(Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        cheapest(now, parcel, paths, |p| (p.srtt, p.id))
    }
}
