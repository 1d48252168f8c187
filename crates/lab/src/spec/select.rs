//! Which number of a run is meant: what expectations and figures have in common.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::{Metric, Spec};
use crate::units::Human;

/// The keys that say which number is meant, in expectations and in the series of figures alike.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Number {
    /// What is measured, per run.
    pub metric: Option<Metric>,
    /// Of which flow.
    pub flow: Option<String>,
    /// Of these flows: added up; `jain` compares them.
    pub flows: Vec<String>,
    /// Only on this path of the flow, from 0.
    pub path: Option<usize>,
    /// At which link and in which direction, `"r->b"`: for `queue`, `drops`, `carried` and `ff_bottleneck`.
    pub link: Option<String>,
    /// The cell in which the flow is alone: for `harm`.
    pub solo: Option<String>,
    /// Divided by the same metric of this flow: `metric = "goodput"` makes it a friendliness factor.
    pub over: Option<String>,
    /// Divided by the same metric on this path of `over`, from 0; without `over` of the same flow.
    pub over_path: Option<usize>,
    /// Divided by this metric, of the same flow unless `over` names another.
    pub over_metric: Option<Metric>,
    /// Divided by the number of the run with the same seed in this cell.
    pub over_cell: Option<String>,
    /// Divided by the same number measured from this time. Default: `from`.
    pub over_from: Option<Human<Duration>>,
    /// Divided by the same number measured to this time. Default: `to`.
    pub over_to: Option<Human<Duration>>,
    /// Measured from this time. Default: `measure_from`.
    pub from: Option<Human<Duration>>,
    /// Measured to this time. Default: the end.
    pub to: Option<Human<Duration>>,
    /// Which statistic over the seeds. Default: the mean.
    pub statistic: Statistic,
    /// In which cell of the grid: its label, or values that it is made of. Default: in each.
    pub cell: Option<String>,
}

/// One number of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct What {
    /// What is measured.
    pub metric: Metric,
    /// Of these flows; several are added up (but for [`Metric::Jain`], which compares them).
    pub flows: Vec<String>,
    /// Of this path only, from 0.
    pub path: Option<usize>,
    /// At this link and direction, `r->b`.
    pub link: Option<String>,
    /// Against what the flow has in this cell, where it is alone.
    pub solo: Option<String>,
    /// From this time. Default: `measure_from`.
    pub from: Option<Duration>,
    /// To this time. Default: the end.
    pub to: Option<Duration>,
}

/// One number of a run, or the ratio of two.
#[derive(Clone, PartialEq, Debug)]
pub struct Selector {
    /// The number.
    pub what: What,
    /// Divided by this one …
    pub over: Option<What>,
    /// … of the run with the same seed in this cell.
    pub over_cell: Option<String>,
}

/// A statistic over the seeds of an ensemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// Whether it has no unit, whatever it is of.
    pub fn is_bare(self) -> bool {
        self.is_share() || self == Self::Spearman
    }

    /// Whether the error rates of a finding on it are known.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Mean | Self::GeometricMean | Self::Spearman) || self.is_share()
    }
}

impl Number {
    /// The number that is meant; `metric` if none is named.
    pub fn selector(&self, metric: Metric) -> Selector {
        let metric = self.metric.unwrap_or(metric);
        let flows: Vec<String> = self.flow.iter().chain(&self.flows).cloned().collect();
        let (from, to) = (self.from.map(|t| t.0), self.to.map(|t| t.0));
        let (link, solo) = (self.link.clone(), self.solo.clone());
        let what = What { metric, flows, path: self.path, link, solo, from, to };
        let over = self.is_ratio().then(|| What {
            metric: self.over_metric.unwrap_or(metric),
            flows: self.over.as_ref().map_or_else(|| what.flows.clone(), |f| vec![f.clone()]),
            solo: what.solo.clone().filter(|_| self.over_metric.is_none_or(|m| m == metric)),
            path: if self.over.is_some() { self.over_path } else { self.over_path.or(self.path) },
            from: self.over_from.map_or(from, |t| Some(t.0)),
            to: self.over_to.map_or(to, |t| Some(t.0)),
            ..what.clone()
        });
        Selector { what, over, over_cell: self.over_cell.clone() }
    }

    /// Whether it is divided by another.
    pub fn is_ratio(&self) -> bool {
        let of_another_time = self.over_from.is_some() || self.over_to.is_some();
        let of_another_flow = self.over.is_some() || self.over_path.is_some();
        of_another_time || of_another_flow || self.over_metric.is_some() || self.over_cell.is_some()
    }
}

impl What {
    /// From when to when it is measured in `spec`.
    pub fn window(&self, spec: &Spec) -> (Duration, Duration) {
        (self.from.unwrap_or(spec.measure_from.0), self.to.unwrap_or(spec.duration.0))
    }
}

impl Selector {
    /// The number and what it is divided by.
    pub fn whats(&self) -> impl Iterator<Item = &What> {
        std::iter::once(&self.what).chain(&self.over)
    }

    /// Whether it is a ratio.
    pub fn is_ratio(&self) -> bool {
        self.over.is_some()
    }
}
