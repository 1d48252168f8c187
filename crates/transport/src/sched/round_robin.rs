//! Each path in turn.

use polypath_wire::{Instant, PathId};

use super::scheduler::{Choice, Scheduler, has_others, is_open, next_opening};
use crate::about::About;
use crate::facts::{Parcel, PathView, Why};

/// Each path in turn; one without room is passed over.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin {
    next: usize,
}

impl RoundRobin {
    /// Name and help.
    pub(crate) const ABOUT: About =
        About { name: "round_robin", help: "Each path with a usable window in turn" };
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        for step in 0..paths.len() {
            let i = (self.next + step) % paths.len();
            if is_open(now, &paths[i], parcel.len) {
                self.next = i + 1;
                return Choice::Send(paths[i].id);
            }
        }
        Choice::Wait(next_opening(now, parcel, paths))
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        if has_others(now, parcel, paths, path) { Why::Turn } else { Why::OnlyOpen }
    }
}
