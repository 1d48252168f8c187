//! What an ensemble says of a published value: a rule with error rates. A finding follows from the
//! numbers alone, and nobody sets it by hand.
//!
//! | symbol | meaning |
//! |---|---|
//! | p, m, k | the published value, its margin in the claim's own unit, the runs that the paper took it from |
//! | ours | 90 % confidence interval of our mean: two one-sided tests at 5 % |
//! | null | plain TCP in the place of the path; where 95 % of means of k of its runs lie; its middle is the median |
//!
//! The findings, the first that applies:
//!
//! 1. *not identifiable*: p lies in the null's interval, or within m of its middle, so that the paper's k runs
//!    cannot tell the claimed effect from none. A claim of equality with the null is expected to lie there; it is
//!    identifiable if that interval is no wider than m to either side, or if means of k of our runs never give p.
//! 2. *reproduced*: ours lies within p ± m.
//! 3. *not identifiable*: ours reaches into p ± m and out of it; our runs are too few to tell.
//! 4. *direction only*: an effect is claimed, more or less than TCP, and ours differs from the null (95 %, Welch) to
//!    that side. Which side is claimed follows from p beside an equal share (a ratio of 1), or else beside the null.
//! 5. *refuted*.
//!
//! Error rates (`judge/rates.rs` simulates them): a system whose true mean is m or more away from p is called
//! *reproduced* in at most 5 % of ensembles, one whose true mean is within m is called *direction only* or *refuted* in
//! at most 5 %; a claimed effect that is none passes 1. in at most 5 % of papers.

mod interval;
#[cfg(test)]
mod rates;

use std::fmt;

use serde::Serialize;

pub use interval::{Ensemble, Interval, Side};

/// What an ensemble says of a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Our mean is the published value, within its margin.
    Reproduced,
    /// Not the value, but the claimed side of what plain TCP has in the same place.
    DirectionOnly,
    /// The paper's runs, or ours, cannot tell.
    NotIdentifiable,
    /// Neither the value nor its direction.
    Refuted,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::NotIdentifiable => "not identifiable",
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

/// With what ours is compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Against {
    /// What no effect gives: the null's middle, or 1 for a ratio without a null.
    pub neutral: f64,
    /// Where 95 % of means of the paper's number of runs lie if there is no effect; none without a null.
    pub runs: Option<Interval>,
    /// Where those of ours lie.
    pub ours: Interval,
    /// On which side of it ours lies, if it does (95 %).
    pub side: Option<Side>,
    /// On which side the paper says that it lies.
    pub claimed: Option<Side>,
}

/// A finding and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Judgement {
    /// The finding.
    pub finding: Finding,
    /// Why, in words.
    pub reason: &'static str,
}

/// The finding on `claim`; `ours` is the 90 % confidence interval of our mean.
pub fn judge(claim: &Claim, ours: Interval, against: Option<&Against>) -> Judgement {
    let found = |finding, reason| Judgement { finding, reason };
    let band = Interval { low: claim.published - claim.margin, high: claim.published + claim.margin };
    if against.is_some_and(|a| a.runs.is_some_and(|null| !told_apart(claim, null, a))) {
        return found(Finding::NotIdentifiable, "the paper's runs cannot tell it from plain TCP");
    }
    if ours.within(band) {
        return found(Finding::Reproduced, "our mean lies within the margin");
    }
    if ours.overlaps(band) {
        return found(Finding::NotIdentifiable, "our runs are too few to tell");
    }
    match against.filter(|a| !claim.equal && a.side.is_some() && a.side == a.claimed) {
        Some(_) => found(Finding::DirectionOnly, "another value, on the claimed side of plain TCP"),
        None => found(Finding::Refuted, "another value"),
    }
}

/// The paper's runs can tell what it claims from what plain TCP gives.
fn told_apart(claim: &Claim, null: Interval, a: &Against) -> bool {
    let p = claim.published;
    match claim.equal {
        true => null.half_width() <= claim.margin || !null.contains(p) || !a.ours.contains(p),
        false => !null.contains(p) && Side::of(p, a.neutral, claim.margin).is_some(),
    }
}

/// How likely the paper's `claim.runs` runs are to tell: of an effect, that their mean lies outside of where
/// the null's lie; of equality, that they show a system that is off by the margin.
pub fn power(claim: &Claim, null: &Ensemble, ours: &Ensemble) -> f64 {
    let runs = null.means_of(claim.runs);
    match claim.equal {
        false => 1.0 - ours.moved_to(claim.published).share_in(runs, claim.runs),
        true => 1.0 - null.moved_to(null.middle() + claim.margin).share_in(runs, claim.runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FF: Claim = Claim { published: 1.11, margin: 0.05, runs: 1, equal: false };

    fn interval(low: f64, high: f64) -> Interval {
        Interval { low, high }
    }

    fn against(neutral: f64, runs: (f64, f64), side: Option<Side>) -> Against {
        Against {
            neutral,
            runs: Some(interval(runs.0, runs.1)),
            ours: interval(0.5, 3.0),
            side,
            claimed: Some(Side::Above),
        }
    }

    #[test]
    fn a_mean_within_the_margin_reproduces_and_one_a_quarter_off_does_not() {
        let narrow = against(1.0, (0.99, 1.01), Some(Side::Above));
        assert_eq!(judge(&FF, interval(1.08, 1.14), Some(&narrow)).finding, Finding::Reproduced);
        assert_eq!(judge(&FF, interval(1.38, 1.42), Some(&narrow)).finding, Finding::DirectionOnly);
        assert_eq!(judge(&FF, interval(1.0, 1.09), Some(&narrow)).finding, Finding::NotIdentifiable);
    }

    #[test]
    fn what_plain_tcp_gives_in_the_same_place_shows_no_effect() {
        let windows = against(1.1, (1.09, 1.12), None);
        assert_eq!(judge(&FF, interval(1.10, 1.12), Some(&windows)).finding, Finding::NotIdentifiable);
        let noise = against(1.0, (0.4, 2.4), None);
        assert_eq!(judge(&FF, interval(1.10, 1.12), Some(&noise)).finding, Finding::NotIdentifiable);
    }

    #[test]
    fn equality_is_identifiable_where_the_null_scatters_less_than_the_margin() {
        let equal = Claim { published: 1.02, equal: true, ..FF };
        let (exact, noisy) = (against(1.0, (0.97, 1.03), None), against(1.0, (0.4, 2.4), None));
        assert_eq!(judge(&equal, interval(1.0, 1.03), Some(&exact)).finding, Finding::Reproduced);
        assert_eq!(judge(&equal, interval(1.0, 1.03), Some(&noisy)).finding, Finding::NotIdentifiable);
        let never = Against { ours: interval(2.5, 3.1), ..noisy };
        assert_eq!(judge(&equal, interval(2.7, 2.9), Some(&never)).finding, Finding::Refuted);
        let far = against(1.0, (0.97, 1.03), Some(Side::Above));
        assert_eq!(judge(&equal, interval(1.7, 1.8), Some(&far)).finding, Finding::Refuted, "no direction");
    }

    #[test]
    fn the_other_side_of_plain_tcp_is_refuted() {
        // 1.11 claims more than a TCP has. With these windows a TCP has 1.8.
        let wide_windows = against(1.8, (1.79, 1.81), Some(Side::Below));
        assert_eq!(judge(&FF, interval(0.2, 0.3), Some(&wide_windows)).finding, Finding::Refuted);
        assert_eq!(judge(&FF, interval(0.2, 0.3), None).finding, Finding::Refuted, "no null, no direction");
    }
}
