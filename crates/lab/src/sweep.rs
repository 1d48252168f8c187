//! An ensemble: every cell of the grid with every seed, on all cores.

use std::cmp::Reverse;

use rayon::prelude::*;

use crate::results::Run;
use crate::run::{Keep, RunError, run};
use crate::seeds::SeedRange;
use crate::spec::Cell;

/// A run to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub cell: &'a Cell,
    pub seed: u64,
    pub keep: &'a Keep,
}

/// Runs each of `cells` with each of `seeds`; `done` is called after each run. The results are in
/// the order of cells, then seeds, however the cores shared the work.
pub fn sweep(
    cells: &[Cell],
    seeds: SeedRange,
    keep: &Keep,
    done: impl Fn(&Run) + Sync,
) -> Result<Vec<Run>, RunError> {
    let jobs = cells.iter().flat_map(|cell| seeds.iter().map(move |seed| Job { cell, seed, keep }));
    run_all(&jobs.collect::<Vec<_>>(), done)
}

/// Runs all of `jobs`, those that take longest first, so that no core is left with one at the end. The
/// results are in the order of `jobs`.
pub(crate) fn run_all(jobs: &[Job<'_>], done: impl Fn(&Run) + Sync) -> Result<Vec<Run>, RunError> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_cached_key(|n| Reverse(jobs[*n].cell.spec.work()));
    let one = |n: usize| {
        let Job { cell, seed, keep } = jobs[n];
        run(cell, seed, keep).inspect(&done).map(|run| (n, run))
    };
    let mut runs: Vec<(usize, Run)> = order.into_iter().par_bridge().map(one).collect::<Result<_, _>>()?;
    runs.sort_unstable_by_key(|(n, _)| *n);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}
