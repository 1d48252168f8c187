//! One-way delays up to a constant: the clocks of the hosts are not synchronised.
//!
//! With `θ` the unknown offset of the peer's clock, an acknowledgment that left at the peer's time
//! `TSval` gives `reverse + θ = arrival − TSval` (RFC 7323), and the round trip of the segment it
//! acknowledges gives `forward − θ = rtt − (reverse + θ)`. Differences between two instants, or
//! between two paths to the same peer, do not contain `θ`.

use polypath_wire::{Duration, Instant};

use crate::windowed::WindowedMin;

/// Minima are kept over this long, so that drifting clocks and moved routes are followed.
const MEMORY: Duration = Duration::from_secs(30);

/// One-way delays of one path in nanoseconds, up to the clock offset.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OneWay {
    forward: Option<i64>,
    reverse: Option<i64>,
    /// Smallest forward delay lately.
    floor: WindowedMin<i64>,
}

impl OneWay {
    /// An acknowledgment arrived `reverse` after its `TSval`; its segment took `rtt` in all. Whether it
    /// came back on this path (`same`) makes no difference to the way there.
    pub fn sample(&mut self, now: Instant, rtt: Duration, reverse: i64, same: bool) {
        let forward = rtt.0 as i64 - reverse;
        if same {
            self.reverse = Some(reverse);
        }
        self.forward = Some(forward);
        self.floor.add(now, forward, MEMORY);
    }

    /// Smallest forward delay lately, up to `−θ`.
    pub fn min_forward(&self) -> Option<i64> {
        self.floor.value()
    }

    /// Latest reverse delay, up to `+θ`.
    pub fn reverse(&self) -> Option<i64> {
        self.reverse
    }

    /// How much longer the last segment took to the peer than the fastest one: queueing, free of `θ`.
    pub fn forward_queueing(&self) -> Option<Duration> {
        let above = self.forward? - self.min_forward()?;
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

    #[test]
    fn old_minima_are_forgotten() {
        let mut way = OneWay::default();
        way.sample(Instant::ZERO, Duration(10), 0, true);
        for s in [31, 62, 93] {
            way.sample(Instant::from_secs_f64(f64::from(s)), Duration(100), 0, true);
        }
        assert_eq!(way.min_forward(), Some(100));
    }
}
