//! The frontier: random scenarios by number, in which each controller is compared by what it takes, what it leaves to others and
//! what it leaves unused. The numbers of scenarios are the seeds: the same number is the same scenario everywhere.

mod outcome;
mod samples;
mod score;

pub use outcome::{At, Outcome, table};
pub use samples::{Samples, samples};
pub use score::{Score, Spread, Worst, scores, worst};

use crate::run::{Keep, RunError};
use crate::scenarios::{ALONE, NULL, experiment};
use crate::seeds::SeedRange;
use crate::spec::{Cell, Experiment};
use crate::stop::Stop;
use crate::sweep::{Job, run_all};

/// What all are compared with: the mean of the null over other seeds.
pub const REFERENCE: &str = "reference";
/// The seed of the runs that are compared.
const SEED: u64 = 1;
/// Those of what they are compared with.
const OTHERS: std::ops::RangeInclusive<u64> = 2..=4;

/// Scenarios, and the controllers that are to be compared in them.
#[derive(Debug)]
pub struct Plan<'a> {
    experiments: Vec<(u64, Experiment)>,
    controllers: &'a [&'a str],
}

impl<'a> Plan<'a> {
    /// Of `scenarios` under `controllers`.
    pub fn new(scenarios: SeedRange, controllers: &'a [&'a str]) -> Self {
        Self {
            experiments: scenarios.iter().map(|number| (number, experiment(number))).collect(),
            controllers,
        }
    }

    /// How many runs [`Plan::run`] makes.
    pub fn runs(&self) -> u64 {
        self.experiments.iter().map(|(_, e)| wanted(e, self.controllers).count() as u64).sum()
    }

    /// Runs them on all cores; `done` is called after each run. Of a run that was stopped there is no outcome.
    pub fn run(&self, stop: &Stop, done: impl Fn() + Sync) -> Result<Vec<Outcome>, RunError> {
        let keep = Keep::default();
        let mut planned = Vec::new();
        for (number, experiment) in &self.experiments {
            for (name, cell, seed) in wanted(experiment, self.controllers) {
                planned.push((*number, name, Job { cell, seed, keep: &keep }));
            }
        }
        let jobs: Vec<Job<'_>> = planned.iter().map(|(.., job)| *job).collect();
        let runs = run_all(&jobs, stop, |_| done())?;
        let mut outcomes: Vec<Vec<Outcome>> = Vec::new();
        for ((number, name, _), run) in planned.iter().zip(runs) {
            let Some(outcome) = run.map(|run| Outcome::of(*number, name, &run)) else { continue };
            match outcomes.last_mut().filter(|same| same[0].is_like(&outcome)) {
                Some(same) => same.push(outcome),
                None => outcomes.push(vec![outcome]),
            }
        }
        Ok(outcomes.iter().map(|same| Outcome::mean(same)).collect())
    }
}

/// Which cells are run with which seeds, and what their outcome is called; those of one name in a row.
fn wanted<'a>(
    experiment: &'a Experiment,
    controllers: &[&str],
) -> impl Iterator<Item = (&'a str, &'a Cell, u64)> {
    let chosen = |c: &&Cell| c.label == NULL || controllers.contains(&c.label.as_str());
    let compared = experiment.cells.iter().filter(chosen).map(|c| (c.label.as_str(), c, SEED));
    let beside = |label, name: &'static str| {
        let cell = experiment.cells.iter().find(move |c| c.label == label);
        cell.into_iter().flat_map(move |cell| OTHERS.map(move |seed| (name, cell, seed)))
    };
    let all: Vec<_> = compared.chain(beside(NULL, REFERENCE)).chain(beside(ALONE, ALONE)).collect();
    all.into_iter()
}
