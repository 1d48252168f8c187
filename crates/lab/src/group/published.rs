//! A group without what no published value needs.

use std::collections::BTreeSet;

use crate::spec::{Cell, Expect, Experiment, beside, chosen};

/// Leaves of `experiments`, which are all that name one another as nulls, only expectations of published values and the
/// cells that these need; figures have no data then, so they go too.
pub(super) fn reduce(mut experiments: Vec<&mut Experiment>) {
    for experiment in &mut experiments {
        experiment.spec.expect.retain(|expect| expect.published.is_some());
        experiment.spec.figure.clear();
    }
    let nulls: BTreeSet<String> =
        experiments.iter().flat_map(|e| &e.spec.expect).filter_map(elsewhere).collect();
    for experiment in experiments {
        let needed = needed(experiment, &nulls);
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

/// The labels of the cells that expectations of `experiment` and `nulls` of others need.
fn needed(experiment: &Experiment, nulls: &BTreeSet<String>) -> BTreeSet<String> {
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
    let named = match &expect.ascending[..] {
        [] => chosen(cells, expect.of.cell.as_deref()),
        steps => steps.iter().flat_map(|step| chosen(cells, Some(step))).collect(),
    };
    let others = [&expect.null, &expect.of.over_cell, &expect.of.solo];
    let others = others.into_iter().flatten().filter(|name| !name.contains('/'));
    let beside = others.flat_map(|name| named.iter().filter_map(|cell| beside(cells, cell, name)));
    labels(beside.chain(named.iter().copied()))
}

fn labels<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> BTreeSet<String> {
    cells.into_iter().map(|cell| cell.label.clone()).collect()
}
