//! An ensemble: every cell of the grid with every seed, on all cores.

use std::cmp::Reverse;
use std::num::NonZero;

use rayon::prelude::*;

use crate::results::Run;
use crate::run::{Keep, RunError, run_until};
use crate::seeds::SeedRange;
use crate::spec::Cell;
use crate::stop::Stop;

/// A run to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub cell: &'a Cell,
    pub seed: u64,
    pub keep: &'a Keep,
}

/// Runs each of `cells` with each of `seeds`; `done` is called after each run. The results are in the order of cells,
/// then seeds, however the cores shared the work; those of ended runs if it was stopped.
pub fn sweep(
    cells: &[Cell],
    seeds: SeedRange,
    keep: &Keep,
    stop: &Stop,
    done: impl Fn(&Run) + Sync,
) -> Result<Vec<Run>, RunError> {
    let jobs = cells.iter().flat_map(|cell| seeds.iter().map(move |seed| Job { cell, seed, keep }));
    Ok(run_all(&jobs.collect::<Vec<_>>(), stop, done)?.into_iter().flatten().collect())
}

/// Does `work` with this many threads; without a number, with one per core.
pub fn on_cores<T: Send>(jobs: Option<NonZero<usize>>, work: impl FnOnce() -> T + Send) -> T {
    let pool = jobs.map(|n| rayon::ThreadPoolBuilder::new().num_threads(n.get()).build());
    match pool {
        Some(Ok(pool)) => pool.install(work),
        _ => work(), // as many threads as the system has cores for, if it allows no others
    }
}

/// Runs all of `jobs`, those that take longest first, so that no core is left with one at the end. The
/// results are in the order of `jobs`; there is none of one that was stopped.
pub(crate) fn run_all(
    jobs: &[Job<'_>],
    stop: &Stop,
    done: impl Fn(&Run) + Sync,
) -> Result<Vec<Option<Run>>, RunError> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_cached_key(|n| Reverse(jobs[*n].cell.spec.work()));
    let one = |n: usize| {
        let Job { cell, seed, keep } = jobs[n];
        match run_until(cell, seed, keep, stop) {
            Ok(run) => {
                done(&run);
                Ok((n, Some(run)))
            }
            Err(RunError::Stopped) => Ok((n, None)),
            Err(e) => Err(e),
        }
    };
    let mut runs: Vec<(usize, Option<Run>)> =
        order.into_iter().par_bridge().map(one).collect::<Result<_, _>>()?;
    runs.sort_unstable_by_key(|(n, _)| *n);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}
