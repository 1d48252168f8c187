//! What an ensemble says in one number.

use super::Ensemble;
use crate::results::{Run, Summary};
use crate::spec::{Cell, Metric, Selector, Statistic, What, beside};

/// One number of every run in the cell labelled `cell`, in the order of seeds.
pub fn values(selector: &Selector, cell: &Cell, (experiment, runs): Ensemble<'_>) -> Vec<f64> {
    let below = selector.over_cell.as_ref().map(|other| beside(&experiment.cells, cell, other));
    let value = |run: &Run| {
        let value = number(&selector.what, run, (experiment, runs))?;
        let Some(over) = &selector.over else { return Some(value) };
        let other = match below {
            Some(cell) => {
                runs.iter().find(|r| cell.is_some_and(|c| c.label == r.cell) && r.seed == run.seed)?
            }
            None => run,
        };
        Some(value / number(over, other, (experiment, runs))?).filter(|ratio| ratio.is_finite())
    };
    runs.iter().filter(|r| r.cell == cell.label).filter_map(value).collect()
}

/// One number of `run`; harm needs the run with the same seed in which the flow is alone.
fn number(what: &What, run: &Run, (experiment, runs): Ensemble<'_>) -> Option<f64> {
    let Some(solo) = &what.solo else { return run.value(what) };
    let cell = experiment.cells.iter().find(|c| c.label == run.cell)?;
    let label = &beside(&experiment.cells, cell, solo)?.label;
    let alone = runs.iter().find(|r| r.cell == *label && r.seed == run.seed)?;
    let goodput = What { metric: Metric::Goodput, ..what.clone() };
    Some(1.0 - run.value(&goodput)? / alone.value(&goodput)?)
}

/// A statistic of `values` and half the width of its confidence interval.
pub fn statistic(
    statistic: Statistic,
    within: Option<(f64, f64)>,
    values: &[f64],
) -> Option<(f64, Option<f64>)> {
    let s = Summary::of(values)?;
    Some(match statistic {
        Statistic::Mean | Statistic::Spearman => (s.mean, s.ci95),
        Statistic::GeometricMean => {
            let mean = s.geometric_mean?;
            (mean, s.log_ci95.map(|l| mean * l.sinh()))
        }
        Statistic::Median => (s.median, None),
        Statistic::Sd if s.n < 2 => return None,
        Statistic::Sd => (s.sd, None),
        Statistic::Min => (s.min, None),
        Statistic::Max => (s.max, None),
        Statistic::ShareWithin => {
            let (low, high) = within?;
            let share = values.iter().filter(|v| (low..=high).contains(*v)).count() as f64 / s.n as f64;
            (share, None)
        }
    })
}

impl Statistic {
    /// Whether it speaks of a typical run.
    pub(super) fn is_average(self) -> bool {
        matches!(self, Self::Mean | Self::GeometricMean | Self::Median)
    }
}

/// Spearman's rank correlation of `values` with their order; ties share their mean rank.
pub fn spearman(values: &[f64]) -> f64 {
    let rank = |v: f64| {
        let below = values.iter().filter(|x| **x < v).count() as f64;
        let equal = values.iter().filter(|x| **x == v).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (i, v) in values.iter().enumerate() {
        let (a, b) = (i as f64 - middle, rank(*v) - middle);
        (both, first, second) = (both + a * b, first + a * a, second + b * b);
    }
    if second == 0.0 { 0.0 } else { both / (first * second).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[1.0, 2.0, 5.0]), 1.0);
        assert_eq!(spearman(&[3.0, 2.0, 1.0]), -1.0);
        // Ranks 1 3 2 4: 1 − 6 · 2 / (4 · 15).
        assert!((spearman(&[1.0, 7.0, 5.0, 9.0]) - 0.8).abs() < 1e-12);
        assert_eq!(spearman(&[2.0, 2.0]), 0.0);
    }
}
