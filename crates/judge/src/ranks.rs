//! Rank correlations along a sweep: a claim that there is no null of, since no single cell takes the place of several.

use super::{Answer, Asked, Claim, Finding, Interval, Judgement, LEVEL, Side, judge};

/// The finding of one look on a rank correlation; `cells` in the claimed order have a value per seed each. *Direction only* says
/// that it has the published sign and is more than the margin away from 0.
pub fn judge_ranks(claim: &Claim, cells: &[Vec<f64>]) -> Judgement {
    let interval = spearman_interval(cells, LEVEL);
    let beside = |side: Side| interval.is_beside(side, side.beyond(0.0, claim.margin));
    let on_claimed_side = Side::of(claim.published, 0.0, claim.margin).map_or(Answer::No, beside);
    match judge(claim, interval, Asked { told_apart: Answer::Yes, on_claimed_side }) {
        Judgement { finding: finding @ Finding::DirectionOnly, .. } => {
            Judgement { finding, reason: "another value, of the published sign" }
        }
        other => other,
    }
}

/// Confidence interval, of `level`, of the rank correlation of the cells' means with their order, by drawing runs again
/// (percentiles of 1,000 draws); `cells` have a value per seed each.
fn spearman_interval(cells: &[Vec<f64>], level: f64) -> Interval {
    const DRAWS: usize = 1_000;
    let runs = cells.iter().map(Vec::len).min().unwrap_or(0).max(1);
    let of_run = |n: usize| cells.iter().map(move |values| values.get(n).copied().unwrap_or_default());
    let values: Vec<f64> = (0..runs).flat_map(of_run).collect();
    let (mut state, mut means) = (0u64, vec![0.0; cells.len()]);
    let mut draws: Vec<f64> = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        means.fill(0.0);
        for _ in 0..runs {
            let drawn = (splitmix(&mut state) % runs as u64) as usize * cells.len();
            means.iter_mut().zip(&values[drawn..]).for_each(|(sum, value)| *sum += value);
        }
        means.iter_mut().for_each(|sum| *sum /= runs as f64);
        draws.push(spearman(&means));
    }
    draws.sort_by(f64::total_cmp);
    let tail = (DRAWS as f64 * (1.0 - level) / 2.0) as usize;
    Interval { low: draws[tail], high: draws[DRAWS - tail - 1] }
}

/// The next of a fixed sequence of numbers (Steele, Lea and Flood's SplitMix64).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Spearman's rank correlation of `values` with their order; ties share their mean rank.
pub fn spearman(values: &[f64]) -> f64 {
    let rank = |v: f64| {
        let below = values.iter().filter(|x| **x < v).count() as f64;
        let equal = values.iter().filter(|x| **x == v).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (i, v) in values.iter().enumerate() {
        let (a, b) = (i as f64 - middle, rank(*v) - middle);
        (both, first, second) = (both + a * b, first + a * a, second + b * b);
    }
    if second == 0.0 { 0.0 } else { both / (first * second).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_correlation_is_as_sure_as_its_cells_are_apart() {
        let apart: Vec<Vec<f64>> = (0..5).map(|n| vec![f64::from(n), f64::from(n) + 0.5]).collect();
        assert_eq!(spearman_interval(&apart, 0.9), Interval { low: 1.0, high: 1.0 });
        let noisy: Vec<Vec<f64>> = (0..5).map(|n| vec![f64::from(n), 9.0 - 3.0 * f64::from(n)]).collect();
        let interval = spearman_interval(&noisy, 0.9);
        assert!(interval.low < 0.0 && interval.high > 0.5, "{interval:?}");
    }

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[1.0, 2.0, 5.0]), 1.0);
        assert_eq!(spearman(&[3.0, 2.0, 1.0]), -1.0);
        // Ranks 1 3 2 4: 1 − 6 · 2 / (4 · 15).
        assert!((spearman(&[1.0, 7.0, 5.0, 9.0]) - 0.8).abs() < 1e-12);
        assert_eq!(spearman(&[2.0, 2.0]), 0.0);
    }
}
