//! What an experiment must show: bands and orderings of its metrics over the ensemble, beside what
//! the paper says and what nothing would show.

use serde::{Deserialize, Serialize};

use super::Spec;
use super::select::{Number, Selector};
use crate::metric::Metric;

/// One expectation: a statistic of a metric over the ensemble of one cell lies in a band, is what a
/// paper published, or grows from each cell of a list to the next.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Short name of the claim, for the tables of `lab check` and `lab report`.
    pub claim: String,
    /// Which number it is about. Its metric has no default.
    #[serde(flatten)]
    pub of: Number,
    /// The band of `share_within` and `share_all_within`, ends included.
    pub within: Option<(f64, f64)>,
    /// It is at least this.
    pub min: Option<f64>,
    /// It is at most this.
    pub max: Option<f64>,
    /// Why the band is not met: it was set before there were results, and they refute it. Then that it is unmet decides
    /// nothing, and that it is met is an error.
    pub unmet: Option<String>,
    /// It does not fall from one of these cells to the next; the order that `spearman` is about.
    pub ascending: Vec<String>,
    /// What the paper says it is, in the metric's own unit. Needs a `margin`.
    pub published: Option<f64>,
    /// How far from `published` still counts as it, in the same unit: what the paper's own conclusions leave open.
    pub margin: Option<f64>,
    /// How many runs `published` is the mean of. Default: 1.
    pub runs: Option<u32>,
    /// The paper reads its value as no difference ("friendly"). Default: false, it claims an effect.
    pub equal: bool,
    /// The same experiment with plain TCP in the place of the multipath connection's path, the claimed one's or, of a claim about a
    /// competitor, that beside it: the same number is taken there. What differs in anything else is refused. A cell of this experiment (its label, or the values in
    /// which it differs), or `group/name` of another experiment, `group/name:cell` if that has cells.
    pub null: Option<String>,
    /// From where this expectation comes.
    pub source: String,
}

/// A number that each run's values have, and that nothing is expected of.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Measure {
    /// What its rows are called, in the column `claim`.
    pub claim: String,
    /// Which number. Its metric has no default, and its statistic no meaning.
    #[serde(flatten)]
    pub of: Number,
}

impl Expect {
    /// The number that is meant.
    pub fn selector(&self) -> Selector {
        self.of.selector(Metric::Goodput)
    }
}

impl Measure {
    /// The number that is meant.
    pub fn selector(&self) -> Selector {
        self.of.selector(Metric::Goodput)
    }
}

impl Spec {
    /// The numbers that are expected or measured, with their claims.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (&str, Selector)> {
        let expected = self.expect.iter().map(|e| (e.claim.as_str(), e.selector()));
        expected.chain(self.measure.iter().map(|m| (m.claim.as_str(), m.selector())))
    }
}
