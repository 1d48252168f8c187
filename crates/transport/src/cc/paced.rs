//! Slow start that knows where it goes: packet trains tell the rate of the bottleneck before the window fills it.
//!
//! Standard slow start learns that a path is full when it has sent twice as much, HyStart++ (RFC 9406) little sooner.
//! The acknowledgments of the first ten segments already tell the rate (`path/trains.rs`), and with the smallest round
//! trip what the path holds, its *pipe*.
//!
//! | window | grows |
//! |---|---|
//! | pipe unknown | by what is acknowledged (RFC 5681), twofold in a round trip |
//! | below half the pipe, or below a known pipe | up to sixteenfold: from ten segments to half of a pipe of 320 in one round trip, where SUSS (Arghavani, Zhang, Eager and Arlitt, SIGCOMM 2024) has fourfold |
//! | below the pipe | twofold, up to the pipe |
//! | from there on | by an eighth of what is acknowledged, until a queue shows |
//!
//! A queue stops growth, and if it stands for a round trip, ends it: a machine that was busy for a moment is no queue. The
//! window becomes what was delivered in a round trip without one, and a little more. A queue on a
//! path of which less than three quarters are used is of others, or is none: then growth is twofold at most.
//!
//! Pacing makes this possible: once trains tell the rate, growth leaves no faster than the bottleneck sends it on,
//! and what leaves together is a train again.

use polypath_wire::{Duration, Instant, Rate};

use super::hystart::threshold;
use crate::facts::AckSample;

/// Most growth of the window in a round trip, up to half the pipe. With 4, transfers of 10 MB over 80 Mbit/s and 40 ms take
/// longer, and beside another flow in a queue of four round trips nearly twice as long (`foundation/start`).
const MOST: f64 = 16.0;
/// Share of what is acknowledged by which the window grows once the path should be full.
const CAREFUL: f64 = 1.0 / 8.0;
/// Share of the pipe below which a queue is not ours.
const FULL: f64 = 3.0 / 4.0;
/// Acknowledgments in a row that must show the queue.
const WITNESSES: usize = 4;

/// What becomes of the window, bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Advice {
    /// Slow start goes on.
    Grow(f64),
    /// It is over.
    Leave(f64),
}

/// Slow start on one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Paced {
    /// Bytes of the present round still to be acknowledged, and those that were.
    left: u64,
    acked: f64,
    /// The window when it began.
    began: f64,
    /// What the last acknowledgments said of the queue, and how many ever did.
    queueing: [Duration; WITNESSES],
    seen: usize,
    /// Rate by the trains of the last round, and the best that two rounds in a row reached: among the packets of others
    /// trains show less.
    last: Option<Rate>,
    best: Option<Rate>,
    /// Bytes to be acknowledged until the queue has stood for a round trip.
    doubt: Option<u64>,
    /// What the path held when it was measured last, bytes.
    known: Option<f64>,
    /// When the window grew last by it, once it ended.
    grew_at: Option<Instant>,
}

impl Paced {
    /// The path held `pipe` bytes not long ago: once trains confirm it, the window may leap there.
    pub(crate) fn expect(&mut self, pipe: f64) {
        self.known = Some(pipe);
    }

    /// An acknowledgment came while the window was `window`, bytes.
    pub(crate) fn on_ack(&mut self, now: Instant, sample: &AckSample, window: f64) -> Advice {
        self.count(sample, window);
        let least = sample.min_rtt.unwrap_or(Duration::ZERO);
        let limit = threshold(least);
        let holds = |rate: Rate| rate.bytes_in(least) as f64;
        let (pipe, best) = (sample.train_rate.map(holds), self.best.max(sample.train_rate).map(holds));
        let queued = self.queue(sample).is_some_and(|queue| queue >= limit);
        let ours = queued && best.is_none_or(|best| window >= best * FULL);
        if ours && !self.is_certain(sample) {
            return Advice::Grow(window);
        }
        if ours {
            self.grew_at = Some(now);
            let rate = sample.delivery_rate.max(sample.train_rate);
            let holds = rate.map_or(0.0, |rate| rate.bytes_in(least + limit) as f64);
            return Advice::Leave(holds.clamp(window / 2.0, window));
        }
        self.doubt = None;
        // Half is enough: pacing holds back the other half (as Linux has it in slow start).
        match 2.0 * sample.prior_in_flight as f64 >= window {
            true => Advice::Grow(self.grown(sample.newly_acked as f64, window, pipe, queued)),
            false => Advice::Grow(window),
        }
    }

    /// Whether the queue stands for a whole round by now.
    fn is_certain(&mut self, sample: &AckSample) -> bool {
        let left = self.doubt.unwrap_or(sample.prior_in_flight);
        self.doubt = left.checked_sub(sample.newly_acked);
        self.doubt.is_none()
    }

    fn grown(&self, acked: f64, window: f64, pipe: Option<f64>, queued: bool) -> f64 {
        let Some(pipe) = pipe else { return window + acked };
        if window >= pipe {
            return window + acked * CAREFUL;
        }
        let leap = (self.began + (MOST - 1.0) * self.acked).min(self.known.unwrap_or(pipe / 2.0).min(pipe));
        (window + acked).min(pipe).max(if queued { 0.0 } else { leap })
    }

    /// After it: how much the window grows while nothing was lost yet and no queue shows, bytes; it may have left too early.
    pub(crate) fn on_ack_later(&mut self, now: Instant, sample: &AckSample) -> Option<f64> {
        let limit = threshold(sample.min_rtt?);
        self.queue(sample).filter(|queue| *queue < limit)?;
        self.grew_at = Some(now);
        Some(sample.newly_acked as f64 * CAREFUL)
    }

    /// Whether what left at `sent` was lost to this slow start, or to the growth after it.
    pub(crate) fn is_to_blame(&self, sent: Instant) -> bool {
        self.grew_at.is_none_or(|grew| sent <= grew)
    }

    fn count(&mut self, sample: &AckSample, window: f64) {
        if self.left <= sample.newly_acked {
            (self.left, self.acked, self.began) = (sample.prior_in_flight, 0.0, window);
            let before = std::mem::replace(&mut self.last, sample.train_rate);
            self.best = self.best.max(before.min(self.last));
        } else {
            self.left -= sample.newly_acked;
        }
        self.acked += sample.newly_acked as f64;
    }

    /// The queue that all of the last acknowledgments saw: on the way there, as far as that is known.
    fn queue(&mut self, sample: &AckSample) -> Option<Duration> {
        if let Some((rtt, least)) = sample.rtt.zip(sample.min_rtt) {
            let above = rtt - least;
            self.queueing[self.seen % WITNESSES] = sample.one_way_queueing.map_or(above, |q| q.min(above));
            self.seen += 1;
        }
        self.queueing.into_iter().min().filter(|_| self.seen >= WITNESSES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Acknowledges a window of 1,000 bytes each with this round trip; the smallest is 40 ms. What the window becomes.
    fn round(paced: &mut Paced, window: &mut f64, rtt: u64, train_rate: Option<Rate>) -> Option<f64> {
        for _ in 0..(*window / 1000.0) as u64 {
            let sample = AckSample {
                newly_acked: 1000,
                prior_in_flight: *window as u64,
                rtt: Some(MS(rtt)),
                min_rtt: Some(MS(40)),
                delivery_rate: Some(Rate::from_mbps(80)),
                train_rate,
                ..AckSample::default()
            };
            match paced.on_ack(Instant::ZERO, &sample, *window) {
                Advice::Grow(grown) => *window = grown,
                Advice::Leave(left) => return Some(left),
            }
        }
        None
    }

    fn rounds(train_rate: Option<Rate>) -> [f64; 5] {
        let (mut paced, mut window) = (Paced::default(), 10_000.0);
        [(); 5].map(|()| {
            assert_eq!(round(&mut paced, &mut window, 40, train_rate), None);
            window
        })
    }

    #[test]
    fn doubles_while_nothing_is_known() {
        assert_eq!(rounds(None), [20e3, 40e3, 80e3, 160e3, 320e3]);
    }

    /// 80 Mbit/s are 400 kB in 40 ms.
    #[test]
    fn leaps_to_half_the_pipe_then_doubles_to_the_pipe_and_grows_carefully_from_there() {
        let [first, second, third, fourth, _] = rounds(Some(Rate::from_mbps(80)));
        assert_eq!(first, 160e3);
        assert!((320e3..400e3).contains(&second), "{second}");
        assert!((400e3..440e3).contains(&third), "{third}");
        assert!((1.12..1.13).contains(&(fourth / third)), "{fourth}");
    }

    #[test]
    fn a_queue_ends_it_with_what_the_path_holds() {
        let (mut paced, mut window) = (Paced::default(), 600_000.0);
        assert_eq!(round(&mut paced, &mut window, 44, None), None, "less than an eighth of 40 ms");
        assert_eq!(round(&mut paced, &mut window, 45, None), None, "not yet a round trip");
        let left = round(&mut paced, &mut window, 45, None);
        assert_eq!(left.map(f64::round), Some(window / 2.0), "450 kB are less than half");
        let (mut paced, mut window) = (Paced::default(), 600_000.0);
        assert_eq!(round(&mut paced, &mut window, 45, Some(Rate::from_mbps(80))), None);
        assert_eq!(round(&mut paced, &mut window, 45, Some(Rate::from_mbps(80))), Some(450_000.0));
    }

    #[test]
    fn a_queue_on_a_path_that_we_do_not_fill_only_ends_the_leaps() {
        let (mut paced, mut window) = (Paced::default(), 10_000.0);
        assert_eq!(round(&mut paced, &mut window, 60, Some(Rate::from_mbps(80))), None);
        assert!(window < 70e3, "leaps until the queue is certain: {window}");
        let seen = window;
        round(&mut paced, &mut window, 60, Some(Rate::from_mbps(80)));
        assert!(window < 2.0 * seen + 1.0, "{window}");
    }

    #[test]
    fn what_left_before_the_last_growth_was_lost_to_it() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let (mut paced, mut window) = (Paced::default(), 600_000.0);
        assert!((0..2).find_map(|_| round(&mut paced, &mut window, 60, None)).is_some());
        assert!(!paced.is_to_blame(at(1)), "it is over");
        let short =
            AckSample { newly_acked: 1000, rtt: Some(MS(41)), min_rtt: Some(MS(40)), ..AckSample::default() };
        assert_eq!(paced.on_ack_later(at(2), &short), Some(1000.0 * CAREFUL));
        assert!(paced.is_to_blame(at(1)) && !paced.is_to_blame(at(3)));
    }

    #[test]
    fn a_few_late_acknowledgments_end_nothing() {
        let (mut paced, mut window) = (Paced::default(), 600_000.0);
        for _ in 0..100 {
            let mut three = 3000.0;
            assert_eq!(round(&mut paced, &mut three, 80, None), None);
            let mut one = 1000.0;
            assert_eq!(round(&mut paced, &mut one, 40, None), None);
        }
        assert_eq!(round(&mut paced, &mut window, 40, None), None);
    }
}
