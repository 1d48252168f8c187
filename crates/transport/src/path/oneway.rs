//! One-way delays up to a constant: the clocks of the hosts are not synchronised.
//!
//! With `θ` the unknown offset of the peer's clock, an acknowledgment that left at the peer's time
//! `TSval` gives `reverse + θ = arrival − TSval` (RFC 7323), and the round trip of the segment it
//! acknowledges gives `forward − θ = rtt − (reverse + θ)`. Differences between two instants, or
//! between two paths to the same peer, do not contain `θ`.
//!
//! The delay without queueing, the base, is the smallest one seen. It may not be forgotten while a standing queue of
//! our own hides it, nor kept when the clocks drift. So it is kept between two bounds: below what arrived lately, and
//! above the smallest round trip less what came back fastest lately, which an idle way back makes exact. What the peer's
//! clock loses ([`Drift`]) is taken off it.

use polypath_wire::{Duration, Instant};

use super::drift::Drift;
use crate::windowed::WindowedMin;

/// The bounds of the base are of this long, so that drifting clocks are followed.
const MEMORY: Duration = Duration::from_secs(30);

/// One-way delays of one path in nanoseconds, up to the clock offset.
#[derive(Clone, PartialEq, Debug, Default)]
#[repr(C)]
pub(crate) struct OneWay {
    forward: Option<i64>,
    /// Forward delay without queueing.
    base: Option<i64>,
    /// Smallest forward delay lately.
    floor: WindowedMin<i64>,
    /// Smallest delay of the way back lately.
    fastest_back: WindowedMin<i64>,
    /// Smallest round trip of all, by this path both ways.
    round_trip: Option<i64>,
    drift: Drift,
}

impl OneWay {
    /// An acknowledgment arrived `reverse` after its `TSval`; its segment took `rtt` in all. Whether it
    /// came back on this path (`same`) makes no difference to the way there.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration, reverse: i64, same: bool) {
        let forward = rtt.0 as i64 - reverse;
        if same {
            self.fastest_back.add(now, reverse, MEMORY);
            let lost = self.drift.add(now, reverse);
            self.base = self.base.map(|base| base - lost);
            self.round_trip = Some(self.round_trip.map_or(rtt.0 as i64, |least| least.min(rtt.0 as i64)));
        }
        self.forward = Some(forward);
        self.floor.add(now, forward, MEMORY);
        let below = self.round_trip.zip(self.fastest_back.value()).map(|(trip, back)| trip - back);
        let raised = self.base.max(below).unwrap_or(forward);
        self.base = Some(self.floor.value().map_or(raised, |floor| floor.min(raised)));
    }

    /// Smallest round trip by this path both ways, nanoseconds.
    pub(crate) fn round_trip(&self) -> Option<i64> {
        self.round_trip
    }

    /// Forward delay without queueing, up to `−θ`.
    pub(crate) fn base_forward(&self) -> Option<i64> {
        self.base
    }

    /// How much longer the last segment took to the peer than the fastest one: queueing, free of `θ`.
    pub(crate) fn forward_queueing(&self) -> Option<Duration> {
        let above = self.forward? - self.base_forward()?;
        Some(Duration(above.max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queueing_is_free_of_the_clock_offset() {
        for theta in [0, 5_000_000_000, -7_000_000_000] {
            let (mut way, now) = (OneWay::default(), Instant::ZERO);
            way.sample(now, Duration(50), 30 + theta, true);
            assert_eq!(way.forward_queueing(), Some(Duration(0)));
            way.sample(now, Duration(90), 30 + theta, true); // 40 ns of queue forward
            assert_eq!(way.forward_queueing(), Some(Duration(40)));
            way.sample(now, Duration(90), 70 + theta, true); // the queue is on the way back
            assert_eq!(way.forward_queueing(), Some(Duration(0)));
        }
    }

    /// Samples of every second, from `from` to `to`: what the forward and the reverse delay are then.
    fn watch(way: &mut OneWay, from: u32, to: u32, delays: impl Fn(u32) -> (i64, i64)) {
        for s in from..to {
            let (forward, reverse) = delays(s);
            way.sample(
                Instant::from_secs_f64(f64::from(s)),
                Duration((forward + reverse) as u64),
                reverse,
                true,
            );
        }
    }

    #[test]
    fn a_standing_queue_of_our_own_never_becomes_the_base() {
        let mut way = OneWay::default();
        watch(&mut way, 0, 1, |_| (50, 50));
        watch(&mut way, 1, 600, |_| (90, 50));
        assert_eq!((way.base_forward(), way.forward_queueing()), (Some(50), Some(Duration(40))));
    }

    #[test]
    fn a_clock_that_drifts_is_followed_behind_a_standing_queue() {
        for sign in [1, -1] {
            let (mut way, drift) = (OneWay::default(), |s: u32| sign * i64::from(s) / 5);
            watch(&mut way, 0, 1, |_| (50, 50));
            watch(&mut way, 1, 600, |s| (90 + drift(s), 50 - drift(s)));
            let queueing = way.forward_queueing().map(|q| q.0);
            assert!(queueing.is_some_and(|q| (24..=56).contains(&q)), "but for 80 s: {queueing:?}");
        }
    }
}
