//! Concordance of queueing delays: paths through one queue wait the same time in it.
//!
//! Of two paths the delays of packets that left at about the same time are compared, in bins in which both have some: Lin's
//! coefficient of concordance without its term for the means, which base delays and clocks move
//! (L. I. Lin, "A Concordance Correlation Coefficient to Evaluate Reproducibility", Biometrics 1989):
//!
//! `c = 2 · cov(x, y) / (var(x) + var(y)) = 1 − var(x − y) / (var(x) + var(y))`
//!
//! Unlike a correlation it asks for the same amplitude as well. What leaves at one time does not meet the queue at one time:
//! of all lags up to the difference of the round trips the best one counts. A straight trend of each path is not compared: two queues
//! that fill up in the same seconds would look like one.

use polypath_wire::{Duration, Instant, PathId};

use super::detector::Detector;
use super::series::{BIN, Bin, Series, widened};
use crate::path_map::{OfPath, PathMap};

/// Longest time that is looked back.
const WINDOW: Duration = Duration::from_secs(10);
/// How often bins are doubled in width at most, until both paths have enough of them and a queue shows. A short queue rises and
/// falls within a few milliseconds, so the narrowest bins that will do are taken.
const WIDENED: u32 = 5;
/// Fewest bins that both must have.
const LEAST: f64 = 40.0;
/// Smallest standard deviation, ms: below it there is no queue to compare.
const SPREAD: f64 = 0.4;
/// Products that are summed at once.
const LANES: usize = 8;
/// Lags that are always tried: jitter of hosts, and what is unlike in the ways to the bottleneck.
const LAG: Duration = Duration::from_millis(30);

#[derive(Debug)]
struct Path {
    id: PathId,
    series: Series,
    rtt: Duration,
}

impl OfPath for Path {
    #[inline]
    fn path(&self) -> PathId {
        self.id
    }
}

/// Compares queueing delays.
#[derive(Debug, Default)]
pub(crate) struct Concordance {
    paths: PathMap<Path>,
}

impl Detector for Concordance {
    fn on_delay(&mut self, path: PathId, sent: Instant, queueing: Duration, rtt: Duration) {
        let path = self.paths.or_insert(path, |id| Path { id, series: Series::default(), rtt });
        path.series.add(sent, queueing);
        path.rtt = rtt;
    }

    fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    fn rest(&mut self, now: Instant) {
        self.paths.retain(|path| !path.series.is_old(now));
    }

    fn likeness(&mut self, now: Instant, since: Instant, (a, b): (PathId, PathId)) -> Option<f64> {
        let (a, b) = (self.paths.get(a)?, self.paths.get(b)?);
        let from = since.max(now - WINDOW);
        let lag = (a.rtt - b.rtt).max(b.rtt - a.rtt).max(LAG);
        let mut lines = [a, b].map(|path| Line::of(path.series.between(from, now).collect()));
        for times in 0..=WIDENED {
            let lags = lag.0.div_ceil(BIN.0 << times) as usize;
            if let Some(c) = best(&lines, lags) {
                return Some(c);
            }
            lines = lines.map(|line| Line::of(widened(&line.bins)));
        }
        None
    }
}

/// The best concordance of all lags; none if both have too few bins at one time, or no queue shows with any lag.
fn best([x, y]: &[Line; 2], lags: usize) -> Option<f64> {
    if dot(&x.there, &y.there) < LEAST {
        return None;
    }
    let ahead = (0..=lags).map(|lag| concordance((x, lag), (y, 0)));
    let behind = (1..=lags).map(|lag| concordance((x, 0), (y, lag)));
    ahead.chain(behind).flatten().reduce(f64::max)
}

/// The bins of a path, prepared so that sums over the bins that two paths have are sums of products. A bin without a delay is 0 in all
/// three.
struct Line {
    bins: Vec<Bin>,
    /// The mean delay of each bin, less the trend of all bins, ms.
    delay: Vec<f32>,
    /// The square of that.
    square: Vec<f32>,
    /// 1 in each bin that has a delay.
    there: Vec<f32>,
}

impl Line {
    fn of(bins: Vec<Bin>) -> Self {
        let (means, trend) = (|| bins.iter().map(|bin| bin.mean()), Trend::of(&bins));
        let without_trend = |(n, mean): (usize, Option<f32>)| mean.map_or(0.0, |mean| mean - trend.at(n));
        let delay: Vec<f32> = means().enumerate().map(without_trend).collect();
        let square = delay.iter().map(|delay| delay * delay).collect();
        let there = means().map(|mean| f32::from(u8::from(mean.is_some()))).collect();
        Self { bins, delay, square, there }
    }
}

/// The straight line that fits the mean delays of bins best, by least squares.
struct Trend {
    /// The middle of the bins that have a delay, and the mean delay there, ms.
    middle: f64,
    mean: f64,
    /// ms a bin.
    slope: f64,
}

impl Trend {
    fn of(bins: &[Bin]) -> Self {
        let points =
            || bins.iter().enumerate().filter_map(|(n, bin)| Some((n as f64, f64::from(bin.mean()?))));
        let sum = |of: &dyn Fn((f64, f64)) -> f64| points().map(of).sum::<f64>();
        let count = sum(&|_| 1.0).max(1.0);
        let (middle, mean) = (sum(&|(x, _)| x) / count, sum(&|(_, y)| y) / count);
        let (xx, xy) = (sum(&|(x, _)| (x - middle).powi(2)), sum(&|(x, y)| (x - middle) * (y - mean)));
        Self { middle, mean, slope: if xx > 0.0 { xy / xx } else { 0.0 } }
    }

    fn at(&self, bin: usize) -> f32 {
        (self.mean + self.slope * (bin as f64 - self.middle)) as f32
    }
}

/// The concordance of two lines, each without its first `skip` bins. None if they have too few bins in common, or if neither shows a
/// queue.
fn concordance((x, skip_x): (&Line, usize), (y, skip_y): (&Line, usize)) -> Option<f64> {
    let sum =
        |x: &[f32], y: &[f32]| dot(x.get(skip_x..).unwrap_or_default(), y.get(skip_y..).unwrap_or_default());
    let n = sum(&x.there, &y.there);
    if n < LEAST {
        return None;
    }
    let (mx, my) = (sum(&x.delay, &y.there) / n, sum(&x.there, &y.delay) / n);
    let (vx, vy) = (sum(&x.square, &y.there) / n - mx * mx, sum(&x.there, &y.square) / n - my * my);
    let cov = sum(&x.delay, &y.delay) / n - mx * my;
    // Sums of f32 are rounded: where the common bins are seconds away from the mean of all, a variance may come out below 0.
    let (vx, vy) = (vx.max(0.0), vy.max(0.0));
    (vx.max(vy) >= SPREAD * SPREAD).then(|| (2.0 * cov / (vx + vy)).clamp(-1.0, 1.0))
}

/// The sum of the products of as many as both have, in lanes that the compiler puts into vectors.
fn dot(x: &[f32], y: &[f32]) -> f64 {
    let len = x.len().min(y.len());
    let ((x, x_rest), (y, y_rest)) = (x[..len].as_chunks::<LANES>(), y[..len].as_chunks::<LANES>());
    let mut sums = [0.0_f32; LANES];
    for (x, y) in x.iter().zip(y) {
        sums.iter_mut().zip(x).zip(y).for_each(|((sum, x), y)| *sum += x * y);
    }
    let rest = x_rest.iter().zip(y_rest).map(|(x, y)| x * y);
    sums.into_iter().chain(rest).map(f64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const PATHS: (PathId, PathId) = (PathId(0), PathId(1));

    /// Ten seconds of samples every 20 ms: delays of both paths in ms, of what left `lag` apart.
    fn likeness(delays: impl Fn(u64) -> (u64, u64), lag: u64, rtts: [u64; 2]) -> Option<f64> {
        let mut c = Concordance::default();
        for n in 0..500 {
            let (a, b) = delays(n);
            c.on_delay(PATHS.0, Instant::ZERO + MS(1000 + 20 * n), MS(a), MS(rtts[0]));
            c.on_delay(PATHS.1, Instant::ZERO + MS(1000 + 20 * n + lag), MS(b), MS(rtts[1]));
        }
        c.likeness(Instant::ZERO + MS(11_000), Instant::ZERO + MS(1000), PATHS)
    }

    #[test]
    fn one_queue_is_one_and_of_twice_the_amplitude_is_less() {
        let saw = |n: u64| n % 60;
        assert!(likeness(|n| (saw(n), saw(n) + 7), 0, [50, 50]).is_some_and(|c| c > 0.99));
        // cov = 2v, variances v and 4v
        let twice = likeness(|n| (saw(n), 2 * saw(n)), 0, [50, 50]);
        assert!(twice.is_some_and(|c| (c - 0.8).abs() < 0.01), "{twice:?}");
    }

    /// Each rises by 80 ms in ten seconds, and varies by a few milliseconds in a way of its own.
    #[test]
    fn two_queues_that_fill_up_in_the_same_seconds_are_strangers() {
        let strangers = likeness(|n| (n * 80 / 500 + n % 10, n * 80 / 500 + n / 10 % 10), 0, [50, 50]);
        assert!(strangers.is_some_and(|c| c.abs() < 0.2), "{strangers:?}");
    }

    #[test]
    fn opposites_are_below_zero_and_strangers_about_zero() {
        let saw = |n: u64| n % 10;
        let opposite = likeness(|n| (n % 100, 99 - n % 100), 0, [50, 50]);
        assert!(opposite.is_some_and(|c| c < -0.7), "{opposite:?}");
        let strangers = likeness(|n| (saw(n), n / 10 % 10), 0, [50, 50]);
        assert!(strangers.is_some_and(|c| c.abs() < 0.2), "{strangers:?}");
    }

    #[test]
    fn a_lag_is_found_up_to_the_difference_of_the_round_trips() {
        let saw = |n: u64| n % 30;
        let of = |rtts| likeness(|n| (saw(n), saw(n)), 200, rtts);
        assert!(of([50, 300]).is_some_and(|c| c > 0.95), "{:?}", of([50, 300]));
        assert!(of([50, 60]).is_some_and(|c| c < 0.8), "{:?}", of([50, 60]));
    }

    /// It rises for 30 ms and falls for 30, and packets meet it 25 and 35 ms apart.
    #[test]
    fn few_packets_tell_of_a_queue_that_changes_between_them() {
        let queue = |ms: u64| MS((ms % 60).min(60 - ms % 60));
        let mut c = Concordance::default();
        for (path, step) in [(PATHS.0, 25), (PATHS.1, 35)] {
            for ms in (1000..11_000).step_by(step) {
                c.on_delay(path, Instant::ZERO + MS(ms), queue(ms), MS(50));
            }
        }
        let alike = c.likeness(Instant::ZERO + MS(11_000), Instant::ZERO + MS(1000), PATHS);
        assert!(alike.is_some_and(|c| c > 0.99), "{alike:?}");
    }

    /// Packets met the queue at different times until it grew by half a minute, and opposite waits since.
    #[test]
    fn likeness_stays_within_its_bounds_where_rounding_shows() {
        let us = Duration::from_micros;
        let mut c = Concordance::default();
        for n in 0..2000 {
            let (at, wait) = (Instant::ZERO + MS(1000 + 5 * n), us(997 * n % 1777));
            match n < 1000 {
                true => c.on_delay(PathId((n % 2) as u16), at, wait, MS(50)),
                false => [(PATHS.0, MS(30_000) + wait), (PATHS.1, MS(30_002) - wait)]
                    .iter()
                    .for_each(|(path, wait)| c.on_delay(*path, at, *wait, MS(50))),
            }
        }
        let alike = c.likeness(Instant::ZERO + MS(11_000), Instant::ZERO + MS(1000), PATHS);
        assert!(alike.is_some_and(|c| (-1.0..=1.0).contains(&c)), "{alike:?}");
    }

    #[test]
    fn nothing_is_told_without_a_queue_or_samples() {
        assert_eq!(likeness(|_| (3, 3), 0, [50, 50]), None);
        let mut c = Concordance::default();
        c.on_delay(PATHS.0, Instant::ZERO, MS(1), MS(50));
        assert_eq!(c.likeness(Instant::ZERO + MS(500), Instant::ZERO, PATHS), None);
    }
}
