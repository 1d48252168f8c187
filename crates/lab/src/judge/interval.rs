//! Intervals of ensembles: where a mean lies, where means of a few further runs lie.

use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF, Normal, StudentsT};

use crate::results::Summary;

/// An interval, ends included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// So many runs reach from end to end over 95 % of all: (n − 1)/(n + 1).
const ENOUGH: usize = 39;

/// A side of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Greater.
    Above,
    /// Smaller.
    Below,
}

/// An ensemble of one number, as the rule needs it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ensemble {
    /// Differences count.
    Linear(Summary),
    /// Ratios: their scatter is of the logarithm, and the mean is the arithmetic one.
    Ratio(Summary),
    /// The same, with the geometric mean.
    Geometric(Summary),
    /// In how many runs something holds, of how many.
    Share {
        /// Runs in which it holds.
        hits: usize,
        /// All runs.
        n: usize,
    },
}

impl Interval {
    /// Whether `value` lies in it.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of its width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether all of it lies in `other`.
    pub fn within(self, other: Self) -> bool {
        other.contains(self.low) && other.contains(self.high)
    }

    /// Whether they have a value in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    fn around(centre: f64, half: f64) -> Self {
        Self { low: centre - half, high: centre + half }
    }

    fn exp(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp() }
    }
}

impl Side {
    /// On which side of `of` `value` lies, by more than `margin`.
    pub fn of(value: f64, of: f64, margin: f64) -> Option<Self> {
        match () {
            () if value > of + margin => Some(Self::Above),
            () if value < of - margin => Some(Self::Below),
            () => None,
        }
    }
}

impl Ensemble {
    /// Its mean, geometric where that is asked for; of a share, the share.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Linear(s) | Self::Ratio(s) => s.mean,
            Self::Geometric(s) => s.geometric_mean.unwrap_or(s.mean),
            Self::Share { hits, n } => *hits as f64 / *n as f64,
        }
    }

    /// Half of its runs lie below; of a share, the share. A single run that goes astray does not move it.
    pub fn middle(&self) -> f64 {
        match self {
            Self::Linear(s) | Self::Ratio(s) | Self::Geometric(s) => s.median,
            Self::Share { .. } => self.mean(),
        }
    }

    /// Confidence interval of the mean with `level`, 0 to 1: Student's t, of shares Clopper and Pearson's. Of a
    /// single run it is everything.
    pub fn confidence(&self, level: f64) -> Interval {
        let t = |n: usize, sd: f64| half_width(n, level, sd / (n as f64).sqrt());
        match *self {
            Self::Geometric(s) => match logarithms(&s) {
                Some((mean, sd)) => Interval::around(mean, t(s.n, sd)).exp(),
                None => Interval::around(s.mean, t(s.n, s.sd)),
            },
            Self::Linear(s) | Self::Ratio(s) => Interval::around(s.mean, t(s.n, s.sd)),
            Self::Share { hits, n } => share(hits, n, level),
        }
    }

    /// Where 95 % of means of `k` further runs lie. One more run lies between the smallest and the largest of n with
    /// probability (n − 1)/(n + 1), however runs scatter. Of several, or beside fewer than 39, the prediction interval of the
    /// normal distribution, for ratios of the logarithm. Of a share, the shares with a chance of 5 % or more.
    pub fn means_of(&self, k: u32) -> Interval {
        if let Self::Linear(s) | Self::Ratio(s) | Self::Geometric(s) = *self
            && k <= 1
            && s.n >= ENOUGH
        {
            return Interval { low: s.min, high: s.max };
        }
        let k = f64::from(k.max(1));
        let width = |n: usize, sd: f64| half_width(n, 0.95, sd * (1.0 / k + 1.0 / n as f64).sqrt());
        match *self {
            Self::Share { .. } => {
                let all = self.mean().powf(k) >= 0.05;
                let none = (1.0 - self.mean()).powf(k) >= 0.05;
                Interval { low: f64::from(u8::from(!none)), high: f64::from(u8::from(all)) }
            }
            Self::Linear(s) => Interval::around(s.mean, width(s.n, s.sd)),
            Self::Ratio(s) | Self::Geometric(s) => match logarithms(&s) {
                Some((mean, sd)) => Interval::around(mean, width(s.n, sd)).exp(),
                None => Interval::around(s.mean, width(s.n, s.sd)),
            },
        }
    }

    /// On which side of `null` its mean lies: Welch's test at 5 %, for ratios of the logarithms.
    pub fn side_of(&self, null: &Self) -> Option<Side> {
        let (a, b) = (self.moments(), null.moments());
        let (va, vb) = (a.1.powi(2) / a.2, b.1.powi(2) / b.2);
        let difference = a.0 - b.0;
        if va + vb <= 0.0 {
            return Side::of(difference, 0.0, 0.0);
        }
        let freedom = (va + vb).powi(2) / (va.powi(2) / (a.2 - 1.0) + vb.powi(2) / (b.2 - 1.0));
        let t = StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
        Side::of(difference, 0.0, t * (va + vb).sqrt())
    }

    /// On which side of `value` its mean lies (95 %).
    pub fn side_of_value(&self, value: f64) -> Option<Side> {
        let interval = self.confidence(0.95);
        match () {
            () if interval.low > value => Some(Side::Above),
            () if interval.high < value => Some(Side::Below),
            () => None,
        }
    }

    /// The same scatter around another mean.
    pub fn moved_to(&self, mean: f64) -> Self {
        let moved = |s: Summary| Summary { mean, geometric_mean: s.geometric_mean.map(|_| mean), ..s };
        match *self {
            Self::Linear(s) => Self::Linear(moved(s)),
            Self::Ratio(s) => Self::Ratio(moved(s)),
            Self::Geometric(s) => Self::Geometric(moved(s)),
            Self::Share { n, .. } => {
                Self::Share { hits: (mean.clamp(0.0, 1.0) * n as f64).round() as usize, n }
            }
        }
    }

    /// Share of the means of `k` runs that lie in `interval`, 0 to 1.
    pub fn share_in(&self, interval: Interval, k: u32) -> f64 {
        if let Self::Share { .. } = self {
            let (all, none) = (self.mean().powi(k as i32), (1.0 - self.mean()).powi(k as i32));
            return all * f64::from(u8::from(interval.contains(1.0)))
                + none * f64::from(u8::from(interval.contains(0.0)));
        }
        let (mean, sd, _) = self.moments();
        let logarithmic = self.is_logarithmic();
        let at = |v: f64| if logarithmic { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let sd = sd / f64::from(k.max(1)).sqrt();
        match Normal::new(mean, sd) {
            Ok(normal) if sd > 0.0 => normal.cdf(at(interval.high)) - normal.cdf(at(interval.low)),
            _ => f64::from(u8::from(interval.contains(self.mean()))),
        }
    }

    fn is_logarithmic(&self) -> bool {
        matches!(self, Self::Ratio(s) | Self::Geometric(s) if logarithms(s).is_some())
    }

    /// Mean, standard deviation and number of runs; of the logarithms for ratios.
    fn moments(&self) -> (f64, f64, f64) {
        match *self {
            Self::Share { n, .. } => {
                let q = self.mean();
                (q, (q * (1.0 - q)).sqrt(), n as f64)
            }
            Self::Linear(s) | Self::Ratio(s) | Self::Geometric(s) => {
                let (mean, sd) = logarithms(&s).filter(|_| self.is_logarithmic()).unwrap_or((s.mean, s.sd));
                (mean, sd, s.n as f64)
            }
        }
    }
}

/// Mean and standard deviation of the logarithms.
fn logarithms(s: &Summary) -> Option<(f64, f64)> {
    Some((s.geometric_mean?.ln(), s.log_sd?))
}

/// Half the width of Student's interval with n − 1 degrees of freedom; infinite for one run.
fn half_width(n: usize, level: f64, error: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, n as f64 - 1.0) {
        Ok(t) => t.inverse_cdf(f64::midpoint(1.0, level)) * error,
        Err(_) => f64::INFINITY,
    }
}

/// Clopper and Pearson's interval of a share.
fn share(hits: usize, n: usize, level: f64) -> Interval {
    let tail = (1.0 - level) / 2.0;
    let at = |a: usize, b: usize, q: f64| Beta::new(a as f64, b as f64).map(|beta| beta.inverse_cdf(q));
    Interval {
        low: if hits == 0 { 0.0 } else { at(hits, n - hits + 1, tail).unwrap_or(0.0) },
        high: if hits == n { 1.0 } else { at(hits + 1, n - hits, 1.0 - tail).unwrap_or(1.0) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_further_runs_lie_in_the_prediction_interval() {
        // Mean 5, sd 2.13809, t(0.975, 7) = 2.364624: half width 2.364624 · 2.13809 · √(1/k + 1/8).
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((Ensemble::Linear(s).means_of(1).high - 5.0 - 5.362_402).abs() < 1e-4);
        assert!((Ensemble::Linear(s).means_of(8).high - 5.0 - 2.527_861).abs() < 1e-4);
        assert!(Ensemble::Ratio(Summary::of(&[3.0]).unwrap()).confidence(0.9).low.is_infinite());
    }

    #[test]
    fn one_further_run_lies_between_the_smallest_and_the_largest_of_many() {
        // 49 runs from 1.6 to 1.84 and one in which the other flow starves.
        let mut values: Vec<f64> = (0..49).map(|n| 1.6 + 0.005 * f64::from(n)).collect();
        values.push(1_464.0);
        let null = Ensemble::Ratio(Summary::of(&values).unwrap());
        assert_eq!(null.means_of(1), Interval { low: 1.6, high: 1_464.0 });
        assert!(null.means_of(2).low < 1.0, "by the logarithms' normal distribution");
        assert!(null.mean() > 30.0 && null.middle() < 1.75);
    }

    #[test]
    fn shares_have_exact_intervals() {
        // Clopper and Pearson, 90 %: 0 of 10 → 1 − 0.05^(1/10); 10 of 10 → 0.05^(1/10).
        let none = Ensemble::Share { hits: 0, n: 10 }.confidence(0.9);
        assert!(none.low == 0.0 && (none.high - 0.258_866).abs() < 1e-5, "{none:?}");
        let all = Ensemble::Share { hits: 10, n: 10 };
        assert!((all.confidence(0.9).low - 0.741_134).abs() < 1e-5);
        assert_eq!(all.means_of(1), Interval { low: 1.0, high: 1.0 });
        assert_eq!(Ensemble::Share { hits: 5, n: 10 }.means_of(1), Interval { low: 0.0, high: 1.0 });
    }
}
