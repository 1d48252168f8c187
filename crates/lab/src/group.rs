//! A group of experiments, `experiments/<group>/*.toml`: all of their runs on all cores, and the
//! answers to all of their expectations.

use std::collections::BTreeMap;

use crate::check::{Ensemble, Verdict, check};
use crate::results::Run;
use crate::run::{Keep, RunError};
use crate::seeds::{SeedRange, TooManyRuns};
use crate::shelf::{Shelf, Unknown};
use crate::spec::{Experiment, LoadError, What};
use crate::stop::Stop;
use crate::sweep::{Job, run_all};

/// Seeds of a quick look.
const QUICK: u64 = 4;

/// Why a group gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// There is no such group, or it has no experiments.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A spec is no good.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// So many seeds of so many cells would never end.
    #[error("{0}: {1}")]
    TooMany(String, TooManyRuns),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Which seeds of each experiment to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Seeds {
    /// Those of the spec.
    #[default]
    Spec,
    /// The first few of the spec's.
    Quick,
    /// These.
    Only(SeedRange),
}

/// An experiment of a group, and what came out.
#[derive(Debug)]
pub struct Done {
    /// The experiment.
    pub experiment: Experiment,
    /// The seeds it was run with.
    pub seeds: SeedRange,
    /// In the order of cells, then seeds.
    pub runs: Vec<Run>,
    /// The answers; none for experiments that are here only as nulls of others.
    pub verdicts: Vec<Verdict>,
    /// Whether it belongs to the group, and not only to a null.
    pub own: bool,
}

/// A group of experiments ready to run.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    experiments: Vec<(Experiment, SeedRange, Vec<What>, bool)>,
}

impl Group {
    /// Reads the experiments of the group `name` of `shelf`, and those elsewhere on it that they name as nulls.
    pub fn load(shelf: &Shelf, name: &str, seeds: Seeds) -> Result<Self, GroupError> {
        let names = shelf.group(name)?;
        let mut experiments = names.iter().map(|n| shelf.load(n)).collect::<Result<Vec<_>, _>>()?;
        let own = experiments.len();
        let asked = asked(&experiments);
        for null in asked.keys() {
            if !experiments.iter().any(|e| e.name == *null) {
                experiments.push(shelf.load(null)?);
            }
        }
        for e in &experiments {
            seeds.of(e).runs(e.cells.len()).map_err(|why| GroupError::TooMany(e.name.clone(), why))?;
        }
        let with = |(n, e): (usize, Experiment)| {
            let range = seeds.of(&e);
            let also = asked.get(&e.name).cloned().unwrap_or_default();
            (e, range, also, n < own)
        };
        Ok(Self {
            name: name.to_owned(),
            experiments: experiments.into_iter().enumerate().map(with).collect(),
        })
    }

    /// How many runs there will be.
    pub fn runs(&self) -> u64 {
        self.experiments.iter().map(|(e, seeds, ..)| e.cells.len() as u64 * seeds.iter().count() as u64).sum()
    }

    /// Runs all of it; `done` is called after each run. If it was stopped, ended runs are there, and verdicts on them.
    pub fn run(self, stop: &Stop, done: impl Fn() + Sync) -> Result<Vec<Done>, GroupError> {
        let keeps =
            self.experiments.iter().map(|(_, _, also, _)| Keep { also: also.clone(), ..Keep::default() });
        let keeps: Vec<Keep> = keeps.collect();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for ((e, seeds, ..), keep) in self.experiments.iter().zip(&keeps) {
            jobs.extend(
                e.cells.iter().flat_map(|cell| seeds.iter().map(move |seed| Job { cell, seed, keep })),
            );
        }
        let mut results = run_all(&jobs, stop, |_| done())?.into_iter();
        let of_each = self.experiments.iter().map(|(e, seeds, ..)| e.cells.len() * seeds.iter().count());
        let runs: Vec<Vec<Run>> = of_each.map(|n| results.by_ref().take(n).flatten().collect()).collect();
        let ensembles: Vec<Ensemble<'_>> =
            self.experiments.iter().zip(&runs).map(|((e, ..), runs)| (e, &runs[..])).collect();
        let answers = |(n, (.., own)): (usize, &(Experiment, SeedRange, Vec<What>, bool))| match own {
            true => check(ensembles[n], &ensembles),
            false => Vec::new(),
        };
        let verdicts: Vec<Vec<Verdict>> = self.experiments.iter().enumerate().map(answers).collect();
        let parts = self.experiments.into_iter().zip(runs).zip(verdicts);
        Ok(parts
            .map(|(((experiment, seeds, _, own), runs), verdicts)| Done {
                experiment,
                seeds,
                runs,
                verdicts,
                own,
            })
            .collect())
    }
}

impl Seeds {
    fn of(self, experiment: &Experiment) -> SeedRange {
        let all = experiment.spec.seeds;
        match self {
            Self::Spec => all,
            Self::Quick => SeedRange { last: all.last.min(all.first + QUICK - 1), ..all },
            Self::Only(seeds) => seeds,
        }
    }
}

/// What is asked of other experiments, as nulls.
fn asked(experiments: &[Experiment]) -> BTreeMap<String, Vec<What>> {
    let mut asked: BTreeMap<String, Vec<What>> = BTreeMap::new();
    for expect in experiments.iter().flat_map(|e| &e.spec.expect) {
        let Some(null) = expect.null.as_deref().filter(|null| null.contains('/')) else { continue };
        let name = null.split(':').next().unwrap_or(null);
        asked.entry(name.to_owned()).or_default().extend(expect.selector().whats().cloned());
    }
    asked
}
