//! What the packets of a path waited, by when they left: closely for the last round trip, sparsely for the last sixteen.
//!
//! All is counted in round trips, not in acknowledgments, of which there may be two for each packet or 16 in a round trip.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant};

/// Packets that left within this share of a round trip count as one: of a burst each waits for those before it, which is no
/// queue of the path.
const BURST: u64 = 64;
/// One of these is kept in this share of a round trip, for comparison.
const SPARSE: u64 = 4;
/// Number of either that are kept.
const KEPT: usize = 64;
/// Waits are equal that differ by less than this, or by less than this share of the longest.
pub(super) const SAME: Duration = Duration::from_micros(300);
const SAME_SHARE: u64 = 16;

/// When the first packet of a burst left, and what the one waited that waited longest.
type Wait = (Instant, Duration);

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    close: VecDeque<Wait>,
    sparse: VecDeque<Wait>,
}

impl Waits {
    /// A packet that left at `sent` waited so long, on a path with a smallest round trip of `least`.
    pub(super) fn add(&mut self, sent: Instant, wait: Duration, least: Duration) {
        match self.close.front_mut() {
            Some(burst) if sent < burst.0 + least.over(BURST) => burst.1 = burst.1.max(wait),
            Some(&mut burst) => {
                if self.sparse.front().is_none_or(|kept| burst.0 >= kept.0 + least.over(SPARSE)) {
                    put(&mut self.sparse, burst);
                }
                put(&mut self.close, (sent, wait));
            }
            None => put(&mut self.close, (sent, wait)),
        }
    }

    /// The share of the waits kept for comparison that are shorter than that of the last packet that left no later than `sent`, where
    /// equal ones count half; 1 while nothing is known.
    pub(super) fn rank(&self, sent: Instant) -> f64 {
        let before = self.close.iter().find(|burst| burst.0 <= sent).or(self.close.back());
        let Some((wait, longest)) = before.map(|b| b.1).zip(self.waits().max()) else { return 1.0 };
        let same = SAME.max(longest.over(SAME_SHARE));
        let less = self.waits().filter(|w| *w + same < wait).count() as f64;
        let more = self.waits().filter(|w| *w > wait + same).count() as f64;
        let all = self.sparse.len() as f64;
        (all + less - more) / (2.0 * all)
    }

    /// The longest wait of the last 16 round trips, as far as they are kept.
    pub(super) fn longest(&self) -> Duration {
        self.waits().max().unwrap_or_default()
    }

    fn waits(&self) -> impl Iterator<Item = Duration> {
        self.sparse.iter().map(|kept| kept.1)
    }
}

fn put(kept: &mut VecDeque<Wait>, wait: Wait) {
    kept.truncate(KEPT - 1);
    kept.push_front(wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(64);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// A packet each `apart`, over 16 round trips, of which the `n`th waited `wait(n)`; all in µs.
    fn waits(apart: u64, wait: impl Fn(u64) -> u64) -> Waits {
        let mut waits = Waits::default();
        let each = |n| waits.add(at(n * apart), Duration::from_micros(wait(n)), RTT);
        (0..16 * RTT.0 / 1000 / apart).for_each(each);
        waits
    }

    #[test]
    fn what_waited_longest_ranks_high_however_many_acknowledgments_there_are() {
        for apart in [100, 500, 4000] {
            let late = 15 * RTT.0 / 1000;
            let grows = waits(apart, |n| n * apart / 100);
            assert!(grows.rank(at(late)) > 0.85, "{apart}: {}", grows.rank(at(late)));
            let shrinks = waits(apart, |n| 20_000 - n * apart / 100);
            assert!(shrinks.rank(at(late)) < 0.15, "{apart}: {}", shrinks.rank(at(late)));
        }
    }

    #[test]
    fn a_place_in_a_burst_has_no_rank() {
        let pairs = waits(250, |n| 300 * (n % 2));
        assert_eq!(pairs.rank(at(16 * RTT.0 / 1000 - 250)), 0.5);
        assert_eq!(pairs.rank(at(16 * RTT.0 / 1000 - 500)), 0.5);
    }

    #[test]
    fn nothing_known_is_the_longest() {
        assert_eq!(Waits::default().rank(at(0)), 1.0);
    }
}
