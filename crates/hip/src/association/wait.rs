//! How long an answer is waited for: as configured, doubled each time, but no less than two round trips of the path.

use polypath_wire::{Duration, Instant};

use super::{Association, Path};
use crate::config::HipConfig;
use crate::event::Route;

/// Longest time that a round trip counts for: a peer that answers late does not make us wait for ever.
const LONGEST: Duration = Duration::from_secs(30);

/// The wait after sending something for the `tries`-th time beyond the first, on a path with that round trip; 0 if it is
/// not known.
pub(super) fn wait(config: &HipConfig, round_trip: Duration, tries: u32) -> Duration {
    config.retransmit.times(1 << tries.min(16)).max(round_trip.min(LONGEST).times(2))
}

/// The round trip of the path between the ends of `route`; 0 if it is not known.
pub(super) fn round_trip(paths: &[Path], route: Route) -> Duration {
    paths.iter().find(|p| p.route == route).map_or(Duration::ZERO, |p| p.round_trip)
}

impl Association {
    /// What left on `route` at `sent` for the first time was answered.
    pub(super) fn answered(&mut self, now: Instant, route: Route, sent: Instant) {
        let there = self.paths.iter_mut().filter(|p| p.route == route);
        there.for_each(|path| path.round_trip = now.since(sent));
    }

    /// The owner has measured the round trip of the path with that inbound SPI.
    pub(crate) fn set_round_trip(&mut self, inbound: u32, round_trip: Duration) {
        let path = self.paths.iter_mut().find(|p| p.inbound == inbound);
        path.into_iter().for_each(|path| path.round_trip = round_trip);
    }
}
