//! Rank correlations along a sweep of nine cells, published as 1 ± 0.2.

use rayon::prelude::*;

use super::{CLAIM, Chance, Normal, RUNS, Row, named, row};
use crate::Finding::{self, DirectionOnly, Refuted, Reproduced};
use crate::{Claim, judge_ranks};

/// Series of each setting: each look draws its runs again a thousand times.
const TRIALS: usize = 200;
const RISING: [u8; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/// Their rank correlations are 0.783 and 0.833: beyond the margin's end, 0.8, and within.
const BEYOND: [u8; 9] = [4, 0, 1, 2, 3, 5, 8, 6, 7];
const WITHIN: [u8; 9] = [3, 0, 1, 2, 6, 4, 5, 8, 7];

/// Cells in the order of `ranks`, each `step` standard deviations of a run above the one below.
fn settle(ranks: [u8; 9], step: f64, chance: &mut Chance) -> Finding {
    let claim = Claim { published: 1.0, margin: 0.2, ..CLAIM };
    let mut cells = vec![Vec::new(); ranks.len()];
    for runs in RUNS {
        for (cell, rank) in cells.iter_mut().zip(ranks) {
            cell.extend(chance.values(runs - cell.len(), Normal(f64::from(rank) * step, 1.0)));
        }
        let finding = judge_ranks(&claim, &cells).finding;
        if finding != Finding::Undecided {
            return finding;
        }
    }
    Finding::Undecided
}

fn found(truth: &'static str, said: &[Finding], ranks: [u8; 9], steps: &[f64]) -> Row {
    let rate = |step: &f64| super::rate_in(TRIALS, |chance| said.contains(&settle(ranks, *step, chance)));
    row(truth, named(said), steps.par_iter().map(rate).collect())
}

pub fn errors() -> [Row; 4] {
    let steps = [0.05, 0.1, 0.3];
    [
        found("rank correlation: no trend", &[Reproduced, DirectionOnly], RISING, &[0.0]),
        found("rank correlation: 0.78, beyond the margin's end", &[Reproduced], BEYOND, &steps),
        found("rank correlation: 0.83, within", &[Refuted, DirectionOnly], WITHIN, &steps),
        found("rank correlation: 1, as published", &[Refuted, DirectionOnly], RISING, &steps),
    ]
}

pub fn powers() -> [Row; 1] {
    [found(
        "rank correlation: 1, steps of 0.1 of a run's deviation or more",
        &[Reproduced],
        RISING,
        &[0.1, 0.3],
    )]
}
