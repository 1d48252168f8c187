//! How much longer one path takes than another, by the time stamps of what came.

use std::cmp::Reverse;

use polypath_wire::{Duration, Instant, PathId};

use crate::path_map::{OfPath, PathMap};
use crate::windowed::WindowedMin;

/// Unit of the stamps.
const UNIT: Duration = Duration::from_micros(100);
/// A gap is waited for at least so long: hosts handle packets in batches.
const SHORTEST: Duration = Duration::from_millis(2);
/// A path that was silent for this long brings nothing that is still waited for.
const SILENT: Duration = Duration::from_secs(1);

/// The largest delay of the last one to two of these counts.
const LATELY: Duration = Duration::from_secs(2);

/// The delays of all paths.
#[derive(Debug)]
pub(super) struct Delays {
    paths: PathMap<Delay>,
    longest: Duration,
}

/// The delay of one path up to what all have in common, units of the stamps.
#[derive(Debug)]
struct Delay {
    path: PathId,
    heard: Instant,
    /// Highest number that came.
    highest: u64,
    /// Arrival less departure of what came last, without the wrap of the stamps.
    last: i64,
    /// Smoothed as round trips are (RFC 6298), and how it varies.
    mean: f64,
    variation: f64,
    /// Largest lately: a queue may fill while what waits in it is on its way.
    largest: WindowedMin<Reverse<i64>>,
}

impl OfPath for Delay {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Delays {
    /// No path is known; no gap is waited for longer than `longest`.
    pub(super) fn new(longest: Duration) -> Self {
        Self { paths: PathMap::default(), longest }
    }

    /// The packet `number` with this `stamp` came on `path`.
    pub(super) fn sample(&mut self, now: Instant, path: PathId, number: u64, stamp: u16) {
        let transit = stamp_of(now).wrapping_sub(stamp);
        let near = self.paths.get(path).or(self.paths.iter().next()).map_or(0, |known| known.last);
        let last = near + i64::from(transit.wrapping_sub(near as u16) as i16);
        let new = |path| Delay {
            path,
            heard: now,
            highest: number,
            last,
            mean: last as f64,
            variation: 0.0,
            largest: WindowedMin::default(),
        };
        let delay = self.paths.or_insert(path, new);
        (delay.heard, delay.highest, delay.last) = (now, delay.highest.max(number), last);
        let error = last as f64 - delay.mean;
        delay.variation += (error.abs() - delay.variation) / 4.0;
        delay.mean += error / 8.0;
        delay.largest.add(now, Reverse(last), LATELY);
    }

    /// The path is gone.
    pub(super) fn remove(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// Every path has delivered this number or a later one; paths of which nothing was heard for long do not count.
    pub(super) fn delivered_everywhere(&self, now: Instant) -> Option<u64> {
        let alive = self.paths.iter().filter(|path| now.since(path.heard) < SILENT);
        alive.map(|path| path.highest).min()
    }

    /// How much later than on the fastest path a packet may come on the slowest, and a quarter more: what is measured arrived
    /// before the queue got as long as it is.
    pub(super) fn allowance(&self) -> Duration {
        let fastest = self.paths.iter().map(|path| path.mean).fold(f64::INFINITY, f64::min);
        let slowest = self.paths.iter().map(Delay::most).fold(fastest, f64::max);
        let units = if fastest.is_finite() { (1.25 * (slowest - fastest)).ceil() as u64 } else { 0 };
        UNIT.times(units).max(SHORTEST).min(self.longest)
    }
}

impl Delay {
    /// What a packet may take.
    fn most(&self) -> f64 {
        let largest = self.largest.value().map_or(self.mean, |Reverse(largest)| largest as f64);
        largest.max(self.mean + 4.0 * self.variation)
    }
}

/// The stamp of what leaves now.
pub(crate) fn stamp_of(now: Instant) -> u16 {
    (now.0 / UNIT.0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = |n| Instant(n * 1_000_000);

    /// Packets of every 5 ms on two paths with these delays, ms, by clocks that differ by half a wrap.
    fn delays(of: [u64; 2], longest: u64) -> Delays {
        let mut delays = Delays::new(Duration::from_millis(longest));
        for n in 0..200 {
            for (path, delay) in of.iter().enumerate() {
                let stamp = stamp_of(MS(5 * n)).wrapping_add(1 << 15);
                delays.sample(MS(5 * n + delay), PathId(path as u16), n, stamp);
            }
        }
        delays
    }

    #[test]
    fn the_allowance_follows_the_difference_of_the_delays() {
        assert_eq!(delays([20, 70], 500).allowance(), Duration::from_micros(62_500));
        assert_eq!(delays([70, 20], 500).allowance(), Duration::from_micros(62_500));
        assert_eq!(delays([20, 20], 500).allowance(), SHORTEST);
        assert_eq!(delays([20, 720], 200).allowance(), Duration::from_millis(200));
    }

    #[test]
    fn a_silent_path_is_not_waited_for() {
        let mut delays = delays([20, 70], 500);
        assert_eq!(delays.delivered_everywhere(MS(1100)), Some(199));
        delays.sample(MS(2500), PathId(0), 900, 0);
        assert_eq!(delays.delivered_everywhere(MS(2500)), Some(900));
        delays.remove(PathId(0));
        assert_eq!(delays.delivered_everywhere(MS(2500)), None);
    }
}
