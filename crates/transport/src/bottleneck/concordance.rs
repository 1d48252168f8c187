//! Concordance of queueing delays: paths through one queue wait the same time in it.
//!
//! Of two paths the delays of packets that left at about the same time are compared, in bins in which both have some: Lin's
//! coefficient of concordance without its term for the means, which base delays and clocks move
//! (L. I. Lin, "A Concordance Correlation Coefficient to Evaluate Reproducibility", Biometrics 1989):
//!
//! `c = 2 · cov(x, y) / (var(x) + var(y)) = 1 − var(x − y) / (var(x) + var(y))`
//!
//! Unlike a correlation it asks for the same amplitude as well. What leaves at one time does not meet the queue at one time:
//! of all lags up to the difference of the round trips the best one counts.

use polypath_wire::{Duration, Instant, PathId};

use super::detector::Detector;
use super::series::{BIN, Series};
use crate::path_map::{OfPath, PathMap};

/// Longest time that is looked back.
const WINDOW: Duration = Duration::from_secs(10);
/// Widths of the bins that are tried, in bins of a series.
const WIDTHS: [u64; 5] = [1, 2, 4, 8, 16];
/// Share of the bins that must have a delay; wider ones are tried otherwise.
const FILLED: f64 = 0.6;
/// Fewest bins that both must have.
const LEAST: f64 = 40.0;
/// Smallest standard deviation, ms: below it there is no queue to compare.
const SPREAD: f64 = 0.4;
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

    fn likeness(&mut self, now: Instant, since: Instant, (a, b): (PathId, PathId)) -> Option<f64> {
        let (a, b) = (self.paths.get(a)?, self.paths.get(b)?);
        let from = since.max(now - WINDOW);
        let lag = (a.rtt - b.rtt).max(b.rtt - a.rtt).max(LAG);
        WIDTHS.iter().find_map(|width| compare(a, b, (from, now), *width, lag))
    }
}

/// The best concordance within `lag`, if bins of this width are filled well enough.
fn compare(a: &Path, b: &Path, (from, to): (Instant, Instant), width: u64, lag: Duration) -> Option<f64> {
    let [x, y] = [a, b].map(|path| path.series.means(from, to, width));
    let filled = |line: &[f32]| line.iter().filter(|v| !v.is_nan()).count() as f64 / line.len() as f64;
    if filled(&x).min(filled(&y)) < FILLED {
        return None;
    }
    let lags = lag.0.div_ceil(BIN.0 * width) as usize;
    let ahead = (0..=lags).map(|l| concordance(x.get(l..).unwrap_or_default(), &y));
    let behind = (1..=lags).map(|l| concordance(&x, y.get(l..).unwrap_or_default()));
    ahead.chain(behind).flatten().reduce(f64::max)
}

/// The concordance of two series; none if there is too little of them, or no queue.
fn concordance(x: &[f32], y: &[f32]) -> Option<f64> {
    let both = x.iter().zip(y).filter(|(x, y)| !x.is_nan() && !y.is_nan());
    let (mut n, mut sx, mut sy, mut sxx, mut syy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in both {
        let (x, y) = (f64::from(*x), f64::from(*y));
        n += 1.0;
        sx += x;
        sy += y;
        sxx += x * x;
        syy += y * y;
        sxy += x * y;
    }
    let (vx, vy, cov) = (sxx / n - sx * sx / n / n, syy / n - sy * sy / n / n, sxy / n - sx * sy / n / n);
    (n >= LEAST && vx.max(vy) >= SPREAD * SPREAD).then(|| 2.0 * cov / (vx + vy))
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

    #[test]
    fn nothing_is_told_without_a_queue_or_samples() {
        assert_eq!(likeness(|_| (3, 3), 0, [50, 50]), None);
        let mut c = Concordance::default();
        c.on_delay(PATHS.0, Instant::ZERO, MS(1), MS(50));
        assert_eq!(c.likeness(Instant::ZERO + MS(500), Instant::ZERO, PATHS), None);
    }
}
