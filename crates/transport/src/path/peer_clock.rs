//! The offset of the peer's clock, which [`OneWay`] leaves open.
//!
//! Acknowledgments of a slow path come back by a quick one, so half of its round trip is less than its one-way delay. The offset
//! is the same for all paths to one peer. It follows from the path with the smallest round trip by itself both ways, whose
//! one-way delay is taken to be half of that. The error is at most that half, and the same for every path.

use polypath_wire::{Duration, PathId};

use super::oneway::OneWay;

/// θ of [`OneWay`], from the path with the smallest round trip.
#[derive(Debug, Default)]
pub(crate) struct PeerClock(Option<Told>);

#[derive(Clone, Copy, Debug)]
struct Told {
    by: PathId,
    /// Its round trip, nanoseconds.
    trip: i64,
    /// What to add to a forward delay.
    offset: i64,
}

impl PeerClock {
    /// A round trip by `path` both ways is part of `way` now.
    #[inline]
    pub(crate) fn learn(&mut self, path: PathId, way: &OneWay) {
        let Some((trip, base)) = way.round_trip().zip(way.base_forward()) else { return };
        if self.0.is_none_or(|told| told.by == path || trip < told.trip) {
            self.0 = Some(Told { by: path, trip, offset: trip / 2 - base });
        }
    }

    /// The delay without queueing on the way there.
    pub(crate) fn one_way(&self, way: &OneWay) -> Option<Duration> {
        let (told, base) = self.0.zip(way.base_forward())?;
        Some(Duration((base + told.offset).max(0) as u64))
    }

    /// `path` is gone: the next one tells.
    pub(crate) fn remove_path(&mut self, path: PathId) {
        self.0.take_if(|told| told.by == path);
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Instant;

    use super::*;

    const FIBRE: PathId = PathId(0);
    const SATELLITE: PathId = PathId(1);

    fn ms(ms: i64) -> i64 {
        ms * 1_000_000
    }

    fn way(forward: i64, back: i64, theta: i64, same: bool) -> OneWay {
        let mut way = OneWay::default();
        way.sample(Instant::ZERO, Duration(ms(forward + back) as u64), ms(back) + theta, same);
        way
    }

    /// 281 ms there and 6 back by the fibre: not 143.5 ms.
    #[test]
    fn a_slow_path_whose_acknowledgments_come_back_by_a_quick_one_is_slow() {
        for theta in [0, ms(5000), ms(-7000)] {
            let (fibre, satellite) = (way(6, 6, theta, true), way(281, 6, theta, false));
            let mut clock = PeerClock::default();
            assert_eq!(clock.one_way(&satellite), None);
            clock.learn(FIBRE, &fibre);
            clock.learn(SATELLITE, &way(281, 281, theta, true));
            assert_eq!(clock.one_way(&satellite), Some(Duration::from_millis(281)));
            assert_eq!(clock.one_way(&fibre), Some(Duration::from_millis(6)));
        }
    }

    #[test]
    fn the_quickest_path_that_is_left_tells() {
        let mut clock = PeerClock::default();
        let (skew, satellite) = (way(2, 10, 0, true), way(281, 279, 0, true));
        clock.learn(FIBRE, &skew);
        clock.learn(SATELLITE, &satellite);
        assert_eq!(clock.one_way(&satellite), Some(Duration::from_millis(285)));
        clock.remove_path(FIBRE);
        clock.learn(SATELLITE, &satellite);
        assert_eq!(clock.one_way(&satellite), Some(Duration::from_millis(280)));
    }
}
