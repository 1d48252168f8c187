//! What an experiment must show: bands and orderings of its metrics over the ensemble, beside what
//! the paper says and what nothing would show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Spec;
use super::select::{Number, Selector};

/// One expectation: a statistic of a metric over the ensemble of one cell lies in a band, is what a
/// paper published, or grows from each cell of a list to the next.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
    /// The paper claims that there is no difference from the null. Default: false, it claims an effect.
    pub equal: bool,
    /// The same experiment with plain TCP in the place of the multipath connection's path: the same number is
    /// taken there. What differs in anything else is refused. A cell of this experiment (its label, or the values in
    /// which it differs), or `group/name` of another experiment, `group/name:cell` if that has cells.
    pub null: Option<String>,
    /// From where this expectation comes.
    pub source: String,
}

/// A number that each run's values have, and that nothing is expected of.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Measure {
    /// What its rows are called, in the column `claim`.
    pub claim: String,
    /// Which number. Its metric has no default, and its statistic no meaning.
    #[serde(flatten)]
    pub of: Number,
}

/// What is measured in one run, in the measured time unless it says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Stream bytes that arrived, each once (UDP: bytes that arrived), bit/s; of a flow that finished, over
    /// its life. Of one path: stream bytes acknowledged over it, each once.
    Goodput,
    /// Payload bytes that arrived, duplicates included, headers not, bit/s. UDP: with headers.
    Throughput,
    /// Goodput over the sum of the rates of the flow's bottlenecks.
    Utilisation,
    /// From start to the last acknowledgment, s; missing if the flow was not done. Of the whole run.
    Completion,
    /// Data segments sent, retransmissions included.
    Sent,
    /// Data segments sent again.
    Retransmissions,
    /// Data segments that arrived above the next expected byte; UDP: after a later one.
    OutOfOrder,
    /// Retransmission timeouts.
    Timeouts,
    /// Smoothed round trip time at the end of the measured time, mean over the paths, ms.
    Srtt,
    /// Packets lost over packets sent (UDP), 0 to 1. Of the whole run.
    LossRate,
    /// Mean congestion window, packets (segments of the path's size), sampled every 10 ms; the sum
    /// over the paths if none is named.
    Window,
    /// The connection's estimate of the path's rate at the end of the measured time, bit/s; the sum
    /// over the paths if none is named.
    EstimatedRate,
    /// Mean number of packets that wait in the queue of `link`, without the one in service, sampled
    /// every 10 ms.
    Queue,
    /// Packets dropped at `link`, for any reason.
    Drops,
    /// What `link` delivered to its far end, headers included, bit/s.
    Carried,
    /// Jain's index of the goodput of `flows`: 1 if all have the same, 1/n if one has all.
    Jain,
    /// Mean reordering extent of the reordered packets (RFC 4737 §4.2), in the order in which they
    /// were sent, packets; 0 without reordering.
    ReorderingExtent,
    /// Largest reordering extent so far, packets.
    ReorderingExtentMax,
    /// Data packets that arrived after one sent later, over all that arrived (RFC 4737 §3.5).
    ReorderedRatio,
    /// Payload that arrived since the start of the run, packets (segments of the path's size): for
    /// sequence plots.
    Sequence,
    /// Share of its goodput that the flow loses beside the others: 1 − its goodput over that in the cell `solo`, where
    /// they send nothing (Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019).
    Harm,
    /// Friendliness factor at a bottleneck: goodput of those paths of the flow that lead through `link`, over the mean
    /// goodput that another TCP flow has through it.
    FfBottleneck,
}

/// A statistic over the seeds of an ensemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Geometric mean: right for ratios.
    GeometricMean,
    /// Median.
    Median,
    /// Standard deviation.
    Sd,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Share of the seeds for which the value lies in `within`, 0 to 1.
    ShareWithin,
    /// Share of the seeds for which each of `flows`, over their mean, or each path of `flow`, over `over`, lies
    /// in `within`, 0 to 1.
    ShareAllWithin,
    /// Spearman's rank correlation between the place of a cell in `ascending` and its mean, −1 to 1.
    Spearman,
}

impl Statistic {
    /// Whether it is a share of the seeds.
    pub fn is_share(self) -> bool {
        matches!(self, Self::ShareWithin | Self::ShareAllWithin)
    }

    /// Whether the error rates of a finding on it are known.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Mean | Self::GeometricMean | Self::Spearman) || self.is_share()
    }
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

impl Metric {
    /// Whether it is counted over a time, so that it can be measured over a part of the run.
    pub fn has_window(self) -> bool {
        !matches!(self, Self::Completion | Self::LossRate)
    }

    /// Whether it is of a link and not of a flow.
    pub fn is_of_link(self) -> bool {
        matches!(self, Self::Queue | Self::Drops | Self::Carried)
    }

    /// Whether it is taken at a link.
    pub fn needs_link(self) -> bool {
        self.is_of_link() || self == Self::FfBottleneck
    }

    /// Whether one path has it.
    pub fn is_of_path(self) -> bool {
        use Metric::*;
        matches!(
            self,
            Goodput | Throughput | Sent | Retransmissions | Srtt | Window | EstimatedRate | Sequence
        )
    }

    /// Its name in spec files: `goodput`.
    pub fn name(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }

    /// The unit of its values as runs have them.
    pub fn base_unit(self) -> &'static str {
        match self.unit() {
            ("Mbit/s", _) => "bit/s",
            (unit, _) => unit,
        }
    }

    /// The unit for people, and what to multiply by to get there.
    pub fn unit(self) -> (&'static str, f64) {
        use Metric::*;
        match self {
            Goodput | Throughput | EstimatedRate | Carried => ("Mbit/s", 1e-6),
            Completion => ("s", 1.0),
            Srtt => ("ms", 1.0),
            Window | Queue | Sequence | ReorderingExtent | ReorderingExtentMax => ("packets", 1.0),
            _ => ("", 1.0),
        }
    }
}
