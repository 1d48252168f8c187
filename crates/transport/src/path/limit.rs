//! A rate that what is sent on a path never exceeds, whatever its controller says.

use polypath_wire::{Duration, Instant, Rate};

/// How late a timer of a real host may be and is made up for.
const LATENESS: Duration = Duration::from_millis(5);
/// What leaves without a timer between: as much as the rate carries in this time, one segment at least.
const GRAIN: Duration = Duration::from_millis(1);
/// Hundredths of the rate that data take. The last one is for acknowledgments, heartbeats and the timers' lateness.
const SHARE: u64 = 99;

/// A limited path: a link of that rate that data would queue for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    rate: Rate,
    overhead: u32,
    /// When that link will have carried what was sent.
    free_at: Instant,
}

impl Limit {
    /// A path of which segments with `overhead` bytes of headers get no more than `rate`.
    pub(crate) fn new(rate: Rate, overhead: u32) -> Self {
        let data = rate.0 / 100 * SHARE + rate.0 % 100 * SHARE / 100;
        Self { rate: Rate(data.max(1)), overhead, free_at: Instant::ZERO }
    }

    /// A segment with `len` bytes of payload leaves; when the next one may.
    pub(crate) fn on_sent(&mut self, now: Instant, len: u32) -> Instant {
        let takes = self.rate.transmission_time(u64::from(len) + u64::from(self.overhead));
        self.free_at = self.free_at.max(now - LATENESS) + takes;
        self.next_at()
    }

    /// When the next segment may leave.
    pub(crate) fn next_at(&self) -> Instant {
        self.free_at - GRAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1460;

    /// Bytes that leave in a second through a limit of 10 Mbit/s, if each timer is `late`.
    fn sent_in_a_second(limit: &mut Limit, late: Duration, begin: Instant) -> u64 {
        let (mut now, mut sent) = (begin, 0);
        while now < begin + Duration::from_secs(1) {
            let next = limit.on_sent(now, 1400);
            sent += SEGMENT;
            now = if next > now { next + late } else { now };
        }
        sent
    }

    #[test]
    fn no_second_carries_more_than_the_rate_and_late_timers_cost_next_to_nothing() {
        let most = Rate::from_mbps(10).bytes_in(Duration::from_secs(1));
        for late in [0, 1, 4].map(Duration::from_millis) {
            let mut limit = Limit::new(Rate::from_mbps(10), 60);
            for second in [1, 2, 5] {
                let sent = sent_in_a_second(&mut limit, late, Instant(second * 1_000_000_000));
                assert!(sent <= most && sent >= most * 97 / 100, "{late:?}: {sent} of {most}");
            }
        }
    }

    #[test]
    fn the_slowest_rate_is_not_zero() {
        assert_eq!(Limit::new(Rate(1), 40).rate, Rate(1));
    }
}
