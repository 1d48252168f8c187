//! Losses that no queue explains.
//!
//! A drop-tail queue loses packets when it is full, so the packet before a lost one waited longer than most. What is lost
//! at random is lost whatever packets wait. So the first lost packet of each episode is ranked: which share of the waits of the last 16 round trips is
//! shorter than that of the packet before it (`waits.rs`). The average rank is near 1 where queues overflow and near one half where losses are random; it
//! begins at 1, so that the first losses are congestion. One rank in an episode: packets that are lost in the same round trip meet the same queue.
//!
//! Where losses are random on average, one of them may still come from a full queue: packets that left about the same time then all waited,
//! at least HyStart++'s threshold, or half of the longest wait of late, where that is less: a short queue never holds the
//! threshold. A queue that drops on purpose may let some by: one that waited half of the smallest round trip is
//! enough. Such a loss does reduce the window, but not far below what the path delivers.
//!
//! While nothing is known yet, in the first slow start, packet trains tell: a window of less than what the path holds by them is taken
//! to fill no queue as long as none shows or fills. Otherwise one random loss would end slow start for good. The first loss
//! that does reduce the window ends this, and so does the ninth episode.
//!
//! It cannot tell where a queue is so shallow that waits mean nothing (below 0.3 ms, or two packets) and random losses
//! outnumber those of the queue. Bounds: timeouts are never excused, nor any loss once more than a tenth of the packets are lost.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, Rate};

use super::waits::{SAME, Waits};
use crate::cc::hystart::threshold;
use crate::facts::{AckSample, LossCause, LossEvent};

/// Acknowledgments that say what packets wait now: those of packets that left within this share of a round trip, and their smallest and largest number.
const NOW: u64 = 8;
const LEAST_WITNESSES: usize = 2;
const WITNESSES: usize = 8;
/// A pair of packets waits as long as this many bytes take.
const PAIR: u64 = 2 * 1500;
/// Losses are averaged over about this many packets, and excused up to this share of them.
const PACKETS: f64 = 64.0;
const MOST: f64 = 0.1;

/// How much each episode counts at least in the average rank, and as how many ranks of 1 that begins.
const GAIN: f64 = 1.0 / 16.0;
const DOUBT: f64 = 3.0;
/// The first slow start excuses at most this many loss episodes.
const EARLY: f64 = 8.0;
/// The rank above which losses come with queues: lost at random they are one half on average, in a queue that is full one.
const HIGH: f64 = 0.7;

/// Where a loss comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// A full queue, as far as is known.
    Queue,
    /// Chance, or a queue: losses are random, but packets wait.
    Either,
    /// No queue explains it.
    Chance,
}

/// What is known of the queue of one path.
#[derive(Clone, Debug)]
pub(super) struct RandomLoss {
    waits: Waits,
    /// When the last packets left, and what they waited, the last one first.
    last: VecDeque<(Instant, Duration)>,
    /// Smallest round trip.
    least: Duration,
    /// What packet trains say of the bottleneck.
    trains: Option<Rate>,
    /// The path began with nothing known, and no loss has reduced its window.
    begins: bool,
    /// Share of the packets of late that were lost.
    lost: f64,
    /// Average rank of the waits before lost packets, and of how many.
    ranks: f64,
    ranked: f64,
}

impl Default for RandomLoss {
    fn default() -> Self {
        Self {
            waits: Waits::default(),
            last: VecDeque::new(),
            least: Duration::ZERO,
            trains: None,
            begins: true,
            lost: 0.0,
            ranks: 1.0,
            ranked: DOUBT,
        }
    }
}

impl RandomLoss {
    /// A packet that left at `sent` waited so long, on a path with a smallest round trip of `least`.
    pub(super) fn on_delay(&mut self, sent: Instant, wait: Duration, least: Duration) {
        self.least = least;
        self.waits.add(sent, wait, least);
        self.last.truncate(WITNESSES - 1);
        self.last.push_front((sent, wait));
    }

    /// Something was delivered.
    pub(super) fn on_delivered(&mut self, sample: &AckSample) {
        self.trains = sample.train_rate.or(self.trains);
        self.lost *= (1.0 - f64::from(sample.newly_acked_segments) / PACKETS).max(0.0);
    }

    /// A packet was lost.
    pub(super) fn on_lost(&mut self) {
        self.lost += (1.0 - self.lost) / PACKETS;
    }

    /// Where the loss comes from that begins an episode.
    pub(super) fn judge(&mut self, loss: &LossEvent) -> Origin {
        if !is_of_packets(loss) {
            return Origin::Queue;
        }
        self.ranked += 1.0;
        self.ranks += (self.waits.rank(loss.oldest_sent) - self.ranks) * GAIN.max(1.0 / self.ranked);
        match self.may_excuse(loss) && self.is_random() {
            false => Origin::Queue,
            true if self.is_full(self.short()) => Origin::Either,
            true => Origin::Chance,
        }
    }

    /// Whether a loss may leave the window as it is, if there is a reason.
    pub(super) fn may_excuse(&self, loss: &LossEvent) -> bool {
        is_of_packets(loss) && self.is_moderate()
    }

    /// Whether the first slow start continues after `loss`: the `window`, bytes, is below what packet trains say that the path holds, and no
    /// queue shows or fills. [`judge`](Self::judge) comes first.
    pub(super) fn is_early(&mut self, loss: &LossEvent, window: u64) -> bool {
        let pipe = self.trains.map_or(0, |rate| rate.bytes_in(self.least));
        let fits = window < pipe && !self.is_full(self.shallow()) && !self.is_filling();
        self.begins &= self.may_excuse(loss) && fits && self.ranked <= DOUBT + EARLY;
        self.begins
    }

    /// The window began with what an earlier connection measured: what is lost now tells whether that still holds.
    pub(super) fn on_known(&mut self) {
        self.begins = false;
    }

    /// Whether few enough packets are lost for a loss to be excused.
    pub(super) fn is_moderate(&self) -> bool {
        self.lost <= MOST
    }

    /// Whether losses come at any length of the queue, and none shows now: they are no reason for a small window.
    pub(super) fn is_free(&self) -> bool {
        self.is_random() && self.is_moderate() && self.lately().all(|wait| wait < self.short())
    }

    /// Whether losses came whatever packets waited.
    pub(super) fn is_random(&self) -> bool {
        self.ranks <= HIGH
    }

    /// Smallest round trip, zero while it is unknown.
    pub(super) fn least(&self) -> Duration {
        self.least
    }

    /// As far as is known, if packets wait as long as `long` in such a queue.
    fn is_full(&self, long: Duration) -> bool {
        let stands = self.lately().min().is_some_and(|wait| wait >= long);
        stands || self.lately().any(|wait| wait >= self.shallow().max(self.least.over(2)))
    }

    /// Whether the last packet heard of waited half as long as shows a queue: in slow start that may be full by now.
    fn is_filling(&self) -> bool {
        self.last.front().is_some_and(|(_, wait)| *wait >= self.shallow().over(2))
    }

    /// A queue that is not as deep tells nothing.
    fn shallow(&self) -> Duration {
        threshold(self.least)
    }

    /// The wait that shows a queue: half of the longest of late, but neither more than the threshold nor less than what a pair of
    /// packets takes, or by which waits differ by chance.
    fn short(&self) -> Duration {
        let pair = self.trains.map_or(Duration::ZERO, |rate| rate.transmission_time(PAIR));
        self.shallow().min(self.waits.longest().over(2).max(SAME).max(pair))
    }

    /// What packets wait now.
    fn lately(&self) -> impl Iterator<Item = Duration> {
        let newest = self.last.front().map_or(Instant::ZERO, |last| last.0);
        let recent = move |sent: Instant| newest.since(sent) <= self.least.over(NOW);
        let counts = move |(n, last): &(usize, &(Instant, Duration))| *n < LEAST_WITNESSES || recent(last.0);
        self.last.iter().enumerate().filter(counts).map(|(_, last)| last.1)
    }
}

/// Later packets were delivered: the path works.
fn is_of_packets(loss: &LossEvent) -> bool {
    matches!(loss.cause, LossCause::LaterDelivered | LossCause::DupAck | LossCause::PartialAck)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Episode;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const RTT: Duration = Duration::from_millis(40);

    fn lost(cause: LossCause, oldest_sent: Instant) -> LossEvent {
        LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size: 10_000, oldest_sent }
    }

    /// A path, and when its next packet leaves, ms: one each 10 ms.
    #[derive(Default)]
    struct Road(RandomLoss, u64);

    impl Road {
        /// Packets that waited so long, ms.
        fn waits(mut self, waits: &[u64]) -> Self {
            for wait in waits {
                let sent = Instant::ZERO + MS(self.1);
                self.0.on_delay(sent, MS(*wait), RTT);
                self.0.on_delivered(&AckSample { newly_acked_segments: 1, ..AckSample::default() });
                self.1 += 10;
            }
            self
        }

        fn loses(mut self, packets: u32) -> Self {
            for _ in 0..packets {
                self.0.on_lost();
                self.0.judge(&self.lost(LossCause::LaterDelivered));
            }
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

        fn lost(&self, cause: LossCause) -> LossEvent {
            lost(cause, Instant::ZERO + MS(self.1))
        }

        /// Where one more loss would come from.
        fn origin(&self, cause: LossCause) -> Origin {
            self.0.clone().judge(&self.lost(cause))
        }

        fn excuses(&self) -> bool {
            self.origin(LossCause::LaterDelivered) == Origin::Chance
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
        let road = |losses| Road::default().waits(&[0; 64]).loses(losses);
        assert!(!road(3).excuses());
        assert!(road(4).excuses(), "of the fifth they are random");
        assert!(!Road::default().loses(20).excuses(), "nothing is known");
    }

    #[test]
    fn overflows_among_random_losses_are_noticed() {
        let road = Road::default().at_random();
        assert!(!(0..8).fold(road, |road, _| road.waits(&[0, 1, 2, 3]).loses(1)).excuses());
    }

    #[test]
    fn a_queue_that_all_packets_wait_in_explains_a_loss() {
        let road = || Road::default().at_random();
        let either = |road: Road| road.origin(LossCause::LaterDelivered) == Origin::Either;
        assert!(either(road().waits(&[2, 2])), "more than half as long as any waited");
        assert!(road().waits(&[1, 1]).excuses(), "less");
        let long = || road().waits(&[4, 16, 8, 12].repeat(16));
        assert!(either(long().waits(&[5, 5])), "an eighth of the round trip, however long others waited");
        assert!(long().waits(&[4, 4]).excuses(), "less");
        assert!(road().waits(&[15, 0, 15, 0]).excuses(), "jitter");
        assert!(either(road().waits(&[20, 0])), "half a round trip");
    }

    #[test]
    fn a_timeout_is_never_excused() {
        assert_eq!(Road::default().at_random().origin(LossCause::Timeout), Origin::Queue);
    }

    #[test]
    fn nothing_is_excused_while_more_than_a_tenth_is_lost() {
        let mut road = Road::default().at_random();
        road.0.lost = 0.11;
        assert!(!road.excuses());
        assert!(road.waits(&[3, 2, 1, 0, 3, 2, 1, 0]).excuses());
    }

    #[test]
    fn a_window_makes_up_while_losses_are_random_and_no_queue_shows() {
        let road = Road::default().at_random().waits(&[0, 1]);
        assert!(road.0.is_free());
        assert!(!road.waits(&[2]).0.is_free(), "more than half as long as any waited is a queue");
        assert!(!Road::default().waits(&[0; 64]).0.is_free(), "nothing was lost");
    }
}
