//! How a controller did over all scenarios, beside the null of each.

use polypath_judge::Answer;
use serde::Serialize;

use super::Outcome;
use super::samples::{Samples, beside, ratio, samples};
use crate::scenarios::Scenario;

/// Starved: less of a bottleneck than this share of what a TCP beside it has.
const STARVED: f64 = 0.3;
/// One controller over all scenarios. A measure without samples is `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Score {
    /// Which.
    pub controller: String,
    /// In how many scenarios.
    pub scenarios: usize,
    /// At how many bottlenecks with TCPs beside it.
    pub bottlenecks: usize,
    /// Friendliness there: goodput over the mean of those TCPs.
    pub ff: Option<Spread>,
    /// Goodput there over what one TCP has in its place.
    pub taken: Option<Spread>,
    /// Share of these bottlenecks at which the friendliness is below 0.3.
    pub starved: Option<f64>,
    /// Goodput over what one TCP at each bottleneck has, by scenario.
    pub share: Option<Spread>,
    /// Goodput of all over what all have in the null, by scenario.
    pub used: Option<Spread>,
    /// Harm: what the TCPs there lose against being alone, over what they lose to the null.
    pub harm: Option<Spread>,
    /// Share of these bottlenecks at which the harm is at most 1.05.
    pub harmless: Option<f64>,
    /// Share of these bottlenecks at which it is certain (95 %) that the harm is more; none of single runs.
    pub harmful: Option<f64>,
    /// Share at which that is certain and its goodput is above the mean of those TCPs: where it is not, one TCP in its place mostly
    /// has even less, and the harm is the difference between two small shares.
    pub greedy: Option<f64>,
    /// What the TCPs there have over what they have in the null.
    pub left: Option<Spread>,
    /// Harm in delay: their mean round trip over that in the null.
    pub rtt: Option<Spread>,
}

/// How numbers lie.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
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
    /// What the TCPs at its worst bottleneck have over what they have in the null.
    pub left: f64,
    /// Friendliness there.
    pub ff: f64,
    /// The same of one TCP in its place.
    pub null_ff: f64,
    /// Goodput there over what one TCP has in its place.
    pub taken: f64,
}

/// The scores of all controllers, in the order of their outcomes; of single bottlenecks those count that hold `pipe` packets.
pub fn scores(outcomes: &[Outcome], pipe: u64) -> Vec<Score> {
    samples(outcomes, pipe).iter().map(|(name, samples)| Score::of(name, samples)).collect()
}

/// The `count` scenarios in which `controller` leaves the TCPs beside it least of what they have in the null.
pub fn worst(controller: &str, outcomes: &[Outcome], pipe: u64, count: usize) -> Vec<Worst> {
    let beside = beside(outcomes);
    let of = |o: &Outcome| {
        let null = beside.get(&o.scenario)?.null;
        let scenario = Scenario::draw(o.scenario);
        let counted = o.at.iter().zip(&null.at).enumerate().filter(|(n, _)| scenario.pipe(*n) >= pipe);
        let each = counted.filter_map(|(_, (at, null))| {
            Some(Worst {
                scenario: o.scenario,
                left: ratio(at.rival?, null.rival?)?,
                ff: ratio(at.ours, at.rival?)?,
                null_ff: ratio(null.ours, null.rival?)?,
                taken: ratio(at.ours, null.ours)?,
            })
        });
        each.min_by(|a, b| a.left.total_cmp(&b.left))
    };
    let mut all: Vec<Worst> = outcomes.iter().filter(|o| o.controller == controller).filter_map(of).collect();
    all.sort_by(|a, b| a.left.total_cmp(&b.left));
    all.truncate(count);
    all
}

impl Score {
    /// Of what was sampled of `controller`.
    fn of(controller: &str, samples: &Samples) -> Self {
        Self {
            controller: controller.to_owned(),
            scenarios: samples.share.len(),
            bottlenecks: samples.excess.len(),
            ff: Spread::of(&samples.ff),
            taken: Spread::of(&samples.taken),
            starved: part(&samples.ff, |ff| *ff < STARVED),
            share: Spread::of(&samples.share),
            used: Spread::of(&samples.used),
            harm: Spread::of(&samples.harm),
            harmless: part(&samples.excess, |excess| *excess <= 0.0),
            harmful: part(&samples.harmful, |harmful| *harmful == Answer::Yes),
            greedy: part(&samples.greedy, |greedy| *greedy),
            left: Spread::of(&samples.left),
            rtt: Spread::of(&samples.rtt),
        }
    }
}

/// The share of `all` that `counts`; none of nothing.
fn part<T>(all: &[T], counts: fn(&T) -> bool) -> Option<f64> {
    let counted = all.iter().filter(|value| counts(value)).count();
    (!all.is_empty()).then(|| counted as f64 / all.len() as f64)
}

impl Spread {
    /// Of `values`; none without any.
    fn of(values: &[f64]) -> Option<Self> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| values[(last as f64 * share).round() as usize];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let logs: f64 = values.iter().map(|v| v.max(1e-3).ln()).sum();
        let geometric_mean = (logs / values.len() as f64).exp();
        let median = (values[last / 2] + values[last.div_ceil(2)]) / 2.0;
        Some(Self { mean, geometric_mean, median, p5: at(0.05), p95: at(0.95) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::{At, REFERENCE};
    use super::*;
    use crate::scenarios::ALONE;

    fn outcome(scenario: u64, controller: &str, ours: f64, rival: f64) -> Outcome {
        let at = vec![At {
            ours,
            rival: Some(rival),
            rivals: vec![rival],
            all: ours + rival,
            rtt: Some(10.0 * ours),
        }];
        Outcome { scenario, controller: controller.to_owned(), at }
    }

    #[test]
    fn what_there_is_nothing_of_has_no_number() {
        let at = vec![At { ours: 4.0, rival: None, rivals: Vec::new(), all: 4.0, rtt: None }];
        let alone = |controller: &str| Outcome { at: at.clone(), ..outcome(1, controller, 0.0, 0.0) };
        let scores = scores(&[alone(REFERENCE), alone(ALONE), alone("polite")], 0);
        assert_eq!(
            (scores[0].bottlenecks, scores[0].ff, scores[0].starved, scores[0].harmless, scores[0].rtt),
            (0, None, None, None, None)
        );
        assert_eq!(scores[0].share.unwrap().mean, 1.0);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        let median = |values: &[f64]| Spread::of(values).unwrap().median;
        assert_eq!((median(&[1.0, 2.0]), median(&[3.0, 1.0, 2.0]), median(&[7.0])), (1.5, 2.0, 7.0));
    }

    #[test]
    fn a_tcp_that_carries_nothing_counts_as_a_thousandth_of_what_is_taken() {
        let beside = [outcome(1, REFERENCE, 4.0, 4.0), outcome(1, ALONE, 0.0, 8.0)];
        let score = |ours, rival| {
            let [null, alone] = beside.clone();
            let all = [null, alone, outcome(1, "greedy", ours, rival)];
            (scores(&all, 0).remove(0), worst("greedy", &all, 0, 1))
        };
        let (greedy, named) = score(8.0, 0.0);
        assert_eq!((greedy.ff.unwrap().p95, greedy.left.unwrap().p5, named[0].ff), (1000.0, 0.0, 1000.0));
        let (stalled, named) = score(0.0, 0.0);
        assert_eq!((stalled.bottlenecks, stalled.ff, stalled.taken.unwrap().p5), (1, None, 0.0));
        assert_eq!(named, []);
    }

    /// A TCP has 8 alone and loses 4 to the null, so it may lose 4.2.
    #[test]
    fn harm_is_certain_if_runs_differ_by_more_than_they_scatter() {
        let with = |controller: &str, rivals: &[f64]| {
            let mut outcome = outcome(1, controller, 4.0, rivals.iter().sum::<f64>() / rivals.len() as f64);
            outcome.at[0].rivals = rivals.to_vec();
            outcome
        };
        let null = [3.9, 4.0, 4.1];
        let score = |rivals: &[f64]| {
            let all = [with(REFERENCE, &null), with(ALONE, &[8.0; 3]), with("greedy", rivals)];
            let score = scores(&all, 0).remove(0);
            (score.harmful, score.greedy)
        };
        let (all, none) = (Some(1.0), Some(0.0));
        assert_eq!(score(&[3.5, 3.4, 3.6]), (all, all));
        assert_eq!(score(&[3.5, 2.5, 4.5]), (none, none), "it may be chance");
        assert_eq!(score(&[3.9, 3.8, 4.0]), (none, none), "less than 1.05");
        assert_eq!(score(&[1.0]), (None, None), "one run");
    }

    /// One TCP has 1 of 8 where the TCP beside it has 7, which keeps 5 beside the connection.
    #[test]
    fn harm_of_less_than_a_tcps_share_is_told_apart() {
        let of = |controller: &str, ours, rival: f64| {
            let mut outcome = outcome(1, controller, ours, rival);
            outcome.at[0].rivals = [-0.1, 0.0, 0.1].map(|off| rival + off).to_vec();
            outcome
        };
        let all = |ours| [of(REFERENCE, 1.0, 7.0), of(ALONE, 0.0, 8.0), of("modest", ours, 5.0)];
        let score = |ours| scores(&all(ours), 0).remove(0);
        assert_eq!((score(3.0).harmful, score(3.0).greedy), (Some(1.0), Some(0.0)));
        assert_eq!((score(6.0).harmful, score(6.0).greedy), (Some(1.0), Some(1.0)));
        assert_eq!(worst("modest", &all(3.0), 0, 1)[0].null_ff, 1.0 / 7.0);
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
        assert_eq!(null.harmless, Some(1.0));
        assert!([null.ff, null.used, null.harm].iter().all(|all| all.unwrap().mean == 1.0));
        assert_eq!((greedy.scenarios, greedy.bottlenecks), (2, 2));
        assert_eq!((greedy.starved, greedy.harmless), (Some(0.5), Some(0.5)));
        let [ff, share, left] = [greedy.ff, greedy.share, greedy.left].map(Option::unwrap);
        assert_eq!((ff.p95, share.p5, left.p5), (3.0, 0.4, 0.5));
        assert_eq!((greedy.taken.unwrap().p95, greedy.harm.unwrap().p95), (1.5, 1.5));
        let rtt = greedy.rtt.unwrap();
        assert_eq!((null.rtt.unwrap().mean, rtt.p5, rtt.p95), (1.0, 0.4, 1.5));
        assert!((share.geometric_mean - 0.6f64.sqrt()).abs() < 1e-9);
        let worst = worst("greedy", &outcomes, 0, 1);
        assert_eq!(worst, [Worst { scenario: 1, left: 0.5, ff: 3.0, null_ff: 1.0, taken: 1.5 }]);
    }
}
