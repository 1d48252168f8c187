//! A group of experiments, `experiments/<group>/*.toml`: all of their runs on all cores, and the
//! answers to all of their expectations.

mod done;
mod needed;
mod nulls;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

pub use done::Done;
use needed::needed;
pub use nulls::Nulls;

use crate::check::{Ensemble, Verdict, check};
use crate::results::Run;
use crate::run::{Keep, RunError};
use crate::seeds::{SeedRange, TooManyRuns};
use crate::shelf::{Shelf, Unknown};
use crate::spec::{Cell, Experiment, LoadError, What};
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
    /// The seeds and cells are too many to run.
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

/// A group of experiments ready to run.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    parts: Vec<Part>,
}

/// An experiment of a group, or one that is here only as a null.
#[derive(Debug)]
struct Part {
    experiment: Experiment,
    seeds: SeedRange,
    /// Labels of the cells of which only the first seed is run.
    brief: BTreeSet<String>,
    /// What is asked of it as a null.
    also: Vec<What>,
    own: bool,
}

impl Group {
    /// Reads the experiments of the group `name` of `shelf`, and those elsewhere on it that they name as nulls.
    pub fn load(shelf: &Shelf, name: &str, seeds: Seeds) -> Result<Self, GroupError> {
        let names = shelf.group(name)?;
        let experiments = names.iter().map(|n| shelf.load(n)).collect::<Result<Vec<_>, _>>()?;
        Self::of(experiments, shelf, name, seeds)
    }

    /// One experiment, and those of `shelf` that it names as nulls.
    pub fn one(experiment: Experiment, shelf: &Shelf, seeds: Seeds) -> Result<Self, GroupError> {
        let name = experiment.name.clone();
        Self::of(vec![experiment], shelf, &name, seeds)
    }

    fn of(
        mut experiments: Vec<Experiment>,
        shelf: &Shelf,
        name: &str,
        seeds: Seeds,
    ) -> Result<Self, GroupError> {
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
        let part = |(n, experiment): (usize, Experiment)| {
            let also = asked.get(&experiment.name).cloned().unwrap_or_default();
            Part { seeds: seeds.of(&experiment), brief: BTreeSet::new(), also, own: n < own, experiment }
        };
        Ok(Self { name: name.to_owned(), parts: experiments.into_iter().enumerate().map(part).collect() })
    }

    /// Only the first seed of the cells that no expectation needs: enough to answer every expectation, and to see that every
    /// figure has data. A connection that fails there with another seed is not seen.
    #[must_use]
    pub fn only_asked(mut self) -> Self {
        let needed = needed(&self.parts.iter().map(|part| &part.experiment).collect::<Vec<_>>());
        for (part, needed) in iter::zip(&mut self.parts, needed) {
            let labels = part.experiment.cells.iter().map(|cell| cell.label.clone());
            part.brief = labels.filter(|label| !needed.contains(label)).collect();
        }
        self
    }

    /// How many runs there will be.
    pub fn runs(&self) -> u64 {
        self.parts.iter().flat_map(Part::runs).count() as u64
    }

    /// Runs all of it; `done` is called after each run. If it was stopped, ended runs are there, and verdicts on them.
    pub fn run(self, stop: &Stop, done: impl Fn() + Sync) -> Result<Vec<Done>, GroupError> {
        let keeps: Vec<Keep> = self.parts.iter().map(Part::keep).collect();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (part, keep) in self.parts.iter().zip(&keeps) {
            jobs.extend(part.runs().map(|(cell, seed)| Job { cell, seed, keep }));
        }
        let mut results = run_all(&jobs, stop, |_| done())?.into_iter();
        let of_each = self.parts.iter().map(|part| part.runs().count());
        let runs: Vec<Vec<Run>> = of_each.map(|n| results.by_ref().take(n).flatten().collect()).collect();
        let ensembles: Vec<Ensemble<'_>> =
            self.parts.iter().zip(&runs).map(|(p, runs)| (&p.experiment, &runs[..])).collect();
        let answers = |(part, ensemble): (&Part, &Ensemble<'_>)| match part.own {
            true => check(*ensemble, &ensembles),
            false => Vec::new(),
        };
        let verdicts: Vec<Vec<Verdict>> = self.parts.iter().zip(&ensembles).map(answers).collect();
        let done = self.parts.into_iter().zip(runs).zip(verdicts);
        Ok(done
            .map(|((Part { experiment, seeds, own, .. }, runs), verdicts)| Done {
                experiment,
                seeds,
                runs,
                verdicts,
                own,
            })
            .collect())
    }
}

impl Part {
    /// Its cells and their seeds.
    fn runs(&self) -> impl Iterator<Item = (&Cell, u64)> {
        let seeds = |cell: &Cell| match self.brief.contains(&cell.label) {
            true => SeedRange { last: self.seeds.first, ..self.seeds },
            false => self.seeds,
        };
        self.experiment.cells.iter().flat_map(move |cell| seeds(cell).iter().map(move |seed| (cell, seed)))
    }

    fn keep(&self) -> Keep {
        Keep { also: self.also.clone(), ..Keep::default() }
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
