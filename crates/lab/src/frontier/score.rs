//! How a controller did over all scenarios, beside the null of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Outcome, REFERENCE};
use crate::scenarios::{ALONE, Scenario};

/// Starved: less of a bottleneck than this share of what a TCP beside it has.
const STARVED: f64 = 0.3;
/// No more harm than this times the null's.
const HARM: f64 = 1.05;

/// One controller over all scenarios.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Score {
    /// Which.
    pub controller: String,
    /// In how many scenarios.
    pub scenarios: usize,
    /// At how many bottlenecks with TCPs beside it.
    pub bottlenecks: usize,
    /// Friendliness there: goodput over the mean of those TCPs.
    pub ff: Spread,
    /// Goodput there over what one TCP has in its place.
    pub taken: Spread,
    /// Share of these bottlenecks at which it has less than 0.3 of such a TCP.
    pub starved: f64,
    /// Goodput over what one TCP at each bottleneck has, by scenario.
    pub share: Spread,
    /// Goodput of all over what all have in the null, by scenario.
    pub used: Spread,
    /// Share of these bottlenecks at which the harm, what the TCPs lose against being alone, is at most 1.05 of the null's.
    pub harmless: f64,
    /// What the TCPs there have over what they have in the null.
    pub left: Spread,
}

/// How numbers lie.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Geometric mean, with nothing counted as a thousandth.
    pub geometric_mean: f64,
    /// Median.
    pub median: f64,
    /// One in twenty is below.
    pub p5: f64,
    /// One in twenty is above.
    pub p95: f64,
}

/// A scenario, and what makes it bad.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Worst {
    /// The scenario's number.
    pub scenario: u64,
    /// Friendliness at its worst bottleneck.
    pub ff: f64,
    /// Goodput there over what one TCP has in its place.
    pub taken: f64,
}

/// The outcomes of a scenario that all others are compared with.
struct Beside<'a> {
    null: &'a Outcome,
    alone: &'a Outcome,
}

/// The scores of all controllers, in the order of their outcomes; of single bottlenecks those count that hold `pipe` packets.
pub fn scores(outcomes: &[Outcome], pipe: u64) -> Vec<Score> {
    let beside = beside(outcomes);
    let mut names: Vec<&str> = Vec::new();
    for outcome in outcomes.iter().filter(|o| ![ALONE, REFERENCE].contains(&o.controller.as_str())) {
        if !names.contains(&outcome.controller.as_str()) {
            names.push(&outcome.controller);
        }
    }
    names.into_iter().map(|name| score(name, outcomes, &beside, pipe)).collect()
}

/// The `count` scenarios in which `controller` takes most from others.
pub fn worst(controller: &str, outcomes: &[Outcome], pipe: u64, count: usize) -> Vec<Worst> {
    let beside = beside(outcomes);
    let of = |o: &Outcome| {
        let null = beside.get(&o.scenario)?.null;
        let scenario = Scenario::draw(o.scenario);
        let counted = o.at.iter().zip(&null.at).enumerate().filter(|(n, _)| scenario.pipe(*n) >= pipe);
        let each = counted.filter_map(|(_, (at, null))| Some((at.ours / at.rival?, at.ours / null.ours)));
        let (ff, taken) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Worst { scenario: o.scenario, ff, taken })
    };
    let mut all: Vec<Worst> = outcomes.iter().filter(|o| o.controller == controller).filter_map(of).collect();
    all.sort_by(|a, b| b.taken.total_cmp(&a.taken));
    all.truncate(count);
    all
}

fn beside(outcomes: &[Outcome]) -> BTreeMap<u64, Beside<'_>> {
    let find = |scenario, name| outcomes.iter().find(|o| o.scenario == scenario && o.controller == name);
    let of = |o: &Outcome| {
        Some((o.scenario, Beside { null: find(o.scenario, REFERENCE)?, alone: find(o.scenario, ALONE)? }))
    };
    outcomes.iter().filter_map(of).collect()
}

fn score(name: &str, outcomes: &[Outcome], beside: &BTreeMap<u64, Beside<'_>>, pipe: u64) -> Score {
    let (mut ff, mut taken, mut left, mut harmless) = (vec![], vec![], vec![], vec![]);
    let (mut share, mut used) = (vec![], vec![]);
    for outcome in outcomes.iter().filter(|o| o.controller == name) {
        let Some(Beside { null, alone }) = beside.get(&outcome.scenario) else { continue };
        share.push(outcome.ours() / null.ours());
        used.push(outcome.all() / null.all());
        let scenario = Scenario::draw(outcome.scenario);
        let all = outcome.at.iter().zip(&null.at).zip(&alone.at).enumerate();
        for (_, ((at, null), alone)) in all.filter(|(n, _)| scenario.pipe(*n) >= pipe) {
            let (Some(rival), Some(in_null), Some(alone)) = (at.rival, null.rival, alone.rival) else {
                continue;
            };
            ff.push(at.ours / rival);
            taken.push(at.ours / null.ours);
            left.push(rival / in_null);
            harmless.push(f64::from(u8::from(alone - rival <= HARM * (alone - in_null))));
        }
    }
    let starved: Vec<f64> = ff.iter().map(|ff| f64::from(u8::from(*ff < STARVED))).collect();
    Score {
        controller: name.to_owned(),
        scenarios: share.len(),
        bottlenecks: ff.len(),
        starved: Spread::of(starved).mean,
        ff: Spread::of(ff),
        taken: Spread::of(taken),
        share: Spread::of(share),
        used: Spread::of(used),
        harmless: Spread::of(harmless).mean,
        left: Spread::of(left),
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.retain(|v| v.is_finite());
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { return Self::default() };
        let at = |share: f64| values[(last as f64 * share).round() as usize];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let logs: f64 = values.iter().map(|v| v.max(1e-3).ln()).sum();
        let geometric_mean = (logs / values.len() as f64).exp();
        Self { mean, geometric_mean, median: at(0.5), p5: at(0.05), p95: at(0.95) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::At;
    use super::*;

    fn outcome(scenario: u64, controller: &str, ours: f64, rival: f64) -> Outcome {
        let at = vec![At { ours, rival: Some(rival), all: ours + rival }];
        Outcome { scenario, controller: controller.to_owned(), at }
    }

    #[test]
    fn a_controller_is_scored_beside_the_null_of_each_scenario() {
        let outcomes = [
            outcome(1, REFERENCE, 4.0, 4.0),
            outcome(1, "null", 4.0, 4.0),
            outcome(1, ALONE, 0.0, 8.0),
            outcome(1, "greedy", 6.0, 2.0),
            outcome(2, REFERENCE, 5.0, 5.0),
            outcome(2, "null", 5.0, 5.0),
            outcome(2, ALONE, 0.0, 10.0),
            outcome(2, "greedy", 2.0, 8.0),
        ];
        let scores = scores(&outcomes, 0);
        let [null, greedy] = &scores[..] else { panic!("{scores:?}") };
        assert_eq!((null.ff.mean, null.harmless, null.used.mean), (1.0, 1.0, 1.0));
        assert_eq!((greedy.scenarios, greedy.bottlenecks), (2, 2));
        assert_eq!((greedy.ff.p95, greedy.starved, greedy.harmless), (3.0, 0.5, 0.5));
        assert_eq!((greedy.share.p5, greedy.left.p5, greedy.taken.p95), (0.4, 0.5, 1.5));
        assert!((greedy.share.geometric_mean - 0.6f64.sqrt()).abs() < 1e-9);
        let worst = worst("greedy", &outcomes, 0, 1);
        assert_eq!((worst[0].scenario, worst[0].ff, worst[0].taken), (1, 3.0, 1.5));
    }
}
