//! An ensemble: every cell of the grid with every seed, on all cores.

use rayon::prelude::*;

use crate::results::Run;
use crate::run::{Keep, RunError, run};
use crate::seeds::SeedRange;
use crate::spec::Cell;

/// Runs each of `cells` with each of `seeds`; `done` is called after each run. The results are in
/// the order of cells, then seeds, however the cores shared the work.
pub fn sweep(
    cells: &[Cell],
    seeds: SeedRange,
    keep: &Keep,
    done: impl Fn(&Run) + Sync,
) -> Result<Vec<Run>, RunError> {
    let jobs: Vec<(&Cell, u64)> = cells.iter().flat_map(|c| seeds.iter().map(move |s| (c, s))).collect();
    jobs.into_par_iter().map(|(cell, seed)| run(cell, seed, keep).inspect(&done)).collect()
}
