//! A short queue where nobody else fills it: an optional target for the delay that stands.
//!
//! When all packets of a round trip waited longer than the target, the window gives up what waits beyond half of it. If the queue is
//! ours, it becomes as much shorter. Others keep their windows, and it becomes shorter only by our share of it. So each reduction is its own test: if the
//! queue fell by less than three quarters of what was given up, the window and its law are again what they were before, and there is no other
//! reduction for a pause, which doubles with each failure in a row.
//!
//! A short queue is empty once the path becomes longer, as when acknowledgments came back over another one that is gone, or faster, as mobile
//! links do every second. A window that was reduced for the queue's sake, and lost nothing since, then grows by more than its law says: up to what
//! the path holds, and further as long as nothing waits at all.
//!
//! Connections of one host reduce together, or each would take the others for competitors: they all look at multiples of half a second, and
//! pauses end at multiples of their length.

use polypath_wire::{Duration, Instant, Rate};

/// Share of what was given up by which the queue of a path without competitors falls at least.
const FELL: [u64; 2] = [3, 4];
/// A queue is gone if packets wait for less than this part of the target on average.
const GONE: u64 = 8;
/// Segments that an acknowledgment is of (RFC 5681 §4.2).
const PAIR: u64 = 2;
/// Round trips after which it has fallen: in the first the sender waits, in the second its packets meet the shorter queue.
const ROUNDS: u32 = 2;
/// How often a connection looks whether a queue stands.
const LOOK: Duration = Duration::from_millis(500);
/// After a failure. Longer pauses are multiples of shorter ones.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(40);

/// What becomes of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// It shrinks by this many bytes.
    GiveUp(u64),
    /// It becomes what it was before it shrank.
    TakeBack,
}

/// What a path carries: the rate at which it delivers, the window and a segment of it in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub rate: Rate,
    pub window: u64,
    pub mss: u64,
}

impl Load {
    /// The bytes of the window that wait for `excess`, in whole pairs of segments, of which one remains. Segments are acknowledged in twos:
    /// what is in flight, and what packets wait, falls in such steps.
    fn waiting_for(&self, excess: Duration) -> u64 {
        let pair = PAIR * self.mss.max(1);
        let bytes = self.rate.bytes_in(excess).min(self.window.saturating_sub(pair));
        bytes / pair * pair
    }
}

/// The queue of one path.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    target: Duration,
    round: Option<Round>,
    /// The last one that ended since the last look.
    last: Option<Round>,
    /// What packets waited on average in the last round trip.
    mean: Duration,
    /// What the bottleneck delivered when its queue stood last and was ours, unless a loss reduced the window since.
    full: Option<Rate>,
    trial: Option<Trial>,
    /// Round trips until the queue shows what a loss left.
    settling: u32,
    /// The next look is near, and may find a queue: what the window grows by meanwhile would hide what is given up.
    rests: bool,
    /// The next look, and the next pause.
    look: Instant,
    pause: Duration,
}

/// A round trip in which packets were acknowledged.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant,
    /// What they waited: at least, together, and how many they are.
    least: Duration,
    sum: Duration,
    packets: u64,
    /// The highest delivery rate.
    rate: Rate,
}

/// A reduction whose outcome is not known.
#[derive(Clone, Copy, Debug)]
struct Trial {
    began: Instant,
    /// What packets waited at least before it, the last that left before it too, and how much of that was given up.
    before: Duration,
    excess: Duration,
    rate: Rate,
    rounds: u32,
}

impl Standing {
    pub(super) fn new(target: Duration) -> Self {
        Self {
            target,
            round: None,
            last: None,
            mean: Duration::ZERO,
            full: None,
            trial: None,
            settling: 0,
            rests: false,
            look: Instant::ZERO,
            pause: PAUSE,
        }
    }

    /// A packet that left at `sent` waited this long, on a path that carries `load`.
    pub(super) fn on_delay(
        &mut self,
        now: Instant,
        sent: Instant,
        wait: Duration,
        load: Load,
    ) -> Option<Step> {
        let rate = load.rate;
        let fresh = Round { began: now, least: wait, sum: Duration::ZERO, packets: 0, rate };
        let mut round = self.round.unwrap_or(fresh);
        let earlier = round.least;
        (round.least, round.rate) = (round.least.min(wait), round.rate.max(rate));
        (round.sum, round.packets) = (round.sum + wait, round.packets + 1);
        let is_over = sent >= round.began;
        self.rests = false;
        self.round = Some(round).filter(|_| !is_over);
        if is_over {
            self.mean = round.sum.over(round.packets);
        }
        match &mut self.trial {
            Some(trial) if is_over => {
                trial.rounds += 1;
                if trial.rounds == 1 {
                    trial.before = trial.before.max(earlier);
                }
                let ended = self.trial.take_if(|trial| trial.rounds == ROUNDS)?;
                self.judge(now, &ended, round.least)
            }
            Some(_) => None,
            None if self.settling > 0 => {
                self.settling -= u32::from(is_over);
                None
            }
            None => {
                self.last = Some(round).filter(|_| is_over).or(self.last);
                let step = self.look(now, load);
                let near = now + now.since(sent).times(ROUNDS.into()) >= self.look;
                self.rests = near && wait > self.target;
                step
            }
        }
    }

    /// Whether a reduction is tried, or may be soon. The window does not grow meanwhile: on a slow path a segment more in each round trip would
    /// hide what was given up. It does after a pause: the acknowledgments that tell may come by another path now.
    pub(super) fn tries(&self, now: Instant) -> bool {
        self.rests && now < self.look || self.trial.is_some_and(|trial| now < trial.began + PAUSE)
    }

    /// Gives up what waits too long, if it is time to look.
    fn look(&mut self, now: Instant, load: Load) -> Option<Step> {
        if now < self.look {
            return None;
        }
        self.look = next_multiple(now, LOOK);
        let Round { least: before, rate, .. } = self.last.take().filter(|round| round.least > self.target)?;
        let bytes = Load { rate, ..load }.waiting_for(before - self.target.over(2));
        if bytes == 0 {
            return None;
        }
        let excess = rate.transmission_time(bytes);
        (self.trial, self.round) = (Some(Trial { began: now, before, excess, rate, rounds: 0 }), None);
        Some(Step::GiveUp(bytes))
    }

    /// After `trial` packets wait `least` at least.
    fn judge(&mut self, now: Instant, trial: &Trial, least: Duration) -> Option<Step> {
        let [part, whole] = FELL;
        let fell = trial.before.0.saturating_sub(least.0);
        if fell * whole >= trial.excess.0 * part {
            (self.pause, self.full) = (PAUSE, Some(trial.rate));
            return None;
        }
        self.look = next_multiple(now + self.pause.over(2), self.pause);
        self.pause = self.pause.times(2).min(LONGEST_PAUSE);
        Some(Step::TakeBack)
    }

    /// What fills the path, with its queue as a reduction leaves it, bytes, if packets with a round trip of `srtt` wait less, and no loss made the
    /// window as small. If the queue is gone nobody knows: it may have become faster.
    pub(super) fn holds(&self, srtt: Duration) -> Option<u64> {
        let full = self.full.filter(|_| self.trial.is_none() && self.mean < self.target.over(2))?;
        let is_gone = self.mean < self.target.over(GONE);
        Some(if is_gone { u64::MAX } else { full.bytes_in(srtt - self.mean + self.target.over(2)) })
    }

    /// A loss reduces the window. Whether a trial ends by that.
    pub(super) fn on_loss(&mut self) -> bool {
        self.full = None;
        self.restart()
    }

    /// Less is on its way than the window allows, or will be: what the queue does then tells nothing. Whether a trial ends by that.
    pub(super) fn restart(&mut self) -> bool {
        (self.round, self.last, self.settling, self.rests) = (None, None, ROUNDS, false);
        self.trial.take().is_some()
    }
}

/// The first multiple of `step` after `now`.
fn next_multiple(now: Instant, step: Duration) -> Instant {
    Instant((now.0 / step.0 + 1) * step.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const RATE: Rate = Rate(8_000_000);

    /// A path with a round trip of 20 ms and a queue; every millisecond a packet is acknowledged.
    struct Road {
        standing: Standing,
        now: Instant,
        load: Load,
        steps: Vec<Step>,
    }

    impl Road {
        fn new() -> Self {
            let load = Load { rate: RATE, window: 100_000, mss: 500 };
            Self { standing: Standing::new(MS(10)), now: Instant::ZERO, load, steps: Vec::new() }
        }

        /// How long packets wait what `wait` says by the bytes that were given up.
        fn run(&mut self, ms: u64, wait: impl Fn(u64) -> u64) {
            for _ in 0..ms {
                self.now += MS(1);
                let given_up = self.steps.iter().fold(0, |sum, step| match step {
                    Step::GiveUp(bytes) => sum + bytes,
                    Step::TakeBack => 0,
                });
                let wait = MS(wait(given_up / 1000));
                let sent = Instant(self.now.0.saturating_sub((MS(20) + wait).0));
                self.steps.extend(self.standing.on_delay(self.now, sent, wait, self.load));
            }
        }
    }

    #[test]
    fn what_waits_beyond_half_of_the_target_is_given_up_once() {
        let mut road = Road::new();
        road.run(600, |given_up| 30 - given_up);
        assert_eq!(road.steps, [Step::GiveUp(25_000)], "25 ms at 1 byte a µs");
        road.run(500, |_| 9);
        assert_eq!(road.steps.len(), 1, "below the target");
        road.run(600, |given_up| 37 - given_up);
        assert_eq!(road.steps.last(), Some(&Step::GiveUp(7000)), "and above it again");
    }

    #[test]
    fn what_is_given_up_is_whole_pairs_of_segments_and_one_remains() {
        for (window, wait, given_up) in [(100_000, 12, 5000), (100_000, 27, 20_000), (14_000, 27, 5000)] {
            let mut road = Road::new();
            (road.load.mss, road.load.window) = (2500, window);
            road.run(900, |given_up| wait - given_up / 5 * 5);
            assert_eq!(road.steps, [Step::GiveUp(given_up)], "{window} bytes, {wait} ms");
        }
    }

    #[test]
    fn a_queue_of_less_than_a_pair_of_segments_stays() {
        let mut road = Road::new();
        road.load.mss = 10_000;
        road.run(2450, |_| 24);
        assert_eq!(road.steps, []);
        assert!(road.standing.tries(road.now), "but does not grow before the next look");
    }

    #[test]
    fn a_queue_that_others_fill_is_left_to_them_and_asked_again_ever_more_rarely() {
        let mut road = Road::new();
        let given_up = |road: &Road| road.steps.iter().filter(|step| **step != Step::TakeBack).count();
        road.run(4_000, |given_up| 30 - given_up / 2);
        assert_eq!(road.steps, [Step::GiveUp(25_000), Step::TakeBack]);
        road.run(5_000, |given_up| 30 - given_up / 2);
        assert_eq!(given_up(&road), 2, "at 5 s, and not again before 10");
        road.run(300_000, |given_up| 30 - given_up / 2);
        assert!((8..=11).contains(&given_up(&road)), "{}", given_up(&road));
        assert_eq!(road.steps.last(), Some(&Step::TakeBack));
    }

    #[test]
    fn a_window_may_be_too_small_that_was_reduced_for_a_queue_which_is_gone_and_not_after_a_loss() {
        let mut road = Road::new();
        let holds = |road: &Road| road.standing.holds(MS(20));
        road.run(400, |_| 0);
        assert_eq!(holds(&road), None, "the law alone knows how it got here");
        road.run(600, |given_up| 30 - given_up);
        assert_eq!(holds(&road), None, "half of the target waits");
        road.run(60, |_| 2);
        assert_eq!(holds(&road), Some(23_000));
        road.run(60, |_| 1);
        assert_eq!(holds(&road), Some(u64::MAX), "the path may be faster now");
        road.run(60, |_| 6);
        assert_eq!(holds(&road), None);
        road.run(60, |_| 1);
        road.standing.on_loss();
        road.run(400, |_| 1);
        assert_eq!(holds(&road), None);
    }

    #[test]
    fn a_queue_that_grew_since_it_was_looked_at_is_compared_with_what_it_was_when_bytes_were_given_up() {
        let mut road = Road::new();
        road.run(450, |_| 30);
        road.run(130, |given_up| if given_up == 0 { 30 } else { 60 });
        assert_eq!(road.steps, [Step::GiveUp(25_000)]);
        road.run(400, |given_up| 60 - given_up);
        assert!(!road.steps.contains(&Step::TakeBack), "from 60 ms to 35 ms: {:?}", road.steps);
    }

    #[test]
    fn the_window_rests_before_a_reduction() {
        let mut road = Road::new();
        let tries = |road: &Road| road.standing.tries(road.now);
        road.run(390, |_| 30);
        assert!(!tries(&road));
        road.run(20, |_| 30);
        assert!(tries(&road), "two round trips of 50 ms before");
        road.run(200, |given_up| 30 - given_up);
        road.run(380, |_| 9);
        assert!(!tries(&road), "there is no queue now");
    }

    #[test]
    fn a_packet_in_each_round_trip_that_did_not_wait_is_no_standing_queue() {
        let mut road = Road::new();
        for _ in 0..100 {
            road.run(19, |_| 30);
            road.run(1, |_| 0);
        }
        assert_eq!(road.steps, []);
    }

    #[test]
    fn what_waited_before_a_loss_reduced_the_window_counts_no_more() {
        let mut road = Road::new();
        road.run(490, |_| 30);
        assert!(!road.standing.on_loss(), "there is no trial");
        road.run(60, |_| 30);
        road.run(600, |_| 5);
        assert_eq!(road.steps, []);
        road.run(1000, |_| 30);
        assert_eq!(road.steps.len(), 2, "a queue that does not fall is taken back");
    }

    #[test]
    fn what_waited_long_ago_counts_no_more() {
        let mut road = Road::new();
        road.run(400, |_| 30);
        road.now += Duration::from_secs(3);
        road.run(30, |_| 0);
        road.run(600, |_| 0);
        assert_eq!(road.steps, []);
    }
}
