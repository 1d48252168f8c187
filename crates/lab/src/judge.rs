//! What an ensemble says of a published value. The rule, which docs/experiments.md states in words:
//! a finding follows from the numbers alone, and nobody sets it by hand.

use std::fmt;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::results::Summary;

/// What is left open by rounding in print, reading off a plot, and header sizes: a published value
/// agrees with one this much apart from it, as a share of the published value.
pub const TOLERANCE: f64 = 0.05;

/// A single run that scatters by more than this, as a share of the published value, cannot tell one
/// claim from another.
pub const NOISE: f64 = 0.25;

/// What an ensemble says of a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A run like ours gives the published value, and runs scatter little enough to tell.
    Reproduced,
    /// Not the value, but the same side of what no effect would give.
    DirectionOnly,
    /// A run like ours may give the published value, and as well one far from it.
    NotIdentifiable,
    /// Neither the value nor its direction.
    Refuted,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::NotIdentifiable => "not identifiable",
            Self::Refuted => "refuted",
        })
    }
}

/// An interval, ends included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    fn contains(self, value: f64, slack: f64) -> bool {
        self.low - slack <= value && value <= self.high + slack
    }

    fn centre(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// What the judgement rests on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evidence {
    /// What the paper says.
    pub published: f64,
    /// 95 % confidence interval of our statistic (a point if it has none).
    pub ours: Interval,
    /// Where 95 % of single runs like ours lie, if the statistic is a mean of runs.
    pub single: Option<Interval>,
    /// Where 95 % of single runs lie in which nothing distinguishes the flows.
    pub null: Option<Interval>,
    /// What no effect would give: 1 for a ratio, the null's mean where there is a null.
    pub neutral: Option<f64>,
}

/// The finding.
pub fn judge(e: &Evidence) -> Finding {
    let slack = TOLERANCE * e.published.abs();
    let single = e.single.unwrap_or(e.ours);
    let noise = |interval: Interval| interval.half_width() > NOISE * e.published.abs();
    if single.contains(e.published, slack) {
        let told_apart = e.null.is_some_and(|null| !null.contains(e.published, slack));
        let near = (e.ours.centre() - e.published).abs() <= NOISE * e.published.abs();
        return if noise(single) && !(told_apart && near) {
            Finding::NotIdentifiable
        } else {
            Finding::Reproduced
        };
    }
    let same_side = e.neutral.is_some_and(|neutral| {
        // A value as good as neutral claims that there is no effect, and so no direction.
        (e.published > neutral + slack && e.ours.low > neutral)
            || (e.published < neutral - slack && e.ours.high < neutral)
    });
    if same_side { Finding::DirectionOnly } else { Finding::Refuted }
}

/// Where 95 % of further single runs lie, given the runs of `summary`: the prediction interval of the
/// normal distribution; for ratios (`logarithmic`) of their logarithm.
pub fn single_runs(summary: &Summary, logarithmic: bool) -> Interval {
    let n = summary.n as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(0.0, |t| t.inverse_cdf(0.975));
    let width = |sd: f64| t * sd * (1.0 + 1.0 / n).sqrt();
    match (summary.geometric_mean, summary.log_sd) {
        (Some(mean), Some(sd)) if logarithmic => {
            Interval { low: mean * (-width(sd)).exp(), high: mean * width(sd).exp() }
        }
        _ => Interval { low: summary.mean - width(summary.sd), high: summary.mean + width(summary.sd) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(published: f64, ours: (f64, f64), single: (f64, f64)) -> Evidence {
        let interval = |(low, high)| Interval { low, high };
        Evidence {
            published,
            ours: interval(ours),
            single: Some(interval(single)),
            null: None,
            neutral: Some(1.0),
        }
    }

    #[test]
    fn a_narrow_ensemble_around_the_value_reproduces_it() {
        assert_eq!(judge(&evidence(1.05, (0.99, 1.02), (0.94, 1.07))), Finding::Reproduced);
        // 5 % of the published value are left open.
        assert_eq!(judge(&evidence(1.05, (0.99, 1.00), (0.99, 1.00))), Finding::Reproduced);
    }

    #[test]
    fn where_a_run_can_give_anything_it_shows_nothing() {
        let wide = evidence(1.11, (1.05, 1.17), (0.7, 1.6));
        assert_eq!(judge(&wide), Finding::NotIdentifiable);
        // Unless runs without the effect never come near the value.
        let null = Some(Interval { low: 0.1, high: 0.3 });
        assert_eq!(judge(&Evidence { null, ..wide }), Finding::Reproduced);
        assert_eq!(
            judge(&Evidence { null: Some(Interval { low: 0.2, high: 2.4 }), ..wide }),
            Finding::NotIdentifiable
        );
    }

    #[test]
    fn a_wide_ensemble_far_from_the_value_shows_nothing_whatever_the_null() {
        let null = Some(Interval { low: 0.99, high: 1.01 });
        let far = Evidence { null, ..evidence(0.89, (0.53, 0.60), (0.3, 0.95)) };
        assert_eq!(judge(&far), Finding::NotIdentifiable);
    }

    #[test]
    fn another_value_has_a_direction_or_is_refuted() {
        assert_eq!(judge(&evidence(0.89, (0.36, 0.40), (0.2, 0.6))), Finding::DirectionOnly);
        assert_eq!(judge(&evidence(1.11, (0.10, 0.16), (0.07, 0.25))), Finding::Refuted);
        assert_eq!(judge(&evidence(1.02, (5.0, 9.0), (3.0, 11.0))), Finding::Refuted, "1.02 claims equality");
        let no_neutral = Evidence { neutral: None, ..evidence(0.89, (0.36, 0.40), (0.2, 0.6)) };
        assert_eq!(judge(&no_neutral), Finding::Refuted);
    }

    #[test]
    fn further_runs_lie_in_the_prediction_interval() {
        // Mean 5, sd 2.13809, t(0.975, 7) = 2.364624: half width 2.364624 · 2.13809 · √(9/8).
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        let interval = single_runs(&s, false);
        assert!((interval.high - 5.0 - 5.362_402).abs() < 1e-4, "{interval:?}");
        let one = single_runs(&Summary::of(&[3.0]).unwrap(), true);
        assert!((one.low - 3.0).abs() < 1e-12 && (one.high - 3.0).abs() < 1e-12);
    }
}
