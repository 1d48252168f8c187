//! Floor 0: what an ensemble of runs says of a published value: a rule with error rates. A finding follows from the
//! numbers alone, and nobody sets it by hand.
//!
//! | symbol | meaning |
//! |---|---|
//! | p, m, k | the published value, its margin in the claim's own unit, the runs that the paper took it from |
//! | ours | confidence interval of our mean |
//! | null | plain TCP in the place of the path; its middle is the median |
//!
//! A claim is looked at up to four times ([`LOOKS`]), with more runs each time, until a look decides it. Each test of a look has
//! an error of 5 % / 4 to each side ([`LEVEL`]), so that all looks together have 5 %. What a look asks, in this order:
//!
//! 1. Can the paper's k runs tell what it claims from plain TCP? Of an effect: p is not what k runs of the null may give
//!    (2.5 % of them or more as far out), and it is more than m away from the null's middle. Of equality with the null, where p is
//!    expected: 95 % of the null's runs are no wider than m to either side, or k runs of the null or of ours never give p. If not: *not identifiable*.
//! 2. Does ours lie within p ± m? *Reproduced* if all of it does, and if none of it does:
//! 3. Is an effect claimed, more or less than TCP, and does our mean differ from the null's to that side by more than m? *Direction only* if so, else *refuted*.
//!    Which side is claimed follows from p beside an equal share (a ratio of 1), or else beside the null.
//!
//! Where one of these is open, and no look is left, the finding is *undecided*: it is none.
//!
//! Beside the finding stands whether ours is as plain TCP ([`Ensemble::is_like`]): yes if the means differ by less than m, no if by
//! more, of the runs that the finding took. It changes no finding, and takes no runs of its own.
//!
//! Error rates (`crates/judge/src/rates.rs` simulates them, all looks together): a system whose true mean is m or more away from p is called
//! *reproduced* in at most 5 % of cases, one whose true mean is within m is called *direction only* or *refuted* in
//! at most 5 %; a claimed effect that is none passes 1. in at most 6 % of papers; two ensembles of other seeds contradict each other, each decided and
//! otherwise, in at most 2 % of cases, wherever the truth lies. The simulated runs are normal; skewed ones, equality, shares,
//! the side of the null, rank correlations and what is as plain TCP are in the table of `docs/experiments.md` (`crates/judge/src/rates/table.rs`).

mod answer;
mod ensemble;
mod interval;
mod kept;
mod ranks;
#[cfg(test)]
mod rates;
mod summary;

use std::fmt;

use serde::Serialize;

pub use answer::Answer;
pub use ensemble::{Ensemble, Scale};
pub use interval::{Interval, Side};
pub use kept::{Kept, allowed, may_be_like};
pub use ranks::{judge_ranks, spearman};
pub use summary::Summary;

/// How often a claim is looked at, at most.
pub const LOOKS: usize = 4;
/// Of the confidence intervals of one look: an error of 5 % / [`LOOKS`] to each side.
pub const LEVEL: f64 = 1.0 - 2.0 * 0.05 / LOOKS as f64;

/// What an ensemble says of a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Our mean is the published value, within its margin.
    Reproduced,
    /// Not the value, but the claimed side of what plain TCP has in the same place.
    DirectionOnly,
    /// The paper's runs cannot tell what it claims from plain TCP.
    NotIdentifiable,
    /// Our runs are too few: no finding.
    Undecided,
    /// Neither the value nor its direction.
    Refuted,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::NotIdentifiable => "not identifiable",
            Self::Undecided => "undecided",
            Self::Refuted => "refuted",
        })
    }
}

/// What a paper says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// The value, in the metric's unit.
    pub published: f64,
    /// How far from it still counts as it, in the same unit.
    pub margin: f64,
    /// How many runs it is the mean of.
    pub runs: u32,
    /// It claims that there is no difference from the null.
    pub equal: bool,
}

/// What a look asks beside the margin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Asked {
    /// Whether the paper's runs can tell what it claims from what plain TCP gives; yes without a null.
    pub told_apart: Answer,
    /// Whether our mean lies on the claimed side of the null by more than the margin; no without either.
    pub on_claimed_side: Answer,
}

/// A finding and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Judgement {
    /// The finding.
    pub finding: Finding,
    /// Why, in words.
    pub reason: &'static str,
}

impl Asked {
    /// Of `ours` beside `null`. A ratio without a null is compared with 1.
    pub fn of(claim: &Claim, ours: &Ensemble, null: Option<&Ensemble>) -> Self {
        let neutral =
            null.filter(|_| !ours.is_ratio()).map(Ensemble::middle).or(ours.is_ratio().then_some(1.0));
        let side = neutral.filter(|_| !claim.equal).and_then(|n| Side::of(claim.published, n, claim.margin));
        let beside = |side: Side| match null {
            Some(null) => ours.is_beside(null, side, claim.margin, LEVEL),
            None => ours.confidence(LEVEL).is_beside(side, side.beyond(1.0, claim.margin)),
        };
        Self {
            told_apart: null.map_or(Answer::Yes, |null| told_apart(claim, ours, null)),
            on_claimed_side: side.map_or(Answer::No, beside),
        }
    }
}

/// The finding on `claim` of one look; `ours` is the confidence interval of our mean with [`LEVEL`].
pub fn judge(claim: &Claim, ours: Interval, asked: Asked) -> Judgement {
    use Answer::{No, Open, Yes};
    let found = |finding, reason| Judgement { finding, reason };
    let band = Interval { low: claim.published - claim.margin, high: claim.published + claim.margin };
    match (asked.told_apart, ours.is_in(band), asked.on_claimed_side) {
        (No, ..) => found(Finding::NotIdentifiable, "the paper's runs cannot tell it from plain TCP"),
        (Open, ..) => {
            found(Finding::Undecided, "too few runs to say whether the paper's can tell it from plain TCP")
        }
        (Yes, Yes, _) => found(Finding::Reproduced, "our mean lies within the margin"),
        (Yes, Open, _) => found(Finding::Undecided, "too few runs: our mean is near the end of the margin"),
        (Yes, No, Yes) => found(Finding::DirectionOnly, "another value, on the claimed side of plain TCP"),
        (Yes, No, Open) => {
            found(Finding::Undecided, "another value; too few runs to say whether on the claimed side")
        }
        (Yes, No, No) => found(Finding::Refuted, "another value"),
    }
}

/// Whether the paper's runs can tell what it claims from what plain TCP gives.
fn told_apart(claim: &Claim, ours: &Ensemble, null: &Ensemble) -> Answer {
    let (p, k) = (claim.published, claim.runs);
    let never = |of: &Ensemble| !of.may_give(p, k, LEVEL);
    match claim.equal {
        true => Answer::from(null.means_of(k).half_width() <= claim.margin).or(never(null)).or(never(ours)),
        false => never(null).and(Side::of(p, null.middle(), claim.margin).is_some().into()),
    }
}

/// How likely the paper's `claim.runs` runs are to show what it claims, if it is true. Of an effect: that their mean lies outside of
/// where the null's lie. Of equality: that the mean of as many of the null's lies within the margin of its middle.
pub fn power(claim: &Claim, null: &Ensemble, ours: &Ensemble) -> f64 {
    match claim.equal {
        true => null.share_in(Interval::around(null.middle(), claim.margin), claim.runs),
        false => 1.0 - ours.moved_to(claim.published).share_in(null.means_of(claim.runs), claim.runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FF: Claim = Claim { published: 1.11, margin: 0.05, runs: 1, equal: false };

    /// Fifty runs evenly from `low` to `high`.
    fn runs(low: f64, high: f64) -> Ensemble {
        let at = |n: i32| low + (high - low) * f64::from(n) / 49.0;
        Ensemble::of(Scale::Ratio, &(0..50).map(at).collect::<Vec<_>>()).expect("there are runs")
    }

    fn found(claim: &Claim, ours: &Ensemble, null: Option<&Ensemble>) -> Finding {
        judge(claim, ours.confidence(LEVEL), Asked::of(claim, ours, null)).finding
    }

    #[test]
    fn a_mean_within_the_margin_reproduces_and_one_a_quarter_off_does_not() {
        let null = runs(0.99, 1.01);
        assert_eq!(found(&FF, &runs(1.08, 1.14), Some(&null)), Finding::Reproduced);
        assert_eq!(found(&FF, &runs(1.38, 1.42), Some(&null)), Finding::DirectionOnly);
        assert_eq!(found(&FF, &runs(0.7, 1.4), Some(&null)), Finding::Undecided);
    }

    #[test]
    fn what_plain_tcp_gives_in_the_same_place_shows_no_effect() {
        assert_eq!(found(&FF, &runs(1.10, 1.12), Some(&runs(1.09, 1.12))), Finding::NotIdentifiable);
        assert_eq!(found(&FF, &runs(1.10, 1.12), Some(&runs(0.4, 2.4))), Finding::NotIdentifiable);
        assert_eq!(
            found(&FF, &runs(1.10, 1.12), Some(&runs(0.5, 1.111))),
            Finding::Undecided,
            "at the edge of the null"
        );
    }

    #[test]
    fn equality_is_identifiable_where_the_null_scatters_less_than_the_margin() {
        let equal = Claim { published: 1.02, equal: true, ..FF };
        let (exact, noisy) = (runs(0.97, 1.03), runs(0.4, 2.4));
        assert_eq!(found(&equal, &runs(1.0, 1.03), Some(&exact)), Finding::Reproduced);
        assert_eq!(found(&equal, &runs(1.0, 1.03), Some(&noisy)), Finding::NotIdentifiable);
        assert_eq!(found(&equal, &runs(2.7, 2.9), Some(&noisy)), Finding::Refuted, "it never gives 1.02");
        assert_eq!(found(&equal, &runs(1.7, 1.8), Some(&exact)), Finding::Refuted, "no direction");
    }

    #[test]
    fn the_other_side_of_plain_tcp_is_refuted() {
        // 1.11 claims more than a TCP has. With these windows a TCP has 1.8.
        assert_eq!(found(&FF, &runs(0.2, 0.3), Some(&runs(1.79, 1.81))), Finding::Refuted);
        assert_eq!(found(&FF, &runs(0.2, 0.3), None), Finding::Refuted);
        assert_eq!(found(&FF, &runs(1.9, 2.0), None), Finding::DirectionOnly, "more than an equal share");
    }
}
