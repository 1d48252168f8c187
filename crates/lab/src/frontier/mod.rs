//! The frontier: random scenarios by number, in which each controller is compared by what it takes, what it leaves to others and
//! what it leaves unused. The numbers of scenarios are the seeds: the same number is the same scenario everywhere.

mod outcome;
mod samples;
mod score;
mod table;

pub use outcome::{At, Outcome};
pub use samples::{Samples, samples};
pub use score::{Score, Spread, Worst, scores, worst};
pub use table::table;

use crate::run::{Keep, RunError};
use crate::scenarios::{ALONE, NULL, experiment};
use crate::spec::{Cell, Experiment};
use crate::stop::Stop;
use crate::sweep::{Job, run_all};

/// What all are compared with: the mean of the null over other seeds.
pub const REFERENCE: &str = "reference";
/// The reference is the mean of at least this many runs.
const LEAST: u64 = 3;

/// Of how many runs the reference is the mean, if outcomes are means of `runs`.
pub fn reference_runs(runs: u64) -> u64 {
    runs.max(LEAST)
}

/// The command that repeats the `runs` of one outcome.
pub fn repeats(scenario: u64, controller: &str, runs: u64) -> String {
    let seeds = if runs > 1 { format!(" --seeds 1..{runs}") } else { String::new() };
    format!("polypath lab run frontier/{scenario} --cell {controller}{seeds}")
}

/// Scenarios, and the controllers to compare in them.
#[derive(Debug)]
pub struct Plan<'a> {
    experiments: Vec<(u64, Experiment)>,
    controllers: &'a [&'a str],
    runs: u64,
}

impl<'a> Plan<'a> {
    /// All `controllers` in all `scenarios`. An outcome is the mean of `runs` runs.
    pub fn new(scenarios: impl Iterator<Item = u64>, controllers: &'a [&'a str], runs: u64) -> Self {
        let experiments = scenarios.map(|number| (number, experiment(number))).collect();
        Self { experiments, controllers, runs }
    }

    /// How many runs [`Plan::run`] makes.
    pub fn runs(&self) -> u64 {
        self.experiments.iter().map(|(_, e)| self.wanted(e).count() as u64).sum()
    }

    /// Runs them on all cores; `done` is called after each run. Of a run that was stopped there is no outcome.
    pub fn run(&self, stop: &Stop, done: impl Fn() + Sync) -> Result<Vec<Outcome>, RunError> {
        let keep = Keep::default();
        let mut planned = Vec::new();
        for (number, experiment) in &self.experiments {
            for (name, cell, seed) in self.wanted(experiment) {
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

    /// The runs of one scenario: the name of the outcome, the cell and the seed. Runs of one name follow one another.
    fn wanted<'e>(&self, experiment: &'e Experiment) -> impl Iterator<Item = (&'e str, &'e Cell, u64)> {
        let (compared, others) = (1..=self.runs, self.runs + 1..=self.runs + reference_runs(self.runs));
        let chosen = |c: &&Cell| c.label == NULL || self.controllers.contains(&c.label.as_str());
        let mut wanted = Vec::new();
        for cell in experiment.cells.iter().filter(chosen) {
            wanted.extend(compared.clone().map(|seed| (cell.label.as_str(), cell, seed)));
        }
        for (label, name) in [(NULL, REFERENCE), (ALONE, ALONE)] {
            let cell = experiment.cells.iter().find(|c| c.label == label);
            wanted
                .extend(cell.into_iter().flat_map(|cell| others.clone().map(move |seed| (name, cell, seed))));
        }
        wanted.into_iter()
    }
}
