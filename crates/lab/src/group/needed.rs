//! Which cells the expectations of a group need.

use std::collections::BTreeSet;

use crate::spec::{Cell, Expect, Experiment, Statistic, beside, chosen};

/// Labels of the cells that expectations need, of each of `experiments`, which are all that name one another as nulls.
pub(super) fn needed(experiments: &[&Experiment]) -> Vec<BTreeSet<String>> {
    let nulls: BTreeSet<String> =
        experiments.iter().flat_map(|e| &e.spec.expect).filter_map(elsewhere).collect();
    experiments.iter().map(|experiment| of_one(experiment, &nulls)).collect()
}

/// Leaves of `experiments` only those cells; figures have no data then, so they go too.
pub(super) fn reduce(experiments: &mut [Experiment]) {
    let needed = needed(&experiments.iter().collect::<Vec<_>>());
    for (experiment, needed) in std::iter::zip(experiments, needed) {
        experiment.spec.figure.clear();
        experiment.cells.retain(|cell| needed.contains(&cell.label));
        for cell in &mut experiment.cells {
            cell.spec.expect.clone_from(&experiment.spec.expect);
            cell.spec.figure.clear();
        }
    }
}

/// The null of `expect`, if it is in another experiment.
fn elsewhere(expect: &Expect) -> Option<String> {
    expect.null.clone().filter(|null| null.contains('/'))
}

/// Those that expectations of `experiment` and `nulls` of others need.
fn of_one(experiment: &Experiment, nulls: &BTreeSet<String>) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for null in nulls {
        let (name, label) = null.split_once(':').unwrap_or((null, ""));
        if name == experiment.name {
            needed.extend(labels(chosen(&experiment.cells, Some(label).filter(|l| !l.is_empty()))));
        }
    }
    for expect in &experiment.spec.expect {
        needed.extend(of(expect, &experiment.cells));
    }
    needed
}

fn of(expect: &Expect, cells: &[Cell]) -> BTreeSet<String> {
    let steps = expect.ascending.iter().flat_map(|step| chosen(cells, Some(step)));
    let mut named: Vec<&Cell> = steps.collect();
    let wanted =
        [expect.min, expect.max, expect.published].iter().any(Option::is_some) || expect.within.is_some();
    if named.is_empty() || wanted && expect.of.statistic != Statistic::Spearman {
        named.extend(chosen(cells, expect.of.cell.as_deref()));
    }
    let others = [&expect.null, &expect.of.over_cell, &expect.of.solo];
    let others = others.into_iter().flatten().filter(|name| !name.contains('/'));
    let beside = others.flat_map(|name| named.iter().filter_map(|cell| beside(cells, cell, name)));
    labels(beside.chain(named.iter().copied()))
}

fn labels<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> BTreeSet<String> {
    cells.into_iter().map(|cell| cell.label.clone()).collect()
}
