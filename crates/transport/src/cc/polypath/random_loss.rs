//! Losses that no queue explains.
//!
//! A drop-tail queue loses packets when it is full, so the packet before a lost one waited longer than most. What is lost
//! at random is lost whatever packets wait. So each lost packet is ranked: which share of the waits of late is shorter than that of
//! the packet before it. The average rank is near 1 where queues overflow and near one half where losses are random; it
//! begins at 1, so that the first losses are congestion.
//!
//! Where losses are random on average, one of them may still come from a full queue. How deep that is the waits show, too: the longest wait that all of
//! a few packets in a row had of late is a depth that it has for certain. A packet that is lost while those about it wait less than
//! half as long met no full queue. That holds of drop-tail; a queue that drops on purpose does so long before it is full, and only the window
//! knows then what is too much: packets that wait for half of the smallest round trip.
//!
//! It cannot tell where a queue is so shallow that waits mean nothing (below HyStart++'s threshold) and random losses
//! outnumber those of the queue. Bounds: timeouts are never excused, nor any loss once more than a tenth of the packets are lost.

use std::cmp::Reverse;

use polypath_wire::{Duration, Instant};

use crate::cc::hystart::threshold;
use crate::facts::{LossCause, LossEvent};
use crate::windowed::WindowedMin;

/// Packets in a row whose waits count together.
const WITNESSES: usize = 8;
/// The depth of a queue is remembered for one or two of these.
const MEMORY: Duration = Duration::from_secs(20);
/// Losses are counted over about so many packets, and are excused up to this share of them.
const PACKETS: f64 = 64.0;
const MOST: f64 = 0.1;

/// Waits among which those about a lost packet are ranked.
const RANKED: usize = 64;
/// How much each loss counts in their average rank, and the ranks above which losses come with queues: lost at random they are one
/// half on average, in a queue that is full one.
const GAIN: f64 = 1.0 / 16.0;
const HIGH: f64 = 0.7;

/// What is known of the queue of one path.
#[derive(Clone, Debug)]
pub(super) struct RandomLoss {
    /// When the last packets left, and what they waited.
    waits: [(Instant, Duration); RANKED],
    seen: usize,
    depth: WindowedMin<Reverse<Duration>>,
    /// Smallest round trip.
    least: Duration,
    /// Share of the packets of late that were lost.
    lost: f64,
    /// Average rank of the waits before lost packets.
    ranks: f64,
}

impl Default for RandomLoss {
    fn default() -> Self {
        Self {
            waits: [Default::default(); RANKED],
            seen: 0,
            depth: WindowedMin::default(),
            least: Duration::ZERO,
            lost: 0.0,
            ranks: 1.0,
        }
    }
}

impl RandomLoss {
    /// A packet that left at `sent` waited so long, on a path with a smallest round trip of `least`.
    pub(super) fn on_delay(&mut self, now: Instant, sent: Instant, wait: Duration, least: Duration) {
        self.least = least;
        self.waits[self.seen % RANKED] = (sent, wait);
        self.seen += 1;
        if self.seen >= WITNESSES
            && let Some(least) = self.lately().min()
        {
            self.depth.add(now, Reverse(least), MEMORY);
        }
    }

    /// So many packets were delivered.
    pub(super) fn on_delivered(&mut self, packets: u32) {
        self.lost *= (1.0 - f64::from(packets) / PACKETS).max(0.0);
    }

    /// A packet was lost that left at `sent`.
    pub(super) fn on_lost(&mut self, sent: Instant) {
        self.lost += (1.0 - self.lost) / PACKETS;
        self.ranks += (self.rank_before(sent) - self.ranks) * GAIN;
    }

    /// Whether the queue was not full when this was lost.
    pub(super) fn is_unexplained(&self, loss: &LossEvent) -> bool {
        let told =
            matches!(loss.cause, LossCause::LaterDelivered | LossCause::DupAck | LossCause::PartialAck);
        told && self.lost <= MOST && self.is_random() && !self.is_full()
    }

    /// Whether losses come at any length of the queue, and none shows now: they are no reason for a small window.
    pub(super) fn is_free(&self) -> bool {
        self.is_random() && self.lost <= MOST && self.lately().all(|wait| wait < self.shallow())
    }

    /// Whether losses came whatever packets waited.
    pub(super) fn is_random(&self) -> bool {
        self.ranks <= HIGH
    }

    /// As far as can be told.
    fn is_full(&self) -> bool {
        let depth = self.depth.value().map_or(Duration::ZERO, |Reverse(depth)| depth);
        let longest = self.lately().max().unwrap_or_default();
        longest >= self.shallow().max(self.least.over(2))
            || depth >= self.shallow() && longest.times(2) >= depth
    }

    /// A queue that is not as deep tells nothing.
    fn shallow(&self) -> Duration {
        threshold(self.least)
    }

    /// The last waits that count together.
    fn lately(&self) -> impl Iterator<Item = Duration> {
        (0..WITNESSES.min(self.seen)).map(|n| self.waits[(self.seen - 1 - n) % RANKED].1)
    }

    /// The share of the waits of late that are shorter than the one of the packet before the one that left at `sent`.
    fn rank_before(&self, sent: Instant) -> f64 {
        let known = &self.waits[..self.seen.min(RANKED)];
        let Some((_, wait)) = known.iter().filter(|w| w.0 <= sent).max_by_key(|w| w.0) else { return 1.0 };
        let less = known.iter().filter(|w| w.1 < *wait).count() as f64;
        let same = known.iter().filter(|w| w.1 == *wait).count() as f64;
        (less + same / 2.0) / known.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Episode;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const RTT: Duration = Duration::from_millis(40);

    fn lost(cause: LossCause) -> LossEvent {
        LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size: 10_000, oldest_sent: Instant::ZERO }
    }

    /// A path, and when its next packet leaves, ms: one each 10 ms.
    #[derive(Default)]
    struct Road(RandomLoss, u64);

    impl Road {
        /// Packets that waited so long, ms.
        fn waits(mut self, waits: &[u64]) -> Self {
            for wait in waits {
                let sent = Instant::ZERO + MS(self.1);
                self.0.on_delay(sent, sent, MS(*wait), RTT);
                self.0.on_delivered(1);
                self.1 += 10;
            }
            self
        }

        fn loses(mut self, packets: u32) -> Self {
            (0..packets).for_each(|_| self.0.on_lost(Instant::ZERO + MS(self.1)));
            self
        }

        /// Twelve losses, one each few packets, whatever those wait.
        fn at_random(mut self) -> Self {
            for n in 0..12 {
                self = self
                    .waits(&[[0, 3, 1, 2], [2, 0, 3, 1], [1, 2, 0, 3], [3, 1, 2, 0]].concat()[n..])
                    .loses(1);
            }
            self
        }

        fn excuses(&self) -> bool {
            self.0.is_unexplained(&lost(LossCause::LaterDelivered))
        }
    }

    #[test]
    fn losses_after_any_wait_are_random_and_those_after_the_longest_are_not() {
        assert!(Road::default().at_random().excuses());
        let overflows = (0..12).fold(Road::default(), |road, _| road.waits(&[0, 1, 2, 3]).loses(1));
        assert!(!overflows.excuses());
    }

    #[test]
    fn the_first_losses_are_congestion() {
        assert!(!Road::default().waits(&[0; 64]).loses(1).excuses());
        assert!(!Road::default().excuses());
    }

    #[test]
    fn overflows_among_random_losses_are_noticed() {
        let road = Road::default().at_random();
        assert!(!(0..8).fold(road, |road, _| road.waits(&[0, 1, 2, 3]).loses(1)).excuses());
    }

    #[test]
    fn a_queue_half_as_deep_as_it_was_explains_a_loss() {
        let road = || Road::default().at_random().waits(&[40; 20]);
        assert!(road().waits(&[19; 8]).excuses());
        assert!(!road().waits(&[21; 8]).excuses(), "more than half");
        assert!(!road().waits(&[5; 7]).excuses(), "one of them waited long");
        assert!(Road::default().at_random().waits(&[0, 15, 0, 0, 15, 0, 0]).excuses(), "jitter is no depth");
    }

    #[test]
    fn a_wait_of_half_a_round_trip_explains_a_loss_however_deep_the_queue_was() {
        let road = || Road::default().at_random().waits(&[200; 20]);
        assert!(road().waits(&[19; 8]).excuses());
        assert!(!road().waits(&[20; 8]).excuses());
    }

    #[test]
    fn a_timeout_is_never_excused() {
        assert!(!Road::default().at_random().0.is_unexplained(&lost(LossCause::Timeout)));
    }

    #[test]
    fn nothing_is_excused_while_more_than_a_tenth_is_lost() {
        let mut road = Road::default().at_random();
        road.0.lost = 0.11;
        assert!(!road.excuses());
        assert!(road.waits(&[0, 1, 2, 3, 0, 1, 2, 3]).excuses());
    }

    #[test]
    fn a_window_makes_up_while_losses_are_random_and_no_queue_shows() {
        let road = Road::default().at_random();
        assert!(road.0.is_free());
        assert!(!road.waits(&[5]).0.is_free(), "an eighth of the round trip is a queue");
        assert!(!Road::default().waits(&[0; 64]).0.is_free(), "nothing was lost");
    }
}
