//! What was measured of each controller at each bottleneck and in each scenario, beside the null there.

use std::collections::BTreeMap;

use polypath_judge::{Answer, Ensemble, Scale, Side};

use super::{Outcome, REFERENCE};
use crate::scenarios::{ALONE, Scenario};

/// No more harm than this times the null's.
const HARM: f64 = 1.05;
/// A ratio to nothing counts as this, and so do larger ones.
const MOST: f64 = 1000.0;

/// Of one controller. Of nothing to nothing there is no ratio.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples {
    /// At each bottleneck with TCPs beside it: goodput over the mean of those TCPs.
    pub ff: Vec<f64>,
    /// There: goodput over what one TCP has in its place.
    pub taken: Vec<f64>,
    /// What the TCPs there have over what they have in the null.
    pub left: Vec<f64>,
    /// What the TCPs there lose against being alone, over what they lose to the null, where they lose to that.
    pub harm: Vec<f64>,
    /// Their mean round trip over that in the null.
    pub rtt: Vec<f64>,
    /// What they lose beyond 1.05 of what they lose to the null, bit/s.
    pub excess: Vec<f64>,
    /// Whether they lose more than that, as far as several runs of both can tell (95 % confidence).
    pub harmful: Vec<Answer>,
    /// Whether that is certain and its goodput is above the mean of theirs.
    pub greedy: Vec<bool>,
    /// In each scenario: goodput over what one TCP at each bottleneck has.
    pub share: Vec<f64>,
    /// Goodput of all over what all have in the null.
    pub used: Vec<f64>,
}

/// The outcomes of a scenario that all others are compared with.
pub(super) struct Beside<'a> {
    pub null: &'a Outcome,
    alone: &'a Outcome,
}

/// Of each controller, in the order of their outcomes; single bottlenecks count if they hold `pipe` packets.
pub fn samples(outcomes: &[Outcome], pipe: u64) -> Vec<(&str, Samples)> {
    let beside = beside(outcomes);
    let mut all: Vec<(&str, Samples)> = Vec::new();
    for outcome in outcomes.iter().filter(|o| ![ALONE, REFERENCE].contains(&o.controller.as_str())) {
        let Some(beside) = beside.get(&outcome.scenario) else { continue };
        let at = all.iter().position(|(name, _)| *name == outcome.controller).unwrap_or_else(|| {
            all.push((&outcome.controller, Samples::default()));
            all.len() - 1
        });
        all[at].1.add(outcome, beside, pipe);
    }
    all
}

/// By the number of the scenario.
pub(super) fn beside(outcomes: &[Outcome]) -> BTreeMap<u64, Beside<'_>> {
    let mut found: BTreeMap<u64, (Option<&Outcome>, Option<&Outcome>)> = BTreeMap::new();
    for outcome in outcomes {
        match outcome.controller.as_str() {
            REFERENCE => found.entry(outcome.scenario).or_default().0 = Some(outcome),
            ALONE => found.entry(outcome.scenario).or_default().1 = Some(outcome),
            _ => {}
        }
    }
    let both = |(number, (null, alone))| Some((number, Beside { null: null?, alone: alone? }));
    found.into_iter().filter_map(both).collect()
}

impl Beside<'_> {
    /// Whether runs of `outcome` show that the TCPs at bottleneck `n` lose more than 1.05 times what they lose to the null.
    pub(super) fn harmful(&self, outcome: &Outcome, n: usize) -> Option<Answer> {
        is_harmful(&outcome.at[n].rivals, &self.null.at[n].rivals, self.alone.at[n].rival?)
    }
}

impl Samples {
    fn add(&mut self, outcome: &Outcome, beside: &Beside<'_>, pipe: u64) {
        let Beside { null, alone } = beside;
        self.share.extend(ratio(outcome.ours(), null.ours()));
        self.used.extend(ratio(outcome.all(), null.all()));
        let scenario = Scenario::draw(outcome.scenario);
        let all = outcome.at.iter().zip(&null.at).zip(&alone.at).enumerate();
        for (n, ((at, null), alone)) in all.filter(|(n, _)| scenario.pipe(*n) >= pipe) {
            let (Some(rival), Some(in_null), Some(alone)) = (at.rival, null.rival, alone.rival) else {
                continue;
            };
            let (lost, lost_in_null) = (alone - rival, alone - in_null);
            let harmful = beside.harmful(outcome, n);
            self.ff.extend(ratio(at.ours, rival));
            self.taken.extend(ratio(at.ours, null.ours));
            self.left.extend(ratio(rival, in_null));
            self.rtt.extend(at.rtt.zip(null.rtt).map(|(rtt, in_null)| rtt / in_null));
            self.excess.push(lost - HARM * lost_in_null);
            self.harmful.extend(harmful);
            self.greedy.extend(harmful.map(|harmful| harmful == Answer::Yes && at.ours > rival));
            if lost_in_null > 0.0 {
                self.harm.push(lost / lost_in_null);
            }
        }
    }
}

/// Whether runs in which TCPs have `left` show that they lose more of `alone` than 1.05 times what runs with `in_null` show. Of single
/// runs there is no answer.
fn is_harmful(left: &[f64], in_null: &[f64], alone: f64) -> Option<Answer> {
    let of = |runs: &[f64]| Ensemble::of(Scale::Linear, runs).filter(|_| runs.len() > 1);
    let least: Vec<f64> = in_null.iter().map(|null| alone - HARM * (alone - null)).collect();
    Some(of(left)?.is_beside(&of(&least)?, Side::Below, 0.0, 0.95))
}

/// `of` over `to`, which are not below 0.
pub(super) fn ratio(of: f64, to: f64) -> Option<f64> {
    (of > 0.0 || to > 0.0).then(|| (of / to).min(MOST))
}
