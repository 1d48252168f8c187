//! The nulls of one experiment that stand in others.

use std::collections::BTreeSet;

use super::asked;
use crate::results::Run;
use crate::run::{Keep, RunError};
use crate::seeds::SeedRange;
use crate::shelf::Shelf;
use crate::spec::{Experiment, LoadError, What, chosen};
use crate::stop::Stop;
use crate::sweep::sweep;

/// Experiments with only those cells that another names as nulls.
#[derive(Debug, Default)]
pub struct Nulls {
    parts: Vec<(Experiment, Keep)>,
}

impl Nulls {
    /// Those of `experiment`, from `shelf`.
    pub fn of(experiment: &Experiment, shelf: &Shelf) -> Result<Self, LoadError> {
        let named: BTreeSet<&str> = experiment.spec.expect.iter().filter_map(|e| e.null.as_deref()).collect();
        let part = |(name, also): (String, Vec<What>)| -> Result<_, LoadError> {
            let mut other = shelf.load(&name)?;
            let of = |null: &&str| null.split_once(':').unwrap_or((null, "")).0 == name;
            let labels = named.iter().filter(|null| of(null)).filter_map(|null| first(&other, null));
            let labels: BTreeSet<String> = labels.collect();
            other.cells.retain(|cell| labels.contains(&cell.label));
            other.cells.iter_mut().for_each(|cell| cell.spec.figure.clear());
            Ok((other, Keep { also, ..Keep::default() }))
        };
        let parts =
            asked(std::slice::from_ref(experiment)).into_iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { parts })
    }

    /// How many cells they have together.
    pub fn cells(&self) -> usize {
        self.parts.iter().map(|(experiment, _)| experiment.cells.len()).sum()
    }

    /// Runs them; `done` is called after each run. If it was stopped, ended runs are there.
    pub fn run(
        &self,
        seeds: SeedRange,
        stop: &Stop,
        done: impl Fn(&Run) + Sync,
    ) -> Result<Vec<(&Experiment, Vec<Run>)>, RunError> {
        let one = |(e, keep): &'_ (Experiment, Keep)| sweep(&e.cells, seeds, keep, stop, &done);
        self.parts.iter().map(|part| Ok((&part.0, one(part)?))).collect()
    }
}

/// The label of the cell of `other` that `null`, `group/name:cell`, means.
fn first(other: &Experiment, null: &str) -> Option<String> {
    let label = null.split_once(':').map(|(_, label)| label).filter(|label| !label.is_empty());
    chosen(&other.cells, label).first().map(|cell| cell.label.clone())
}
