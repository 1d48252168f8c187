//! What an ensemble says in one number.

use super::Ensemble;
use crate::metric::Read;
use crate::results::{Run, Summary};
use crate::spec::{Cell, Selector, Statistic, What, beside};

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

/// One number of `run`; harm needs the run with the same seed in which the flow is alone, and has something.
fn number(what: &What, run: &Run, (experiment, runs): Ensemble<'_>) -> Option<f64> {
    let Some(solo) = &what.solo else { return run.value(what) };
    let cell = experiment.cells.iter().find(|c| c.label == run.cell)?;
    let label = &beside(&experiment.cells, cell, solo)?.label;
    let alone = runs.iter().find(|r| r.cell == *label && r.seed == run.seed)?;
    let Read::Alone(harm, metric) = what.metric.def().read else { return None };
    let of = What { metric, ..what.clone() };
    Some(harm(run.value(&of)?, alone.value(&of)?)).filter(|harm| harm.is_finite())
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
