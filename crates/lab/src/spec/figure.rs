//! Figures: what is drawn of the ensemble, with the paper's own points beside it.

use std::collections::BTreeSet;

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::cell::chosen;
use super::select::{Number, Selector};
use super::{Cell, Metric, Spec};
use crate::units::Human;

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Over what it is drawn.
    pub kind: FigureKind,
    /// What it shows, in one line: `"Fig. 5: two-level mHIP and TCP"`.
    pub title: String,
    /// What to see in it, and what to make of it.
    #[serde(default)]
    pub caption: String,
    /// What is drawn of every series that does not say otherwise. Default: throughput.
    #[serde(default = "throughput")]
    pub metric: Metric,
    /// The lines.
    pub series: Vec<Series>,
    /// `time` and `cdf` only, in which cell of the grid. Default: each cell has a figure of its own.
    #[serde(default)]
    pub cell: Option<String>,
    /// `time` only: width of a bin. Default: 100 ms.
    #[serde(default = "tenth")]
    pub bin: Human<Duration>,
    /// `time` only: only the run with the first seed. Default: false, mean and band over all seeds.
    #[serde(default)]
    pub one_run: bool,
    /// `time` only: drawn from here. Default: the start.
    #[serde(default)]
    pub from: Option<Human<Duration>>,
    /// `time` only: drawn to here. Default: the end.
    #[serde(default)]
    pub to: Option<Human<Duration>>,
    /// `sweep`, `box`, `violin`, `heat`: the axis of the grid along which it is drawn, by its key or name.
    #[serde(default)]
    pub axis: Option<String>,
    /// `heat` only: the axis of the grid whose values are the rows, by its key or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// `sweep` only: where the values of the axis stand. Default: the numbers with which their labels
    /// begin; side by side if one has none or two have the same.
    #[serde(default)]
    pub x: Vec<f64>,
    /// `time`, `sweep` only: what the band around a line is. Default: the 95 % confidence interval of the mean.
    #[serde(default)]
    pub band: Band,
    /// What the paper published, a CSV file beside the spec with the columns `series,x,y`: labels of
    /// series, and numbers in the units of the axes; on an axis whose values stand side by side, `x` is a label of it.
    #[serde(default)]
    pub published: Option<String>,
    /// Default: time in s, or the axis.
    #[serde(default)]
    pub x_label: Option<String>,
    /// Default: the metric and its unit.
    #[serde(default)]
    pub y_label: Option<String>,
    /// Logarithmic scale across. Default: false.
    #[serde(default)]
    pub log_x: bool,
    /// Logarithmic scale upwards. Default: false.
    #[serde(default)]
    pub log_y: bool,
    /// Upper end of the scale upwards, in the unit of the axis. Default: what is drawn.
    #[serde(default)]
    pub y_max: Option<f64>,
    /// A horizontal line at this height, in the unit of the axis: a capacity, a ratio of 1.
    #[serde(default)]
    pub line: Option<f64>,
}

impl Figure {
    /// The place in the grid of `spec` of the axis with this key or name.
    pub(crate) fn axis(spec: &Spec, name: Option<&str>) -> Option<usize> {
        let name = name?;
        spec.grid.iter().position(|a| a.called() == name || a.key.as_deref() == Some(name))
    }

    /// Where `labels` of its axis stand, if that is on a scale of numbers.
    pub(crate) fn numbers(&self, labels: &[String]) -> Option<Vec<f64>> {
        match (self.x.is_empty(), self.kind) {
            (_, FigureKind::Box | FigureKind::Violin) => None,
            (true, _) => leading_numbers(labels),
            (false, _) => Some(self.x.clone()),
        }
    }

    /// The labels of its axis, if they stand side by side.
    pub(crate) fn named_places(&self, spec: &Spec, cells: &[Cell]) -> Option<Vec<String>> {
        let labels = labels(cells, Self::axis(spec, self.axis.as_deref())?);
        self.numbers(&labels).is_none().then_some(labels)
    }

    /// What its lines are called.
    pub(crate) fn lines(&self, spec: &Spec, cells: &[Cell]) -> Vec<String> {
        let axis = Self::axis(spec, self.axis.as_deref());
        let of = |series: &Series| {
            let own = series.of.cell.as_deref();
            let others: BTreeSet<String> = match self.kind {
                FigureKind::Time => return vec![series.name()],
                FigureKind::Cdf => {
                    chosen(cells, own.or(self.cell.as_deref())).iter().map(|c| c.label.clone()).collect()
                }
                _ => chosen(cells, own).iter().map(|c| c.beside(axis)).collect(),
            };
            let several = others.len() > 1;
            others.iter().map(|other| series.line(self, several, other)).collect()
        };
        self.series.iter().flat_map(of).collect()
    }
}

/// The labels of an axis in their order.
pub(crate) fn labels(cells: &[Cell], axis: usize) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for label in cells.iter().map(|c| &c.values[axis]) {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    labels
}

/// The numbers with which all labels begin, if they tell them apart.
fn leading_numbers(labels: &[String]) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = labels.iter().map(|l| leading_number(l)).collect::<Option<_>>()?;
    let repeated = (1..numbers.len()).any(|n| numbers[..n].contains(&numbers[n]));
    (!repeated).then_some(numbers)
}

/// The number with which `label` begins, `144` of `144p`.
fn leading_number(label: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    label[..label.find(|c| !is_part(c)).unwrap_or(label.len())].parse().ok()
}

/// Over what a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Over time in a run: rates in bins, or states at their ends.
    Time,
    /// Over an axis of the grid: a statistic of the ensemble of each cell.
    Sweep,
    /// The distribution of the seeds' values, a line for each cell.
    Cdf,
    /// Over an axis of the grid: quartiles, median and whiskers of the seeds' values in each cell.
    Box,
    /// Over an axis of the grid: the density of the seeds' values in each cell.
    Violin,
    /// Over two axes of the grid: a statistic of the ensemble of each cell, as colours.
    Heat,
}

/// What the band around a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// The 95 % confidence interval of the mean.
    #[default]
    Ci95,
    /// One standard deviation to either side.
    Sd,
    /// From the smallest to the largest.
    Range,
}

/// A line of a figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Series {
    /// What it is called. Default: flow and path.
    pub label: Option<String>,
    /// Which number is drawn. Default: the figure's metric. Ratios, cells, statistics and measured times
    /// are for all kinds but `time`.
    #[serde(flatten)]
    pub of: Number,
}

impl Series {
    /// The number that is meant in `figure`.
    pub fn selector(&self, figure: &Figure) -> Selector {
        self.of.selector(figure.metric)
    }

    /// What its line of the cells `other` is called, if it has `several`.
    pub(crate) fn line(&self, figure: &Figure, several: bool, other: &str) -> String {
        let unnamed = figure.series.len() == 1 && self.label.is_none();
        match (several, unnamed) {
            (false, _) => self.name(),
            (true, true) => other.to_owned(),
            (true, false) => format!("{}, {other}", self.name()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        let path = |p: Option<usize>| p.map_or(String::new(), |p| format!(" path {p}"));
        let of = &self.of;
        self.label.clone().unwrap_or_else(|| match (&of.flow, &of.link) {
            (Some(flow), _) => match of.over.as_ref().or(of.over_path.and(Some(flow))) {
                Some(over) => format!("{flow}{} / {over}{}", path(of.path), path(of.over_path)),
                None => format!("{flow}{}", path(of.path)),
            },
            (None, Some(link)) => link.clone(),
            (None, None) => of.flows.join(" + "),
        })
    }
}

fn throughput() -> Metric {
    Metric::Throughput
}

/// Width of a bin where none is written.
pub(super) const DEFAULT_BIN: Human<Duration> = Human(Duration::from_millis(100));

fn tenth() -> Human<Duration> {
    DEFAULT_BIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_begin_with_numbers() {
        assert_eq!(
            ["144p", "-1.5bdp", "20s", "x1"].map(leading_number),
            [Some(144.0), Some(-1.5), Some(20.0), None]
        );
        let numbers = |labels: [&str; 2]| leading_numbers(&labels.map(str::to_owned));
        assert_eq!(numbers(["10p", "5p"]), Some(vec![10.0, 5.0]));
        assert_eq!((numbers(["10_10", "10_20"]), numbers(["10p", "p"])), (None, None));
    }
}
