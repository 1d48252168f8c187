//! What an experiment must show: bands and orderings of its metrics over the ensemble.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One expectation: a statistic of a metric over the ensemble of one cell lies in a band, or grows
/// from each flow, or each cell, of a list to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What is measured, per run.
    pub metric: Metric,
    /// Of which flow.
    pub flow: String,
    /// Divided by the same metric of this flow: `metric = "goodput"` makes it a friendliness factor.
    #[serde(default)]
    pub over: Option<String>,
    /// Which statistic over the seeds. Default: the mean.
    #[serde(default)]
    pub statistic: Statistic,
    /// In which cell of the grid, by its label. Default: in each.
    #[serde(default)]
    pub cell: Option<String>,
    /// It is at least this.
    #[serde(default)]
    pub min: Option<f64>,
    /// It is at most this.
    #[serde(default)]
    pub max: Option<f64>,
    /// It does not fall from one of these cells to the next.
    #[serde(default)]
    pub ascending: Vec<String>,
    /// From where this expectation comes.
    #[serde(default)]
    pub source: String,
}

/// What is measured of a flow in one run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Stream bytes delivered in order (UDP: bytes that arrived) over the measured time, bit/s.
    Goodput,
    /// Goodput over the sum of the rates of the flow's bottlenecks.
    Utilisation,
    /// From start to the last acknowledgment, s; missing if the flow was not done.
    Completion,
    /// Data segments sent again.
    Retransmissions,
    /// Data segments that arrived out of order.
    OutOfOrder,
    /// Retransmission timeouts.
    Timeouts,
    /// Mean smoothed round trip time at the end over the paths, ms.
    Srtt,
    /// Packets lost over packets sent (UDP), 0 to 1.
    LossRate,
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
}
