//! Mean, scatter and ends of one number.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An ensemble of one number.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); `None` for one value.
    pub ci95: Option<f64>,
    /// Standard deviation of the sample.
    pub sd: f64,
    /// Geometric mean; `None` unless all are positive.
    pub geometric_mean: Option<f64>,
    /// Standard deviation of the logarithm.
    pub log_sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the logarithm.
    pub log_ci95: Option<f64>,
    /// 95 % confidence interval of the geometric mean, its lower and upper end.
    pub geometric_ci95: Option<(f64, f64)>,
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self::of_sorted(values, &sorted)
    }

    /// Of `values`, which are also there `sorted`.
    pub(crate) fn of_sorted(values: &[f64], sorted: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let t = quantile(n);
        let half_width = |sd: f64| t.map(|t| t * sd / (n as f64).sqrt());
        let (mean, sd) = mean_and_sd(values);
        let logs: Option<Vec<f64>> = values.iter().map(|v| (*v > 0.0).then(|| v.ln())).collect();
        let log = logs.map(|logs| mean_and_sd(&logs));
        let log_ci95 = log.and_then(|(_, sd)| half_width(sd));
        Some(Self {
            n,
            mean,
            ci95: half_width(sd),
            sd,
            geometric_mean: log.map(|(mean, _)| mean.exp()),
            log_sd: log.map(|(_, sd)| sd),
            log_ci95,
            geometric_ci95: log
                .zip(log_ci95)
                .map(|((mean, _), half)| ((mean - half).exp(), (mean + half).exp())),
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            min: sorted[0],
            max: sorted[n - 1],
        })
    }
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

/// t(0.975, n − 1).
fn quantile(n: usize) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, n.checked_sub(1).filter(|f| *f > 0)? as f64).ok()?;
    Some(t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_known_numbers() {
        // Worked out by hand: mean 5, squares 32 over 7, t(0.975, 7) = 2.364624.
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.median, s.min, s.max), (8, 5.0, 4.5, 2.0, 9.0));
        assert!((s.sd - 2.138_090).abs() < 1e-6);
        assert!((s.ci95.unwrap() - 2.364_624 * 2.138_090 / 8f64.sqrt()).abs() < 1e-5);
        let g = Summary::of(&[1.0, 4.0]).unwrap();
        assert!((g.geometric_mean.unwrap() - 2.0).abs() < 1e-12);
        // Logarithms 0 and 1.386294, sd 0.980258, t(0.975, 1) = 12.7062: half width 8.807262.
        let (low, high) = g.geometric_ci95.unwrap();
        assert!((low.ln() - (2f64.ln() - 8.807_262)).abs() < 1e-3 && (low * high - 4.0).abs() < 1e-6);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_summary() {
        assert_eq!(Summary::of(&[3.0]).unwrap().ci95, None);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[0.0, 1.0]).unwrap().geometric_mean, None);
    }
}
