//! What an ensemble says in one number.

use super::Ensemble;
use crate::judge::Interval;
use crate::results::{Run, Summary};
use crate::spec::{Cell, Metric, Selector, Statistic, What, beside};

/// One number of every run in the cell labelled `cell`, in the order of seeds.
pub fn values(selector: &Selector, cell: &Cell, ensemble: Ensemble<'_>) -> Vec<f64> {
    let runs = ensemble.1.iter().filter(|r| r.cell == cell.label);
    runs.filter_map(|run| value(selector, run, cell, ensemble)).collect()
}

/// One number of `run`, which is of `cell`. What it is compared with is in runs with the same seed.
pub fn value(selector: &Selector, run: &Run, cell: &Cell, ensemble: Ensemble<'_>) -> Option<f64> {
    let value = number(&selector.what, run, ensemble)?;
    let Some(over) = &selector.over else { return Some(value) };
    let other = match &selector.over_cell {
        Some(name) => {
            let below = &beside(&ensemble.0.cells, cell, name)?.label;
            ensemble.1.iter().find(|r| r.cell == *below && r.seed == run.seed)?
        }
        None => run,
    };
    Some(value / number(over, other, ensemble)?).filter(|ratio| ratio.is_finite())
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

/// Of every run in the cell 1 if all parts lie in `within`, else 0: each of several flows over the mean of them,
/// or each path of one flow over `over`.
pub fn all_within(selector: &Selector, within: (f64, f64), cell: &Cell, (_, runs): Ensemble<'_>) -> Vec<f64> {
    let parts = parts(&selector.what, cell);
    let value = |run: &Run| {
        let values: Vec<f64> = parts.iter().map(|what| run.value(what)).collect::<Option<_>>()?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let below = selector.over.as_ref().map_or(Some(mean), |over| run.value(over))?;
        let inside = |v: &f64| (within.0..=within.1).contains(&(v / below));
        Some(f64::from(u8::from(values.iter().all(inside))))
    };
    runs.iter().filter(|r| r.cell == cell.label).filter_map(value).collect()
}

/// Each of several flows, or each path of one.
fn parts(what: &What, cell: &Cell) -> Vec<What> {
    match &what.flows[..] {
        [flow] => {
            let paths = cell.spec.flow.iter().find(|f| f.name == *flow).map_or(0, |f| f.paths.len());
            (0..paths).map(|path| What { path: Some(path), ..what.clone() }).collect()
        }
        flows => flows.iter().map(|flow| What { flows: vec![flow.clone()], ..what.clone() }).collect(),
    }
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
        Statistic::ShareAllWithin => (s.mean, None),
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

/// Confidence interval, of `level`, of the rank correlation of the cells' means with their order, by drawing runs again
/// (percentiles of 1,000 draws); `cells` have a value per seed each.
pub fn spearman_interval(cells: &[Vec<f64>], level: f64) -> Interval {
    const DRAWS: usize = 1_000;
    let runs = cells.iter().map(Vec::len).min().unwrap_or(0).max(1);
    let mut state = 0u64;
    let mut draws: Vec<f64> = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let drawn: Vec<usize> = (0..runs).map(|_| (splitmix(&mut state) % runs as u64) as usize).collect();
        let mean = |values: &Vec<f64>| drawn.iter().filter_map(|n| values.get(*n)).sum::<f64>() / runs as f64;
        draws.push(spearman(&cells.iter().map(mean).collect::<Vec<_>>()));
    }
    draws.sort_by(f64::total_cmp);
    let tail = (DRAWS as f64 * (1.0 - level) / 2.0) as usize;
    Interval { low: draws[tail], high: draws[DRAWS - tail - 1] }
}

/// The next of a fixed sequence of numbers (Steele, Lea and Flood's SplitMix64).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
    fn a_rank_correlation_is_as_sure_as_its_cells_are_apart() {
        let apart: Vec<Vec<f64>> = (0..5).map(|n| vec![f64::from(n), f64::from(n) + 0.5]).collect();
        assert_eq!(spearman_interval(&apart, 0.9), Interval { low: 1.0, high: 1.0 });
        let noisy: Vec<Vec<f64>> = (0..5).map(|n| vec![f64::from(n), 9.0 - 3.0 * f64::from(n)]).collect();
        let interval = spearman_interval(&noisy, 0.9);
        assert!(interval.low < 0.0 && interval.high > 0.5, "{interval:?}");
    }

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[1.0, 2.0, 5.0]), 1.0);
        assert_eq!(spearman(&[3.0, 2.0, 1.0]), -1.0);
        // Ranks 1 3 2 4: 1 − 6 · 2 / (4 · 15).
        assert!((spearman(&[1.0, 7.0, 5.0, 9.0]) - 0.8).abs() < 1e-12);
        assert_eq!(spearman(&[2.0, 2.0]), 0.0);
    }
}
