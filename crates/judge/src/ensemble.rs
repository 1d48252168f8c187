//! Ensembles of one number: where their mean lies, where single runs and means of a few lie.

use statrs::distribution::{Beta, ContinuousCDF, Normal, StudentsT};

use super::{Answer, Interval, Side};
use crate::Summary;

/// This many runs reach from end to end over 95 % of all: (n − 1)/(n + 1).
pub(super) const ENOUGH: usize = 39;
/// What of all runs lies beyond each end of where 95 % lie.
pub(super) const TAIL: f64 = 0.025;
/// A value outside of all runs and farther from the median than this number of quartile distances is taken to be impossible in a run:
/// four standard deviations of a normal distribution.
pub(super) const FAR: f64 = 6.0;

/// What kind of number it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Differences count.
    Linear,
    /// A ratio: its scatter is of the logarithm, and the mean is the arithmetic one.
    Ratio,
    /// The same, with the geometric mean.
    Geometric,
    /// 1 if something holds in a run, else 0.
    Share,
}

/// The runs of one number, as the rule needs them.
#[derive(Clone, PartialEq, Debug)]
pub struct Ensemble {
    scale: Scale,
    summary: Summary,
    sorted: Vec<f64>,
}

impl Ensemble {
    /// Of `values`; `None` if there are none.
    pub fn of(scale: Scale, values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self { scale, summary: Summary::of_sorted(values, &sorted)?, sorted })
    }

    /// Its mean, geometric where that is asked for; of a share, the share.
    pub fn mean(&self) -> f64 {
        match self.scale {
            Scale::Geometric => self.summary.geometric_mean.unwrap_or(self.summary.mean),
            _ => self.summary.mean,
        }
    }

    /// Half of its runs lie below; of a share, the share. A single run that goes astray does not move it.
    pub fn middle(&self) -> f64 {
        if self.scale == Scale::Share { self.mean() } else { self.summary.median }
    }

    /// Confidence interval of the mean with `level`, 0 to 1: Student's t, of shares Clopper and Pearson's. Of a
    /// single run it is everything.
    pub fn confidence(&self, level: f64) -> Interval {
        let s = &self.summary;
        let t = |sd: f64| half_width(s.n, level, sd / (s.n as f64).sqrt());
        match self.scale {
            Scale::Share => share(self.hits(), s.n, level),
            Scale::Geometric => match logarithms(s) {
                Some((mean, sd)) => Interval::around(mean, t(sd)).exp(),
                None => Interval::around(s.mean, t(s.sd)),
            },
            _ => Interval::around(s.mean, t(s.sd)),
        }
    }

    /// Where 95 % of means of `k` further runs lie. One more run lies between the r-th smallest and the r-th largest of n with
    /// probability (n + 1 − 2r)/(n + 1), however runs scatter. Of several, or beside fewer than 39, the prediction interval of the
    /// normal distribution, for ratios of the logarithm. Of a share, the shares with a chance of 5 % or more.
    pub fn means_of(&self, k: u32) -> Interval {
        let s = &self.summary;
        if self.scale == Scale::Share {
            let (all, none) = (self.mean().powf(f64::from(k)), (1.0 - self.mean()).powf(f64::from(k)));
            let at = |there: bool| f64::from(u8::from(there));
            return Interval { low: at(none < 2.0 * TAIL), high: at(all >= 2.0 * TAIL) };
        }
        if k <= 1 && s.n >= ENOUGH {
            let rank = (TAIL * (s.n + 1) as f64).floor() as usize;
            return Interval { low: self.sorted[rank - 1], high: self.sorted[s.n - rank] };
        }
        let width =
            |sd: f64| half_width(s.n, 0.95, sd * (1.0 / f64::from(k.max(1)) + 1.0 / s.n as f64).sqrt());
        match logarithms(s).filter(|_| self.scale != Scale::Linear) {
            Some((mean, sd)) => Interval::around(mean, width(sd)).exp(),
            None => Interval::around(s.mean, width(s.sd)),
        }
    }

    /// Whether the mean of `k` further runs may be `value`: 2.5 % of them or more lie as far out, or farther. `level` is of the
    /// confidence interval of that share.
    pub fn may_give(&self, value: f64, k: u32, level: f64) -> Answer {
        let n = self.sorted.len();
        if self.scale == Scale::Share {
            let hits = if value >= 0.5 { self.hits() } else { n - self.hits() };
            let needed = (2.0 * TAIL).powf(1.0 / f64::from(k.max(1)));
            return share(hits, n, level).is_beside(Side::Above, needed);
        }
        if k > 1 {
            return self.means_of(k).contains(value).into();
        }
        let (below, above) = (
            self.sorted.iter().filter(|v| **v <= value).count(),
            self.sorted.iter().filter(|v| **v >= value).count(),
        );
        let beyond = below.min(above);
        if beyond == 0 && self.is_far(value) {
            return Answer::No;
        }
        share(beyond, n, level).is_beside(Side::Above, TAIL)
    }

    /// Whether `value`, beyond all runs, is [`FAR`] out.
    fn is_far(&self, value: f64) -> bool {
        let n = self.sorted.len();
        let at = |v: f64| if self.is_logarithmic() { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let quartile = self.sorted[if value > self.summary.median { n - 1 - n / 4 } else { n / 4 }];
        let (middle, quartile) = (at(self.summary.median), at(quartile));
        n >= ENOUGH && (at(value) - middle).abs() > FAR * (quartile - middle).abs()
    }

    /// Whether its mean lies on `side` of the mean of `null` by more than `margin`: Welch's interval of the difference, for
    /// ratios of the logarithms.
    pub fn is_beside(&self, null: &Self, side: Side, margin: f64, level: f64) -> Answer {
        let by_logarithms = self.is_logarithmic() && null.is_logarithmic();
        let (a, b) = (self.moments(by_logarithms), null.moments(by_logarithms));
        let (va, vb) = (a.1.powi(2) / a.2, b.1.powi(2) / b.2);
        let freedom = (va + vb).powi(2) / (va.powi(2) / (a.2 - 1.0) + vb.powi(2) / (b.2 - 1.0));
        let half = match va + vb > 0.0 {
            true => half_width(2.max((freedom + 1.0).round() as usize), level, (va + vb).sqrt()),
            false => 0.0,
        };
        let middle = null.middle();
        let far = match by_logarithms {
            true => (side.beyond(middle, margin).max(f64::MIN_POSITIVE) / middle).ln(),
            false => side.beyond(0.0, margin),
        };
        Interval::around(a.0 - b.0, half).is_beside(side, far)
    }

    /// Whether the means of this ensemble and of `null` differ by less than `margin`: by two one-sided tests ([`Self::is_beside`]),
    /// for shares by the confidence interval of the difference.
    pub fn is_like(&self, null: &Self, margin: f64, level: f64) -> Answer {
        if self.scale == Scale::Share {
            let of = |e: &Self| (e.hits(), e.sorted.len());
            return difference(of(self), of(null), level).is_in(Interval::around(0.0, margin));
        }
        let beside = |side| self.is_beside(null, side, margin, level);
        !beside(Side::Above).or(beside(Side::Below))
    }

    /// The same scatter around another mean.
    #[must_use]
    pub fn moved_to(&self, mean: f64) -> Self {
        let mean = if self.scale == Scale::Share { mean.clamp(0.0, 1.0) } else { mean };
        let geometric_mean = self.summary.geometric_mean.map(|_| mean);
        Self { summary: Summary { mean, geometric_mean, ..self.summary }, ..self.clone() }
    }

    /// Share of the means of `k` runs that lie in `interval`, 0 to 1.
    pub fn share_in(&self, interval: Interval, k: u32) -> f64 {
        if self.scale == Scale::Share {
            let (all, none) = (self.mean().powi(k as i32), (1.0 - self.mean()).powi(k as i32));
            return all * f64::from(u8::from(interval.contains(1.0)))
                + none * f64::from(u8::from(interval.contains(0.0)));
        }
        let (mean, sd, _) = self.moments(self.is_logarithmic());
        let at = |v: f64| if self.is_logarithmic() { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let sd = sd / f64::from(k.max(1)).sqrt();
        match Normal::new(mean, sd) {
            Ok(normal) if sd > 0.0 => normal.cdf(at(interval.high)) - normal.cdf(at(interval.low)),
            _ => f64::from(u8::from(interval.contains(self.mean()))),
        }
    }

    /// Whether it is of ratios.
    pub fn is_ratio(&self) -> bool {
        matches!(self.scale, Scale::Ratio | Scale::Geometric)
    }

    fn hits(&self) -> usize {
        self.sorted.iter().filter(|v| **v > 0.5).count()
    }

    fn is_logarithmic(&self) -> bool {
        self.is_ratio() && logarithms(&self.summary).is_some()
    }

    /// Mean, standard deviation and number of runs; of the logarithms if asked for.
    fn moments(&self, by_logarithms: bool) -> (f64, f64, f64) {
        let s = &self.summary;
        let (mean, sd) = match self.scale {
            Scale::Share => (s.mean, (s.mean * (1.0 - s.mean)).sqrt()),
            _ => logarithms(s).filter(|_| by_logarithms).unwrap_or((s.mean, s.sd)),
        };
        (mean, sd, s.n as f64)
    }
}

/// Mean and standard deviation of the logarithms.
fn logarithms(s: &Summary) -> Option<(f64, f64)> {
    Some((s.geometric_mean?.ln(), s.log_sd?))
}

/// Half the width of Student's interval with n − 1 degrees of freedom; infinite for one run.
pub(super) fn half_width(n: usize, level: f64, error: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(t) => t.inverse_cdf(f64::midpoint(1.0, level)) * error,
        Err(_) => f64::INFINITY,
    }
}

/// Clopper and Pearson's interval of a share.
pub(super) fn share(hits: usize, n: usize, level: f64) -> Interval {
    let tail = (1.0 - level) / 2.0;
    let at = |a: usize, b: usize, q: f64| Beta::new(a as f64, b as f64).map(|beta| beta.inverse_cdf(q));
    Interval {
        low: if hits == 0 { 0.0 } else { at(hits, n - hits + 1, tail).unwrap_or(0.0) },
        high: if hits == n { 1.0 } else { at(hits + 1, n - hits, 1.0 - tail).unwrap_or(1.0) },
    }
}

/// Interval of the difference of two shares, hits and runs of each, from the intervals of both (Newcombe's, of Clopper and Pearson's).
pub(super) fn difference(a: (usize, usize), b: (usize, usize), level: f64) -> Interval {
    let of = |(hits, n): (usize, usize)| (hits as f64 / n as f64, share(hits, n, level));
    let ((p, own), (q, other)) = (of(a), of(b));
    Interval {
        low: p - q - (p - own.low).hypot(other.high - q),
        high: p - q + (own.high - p).hypot(q - other.low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LEVEL;

    fn of(scale: Scale, values: &[f64]) -> Ensemble {
        Ensemble::of(scale, values).expect("there are values")
    }

    fn holds(hits: usize, n: usize) -> Ensemble {
        of(Scale::Share, &(0..n).map(|i| f64::from(u8::from(i < hits))).collect::<Vec<_>>())
    }

    #[test]
    fn means_of_further_runs_lie_in_the_prediction_interval() {
        // Mean 5, sd 2.13809, t(0.975, 7) = 2.364624: half width 2.364624 · 2.13809 · √(1/k + 1/8).
        let e = of(Scale::Linear, &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((e.means_of(1).high - 5.0 - 5.362_402).abs() < 1e-4);
        assert!((e.means_of(8).high - 5.0 - 2.527_861).abs() < 1e-4);
        assert!(of(Scale::Ratio, &[3.0]).confidence(0.9).low.is_infinite());
    }

    /// 49 runs from 1.6 to 1.84 and one in which the other flow starves.
    fn with_a_stray_run() -> Ensemble {
        let mut values: Vec<f64> = (0..49).map(|n| 1.6 + 0.005 * f64::from(n)).collect();
        values.push(1_464.0);
        of(Scale::Ratio, &values)
    }

    #[test]
    fn one_further_run_lies_between_the_smallest_and_the_largest_of_many() {
        let null = with_a_stray_run();
        assert_eq!(null.means_of(1), Interval { low: 1.6, high: 1_464.0 });
        assert!(null.means_of(2).low < 1.0, "by the logarithms' normal distribution");
        assert!(null.mean() > 30.0 && null.middle() < 1.75);
        let many = of(Scale::Linear, &(1..=200).map(f64::from).collect::<Vec<_>>());
        assert_eq!(many.means_of(1), Interval { low: 5.0, high: 196.0 }, "the fifth of 200 from each end");
    }

    #[test]
    fn a_value_far_from_all_runs_is_none_of_theirs_and_one_near_the_last_is_open() {
        let null = with_a_stray_run();
        let gives = |value| null.may_give(value, 1, 0.975);
        assert_eq!(gives(1.72), Answer::Yes);
        assert_eq!(gives(1.02), Answer::No, "whatever the stray run says");
        assert_eq!(gives(1.59), Answer::Open, "50 runs cannot exclude that one in twenty is below them all");
        let many = of(Scale::Linear, &(1..=400).map(f64::from).collect::<Vec<_>>());
        let of_many = |value| many.may_give(value, 1, 0.975);
        assert_eq!((of_many(0.5), of_many(10.0), of_many(30.0)), (Answer::No, Answer::Open, Answer::Yes));
    }

    #[test]
    fn shares_have_exact_intervals() {
        // Clopper and Pearson, 90 %: 0 of 10 → 1 − 0.05^(1/10); 10 of 10 → 0.05^(1/10).
        let none = holds(0, 10).confidence(0.9);
        assert!(none.low == 0.0 && (none.high - 0.258_866).abs() < 1e-5, "{none:?}");
        let all = holds(10, 10);
        assert!((all.confidence(0.9).low - 0.741_134).abs() < 1e-5);
        assert_eq!(all.means_of(1), Interval { low: 1.0, high: 1.0 });
        assert_eq!(holds(5, 10).means_of(1), Interval { low: 0.0, high: 1.0 });
        let gives = |hits, n| holds(hits, n).may_give(1.0, 1, 0.975);
        assert_eq!((gives(0, 50), gives(0, 100), gives(20, 50)), (Answer::Open, Answer::No, Answer::Yes));
    }

    #[test]
    fn the_side_of_the_null_counts_from_the_margin_on() {
        let null = of(Scale::Linear, &[0.9, 1.0, 1.1, 1.0]);
        let ours = |mean: f64| of(Scale::Linear, &[mean - 0.01, mean, mean + 0.01]);
        let above = |mean| ours(mean).is_beside(&null, Side::Above, 0.2, 0.95);
        assert_eq!((above(2.0), above(1.0), above(1.2)), (Answer::Yes, Answer::No, Answer::Open));
        let stalled = of(Scale::Ratio, &[0.0, 0.3, 0.1]);
        let ratios = of(Scale::Ratio, &[0.9, 1.0, 1.1, 1.0]);
        let below = stalled.is_beside(&ratios, Side::Below, 0.2, 0.95);
        assert_eq!(below, Answer::Yes, "0 has no logarithm: both as they are");
    }

    #[test]
    fn ours_is_as_the_null_where_all_of_the_difference_lies_within_the_margin() {
        let null = of(Scale::Ratio, &[1.72, 1.74, 1.73, 1.71, 1.75]);
        let ours = |by: f64| of(Scale::Ratio, &[1.71, 1.69, 1.72, 1.73, 1.7].map(|v| v + by));
        let like = |by| ours(by).is_like(&null, 0.05, LEVEL);
        assert_eq!((like(0.0), like(0.06), like(0.3)), (Answer::Yes, Answer::Open, Answer::No));
        let share = |hits, n| holds(hits, n).is_like(&holds(0, 50), 0.2, LEVEL);
        // 0 of 50, 97.5 %: up to 1 − 0.0125^(1/50) = 0.084 each.
        assert_eq!((share(0, 50), share(7, 50), share(30, 50)), (Answer::Yes, Answer::Open, Answer::No));
        assert_eq!(share(0, 10), Answer::Open, "ten runs may hide 0.35");
    }
}
