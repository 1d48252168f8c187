//! What one run of a scenario gave.

use crate::results::Run;
use crate::scenarios::{ALONE, BUNDLE, NULL, Scenario, rival, twin};
use crate::spec::{Metric, What};

/// One controller in one scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The scenario's number.
    pub scenario: u64,
    /// The controller, or what stands in its place.
    pub controller: String,
    /// At each bottleneck.
    pub at: Vec<At>,
}

/// What TCPs have at a bottleneck; goodput in bit/s.
#[derive(Clone, PartialEq, Debug)]
pub struct At {
    /// Of the connection, or what stands in its place.
    pub ours: f64,
    /// Of the mean of the TCPs beside it; none without any.
    pub rival: Option<f64>,
    /// The same in each run of which this is the mean.
    pub rivals: Vec<f64>,
    /// Of all of them.
    pub all: f64,
    /// The mean smoothed round trip of the TCPs beside it, ms; none without any.
    pub rtt: Option<f64>,
}

impl Outcome {
    /// Of the run of scenario `number` with `controller`.
    pub(super) fn of(number: u64, controller: &str, run: &Run) -> Self {
        let scenario = Scenario::draw(number);
        let at = (0..scenario.bottlenecks.len()).map(|n| At::of(&scenario, n, run)).collect();
        Self { scenario: number, controller: controller.to_owned(), at }
    }

    /// Whether `other` is of the same controller in the same scenario.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.scenario, &self.controller) == (other.scenario, &other.controller)
    }

    /// The mean of some of one controller in one scenario, each value over those that have it.
    pub(super) fn mean(same: &[Self]) -> Self {
        let of = |n: usize, value: fn(&At) -> Option<f64>| {
            let known: Vec<f64> = same.iter().filter_map(|o| value(&o.at[n])).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let at = |n| At {
            ours: of(n, |at| Some(at.ours)).unwrap_or_default(),
            rival: of(n, |at| at.rival),
            rivals: same.iter().flat_map(|o| o.at[n].rivals.iter().copied()).collect(),
            all: of(n, |at| Some(at.all)).unwrap_or_default(),
            rtt: of(n, |at| at.rtt),
        };
        Self { at: (0..same[0].at.len()).map(at).collect(), ..same[0].clone() }
    }

    /// Goodput of the connection, bit/s.
    pub fn ours(&self) -> f64 {
        self.at.iter().map(|at| at.ours).sum()
    }

    /// Goodput of all TCPs, bit/s.
    pub fn all(&self) -> f64 {
        self.at.iter().map(|at| at.all).sum()
    }
}

impl At {
    fn of(scenario: &Scenario, n: usize, run: &Run) -> Self {
        let value = |metric, flows, path| {
            run.value(&What { metric, flows, path, link: None, solo: None, from: None, to: None })
        };
        let goodput =
            |flow: &str, path| value(Metric::Goodput, vec![flow.to_owned()], path).unwrap_or_default();
        let ours = match run.cell.as_str() {
            NULL => goodput(&twin(n), None),
            ALONE => 0.0,
            _ => scenario.through(n).map(|path| goodput(BUNDLE, Some(path))).sum(),
        };
        let names: Vec<String> = (0..scenario.bottlenecks[n].rivals).map(|j| rival(n, j)).collect();
        let goodput_of_all: f64 = names.iter().map(|name| goodput(name, None)).sum();
        let count = names.len() as f64;
        let rtt = value(Metric::MeanSrtt, names, None).filter(|_| count > 0.0);
        let rival = (count > 0.0).then(|| goodput_of_all / count);
        Self { ours, rival, rivals: rival.into_iter().collect(), all: ours + goodput_of_all, rtt }
    }
}
