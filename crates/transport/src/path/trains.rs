//! Rate of the bottleneck by packet trains: what left at once arrives one after the other at the rate of the slowest
//! link, and so do its acknowledgments (Jain and Routhier 1986; Dovrolis, Ramanathan and Moore 2001).
//!
//! Delivery over a round trip tells no more than what was sent. A train tells what could be: between two
//! acknowledgments of segments that left together, the bottleneck was busy. Trains of the last two round trips count
//! together, each with its bytes and its time, so that neither a short one nor one late acknowledgment decides alone.

use polypath_wire::{Duration, Instant, PathId, Rate};

/// Between two acknowledgments segments are of one train if they left in less than this part of the time.
const TOGETHER: u64 = 4;
/// Fewer bytes or less time are not used: timers are coarse, and links and drivers gather packets.
const LEAST_BYTES: u64 = 8_000;
const LEAST_TIME: Duration = Duration::from_micros(50);

/// What trains delivered, and in what time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Sum {
    bytes: u64,
    time: Duration,
}

impl Sum {
    fn is_enough(&self) -> bool {
        self.bytes >= LEAST_BYTES && self.time >= LEAST_TIME
    }
}

/// Trains of one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Trains {
    /// When the last acknowledgment came, by which path, and when the newest segment that it acknowledged had left.
    last: Option<(Instant, PathId, Instant)>,
    /// Sums of the round trip before and of the present one, and when that began.
    past: Sum,
    present: Sum,
    began: Instant,
}

impl Trains {
    /// `bytes` were delivered by one acknowledgment that came back by `via`, the newest segment of them sent at
    /// `sent_at`, once. Another way back takes another time.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        (sent_at, rtt): (Instant, Duration),
        via: PathId,
    ) {
        if now.since(self.began) > rtt {
            self.began = now;
            if self.present.is_enough() {
                (self.past, self.present) = (self.present, Sum::default());
            }
        }
        if let Some((acked, way, sent)) = self.last.replace((now, via, sent_at))
            && way == via
        {
            let (arriving, leaving) = (now.since(acked), sent_at.since(sent));
            if sent_at >= sent && leaving.times(TOGETHER) <= arriving {
                self.present.bytes += bytes;
                self.present.time += arriving;
            }
        }
    }

    /// What follows does not continue what was: something was lost, or answered twice.
    pub(crate) fn interrupt(&mut self) {
        self.last = None;
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let Sum { bytes, time } = self.present;
        let both = Sum { bytes: bytes + self.past.bytes, time: time + self.past.time };
        both.is_enough().then(|| Rate::from_bytes_per(both.bytes, both.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn at(us: u64) -> Instant {
        Instant(us * 1000)
    }

    /// Acknowledges pairs of 1,000 bytes: (when they left, when their acknowledgment came), µs.
    fn trains(acks: &[(u64, u64)]) -> Trains {
        let mut trains = Trains::default();
        acks.iter()
            .for_each(|&(sent, acked)| trains.on_delivered(at(acked), 2000, (at(sent), RTT), PathId::FIRST));
        trains
    }

    #[test]
    fn a_train_tells_the_rate_of_the_bottleneck_whatever_the_sender_sends_in_all() {
        let [first, second] = [0, 20_000].map(|t| (0..5).map(move |n| (t, t + 40_000 + 200 * n)));
        let trains = trains(&first.chain(second).collect::<Vec<_>>());
        assert_eq!(trains.rate(), Some(Rate::from_mbps(80)), "2,000 bytes each 0.2 ms");
    }

    #[test]
    fn what_leaves_as_it_arrives_tells_nothing() {
        let spread: Vec<_> = (0..50).map(|n| (1000 * n, 40_000 + 1000 * n)).collect();
        assert_eq!(trains(&spread).rate(), None);
    }

    #[test]
    fn acknowledgments_that_come_together_tell_nothing() {
        assert_eq!(trains(&[(0, 40_000); 20]).rate(), None);
    }

    #[test]
    fn two_ways_back_are_not_compared() {
        let mut trains = Trains::default();
        for n in 0..20 {
            let via = PathId((n % 2) as u16);
            trains.on_delivered(at(40_000 + 200 * n), 2000, (at(0), RTT), via);
        }
        assert_eq!(trains.rate(), None);
    }

    #[test]
    fn old_trains_are_forgotten() {
        let slow = (0..5).map(|n| (0, 40_000 + 2000 * n));
        let fast = [100_000, 150_000].map(|t| (0..5).map(move |n| (t, t + 40_000 + 200 * n)));
        let trains = trains(&slow.chain(fast.into_iter().flatten()).collect::<Vec<_>>());
        assert_eq!(trains.rate(), Some(Rate::from_mbps(80)));
    }
}
