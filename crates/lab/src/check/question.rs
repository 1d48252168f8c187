//! One expectation, asked of an ensemble.

use polypath_wire::Duration;

use super::statistics::{spearman, statistic, values};
use super::{Ensemble, Null, Verdict, short};
use crate::judge::{Evidence, Interval, judge, single_runs};
use crate::results::Summary;
use crate::spec::{Cell, Expect, Selector, Statistic, What, beside, chosen};
use crate::units::Human;

/// An expectation of an ensemble, and what it may be compared with.
pub struct Question<'a> {
    pub expect: &'a Expect,
    pub selector: Selector,
    pub ensemble: Ensemble<'a>,
    pub others: &'a [Ensemble<'a>],
}

impl Question<'_> {
    /// One verdict for each cell or step that it is about.
    pub fn answers(&self) -> Vec<Verdict> {
        let (experiment, runs) = self.ensemble;
        let expect = self.expect;
        let there = |c: &&Cell| runs.iter().any(|r| r.cell == c.label);
        if expect.of.statistic == Statistic::Spearman {
            return vec![self.ranks()];
        }
        let mut verdicts = Vec::new();
        if expect.min.is_some() || expect.max.is_some() || expect.published.is_some() {
            let cells = chosen(&experiment.cells, expect.of.cell.as_deref());
            verdicts.extend(cells.into_iter().filter(there).map(|cell| self.in_cell(cell)));
        }
        let known = |c: &String| !self.pooled(c).is_empty();
        let steps = expect.ascending.windows(2).filter(|s| s.iter().all(known));
        verdicts.extend(steps.map(|s| self.step(&s[0], &s[1])));
        verdicts
    }

    fn in_cell(&self, cell: &Cell) -> Verdict {
        let values = values(&self.selector, cell, self.ensemble);
        let runs = self.ensemble.1.iter().filter(|r| r.cell == cell.label).count();
        let found = statistic(self.expect.of.statistic, self.expect.within, &values);
        let (value, ci95) = found.map_or((None, None), |(v, ci)| (Some(v), ci));
        let single = Summary::of(&values)
            .filter(|_| self.expect.of.statistic.is_average())
            .map(|s| single_runs(&s, self.selector.is_ratio()));
        let null = self.null(cell);
        let finding = self.expect.published.zip(value).map(|(published, value)| {
            let half = ci95.unwrap_or(0.0);
            let one = self.selector.is_ratio().then_some(1.0);
            judge(&Evidence {
                published,
                ours: Interval { low: value - half, high: value + half },
                single,
                null: null.as_ref().map(|n| n.single),
                neutral: null.as_ref().map(|n| n.mean).or(one),
            })
        });
        Verdict {
            claim: self.expect.claim.clone(),
            cell: cell.label.clone(),
            expectation: format!("{}{}{}", self.subject(), in_cell(&cell.label), self.band()),
            unit: self.unit(),
            value,
            ci95,
            n: values.len(),
            of: runs,
            single,
            published: self.expect.published,
            null,
            finding,
            met: values.len() == runs && value.is_some_and(|v| self.holds(v)),
            source: self.expect.source.clone(),
        }
    }

    fn holds(&self, value: f64) -> bool {
        self.expect.min.is_none_or(|min| value >= min) && self.expect.max.is_none_or(|max| value <= max)
    }

    /// The same number in the null's runs.
    fn null(&self, cell: &Cell) -> Option<Null> {
        let name = self.expect.null.as_deref()?;
        let (ensemble, null_cell) = match name.contains('/') {
            false => (self.ensemble, beside(&self.ensemble.0.cells, cell, name)?),
            true => {
                let (experiment, label) = name.split_once(':').unwrap_or((name, ""));
                let other = *self.others.iter().find(|(e, _)| e.name == experiment)?;
                let cells = chosen(&other.0.cells, Some(label).filter(|l| !l.is_empty()));
                (other, *cells.first()?)
            }
        };
        let values = values(&self.selector, null_cell, ensemble);
        let s = Summary::of(&values)?;
        let mean = s.geometric_mean.filter(|_| self.selector.is_ratio()).unwrap_or(s.mean);
        Some(Null { of: name.to_owned(), mean, single: single_runs(&s, self.selector.is_ratio()), n: s.n })
    }

    /// The values of all cells that `cell` means.
    fn pooled(&self, cell: &str) -> Vec<f64> {
        let cells = &self.ensemble.0.cells;
        let wanted = chosen(cells, self.expect.of.cell.as_deref());
        let both = chosen(cells, Some(cell)).into_iter().filter(|c| wanted.contains(c));
        both.flat_map(|c| values(&self.selector, c, self.ensemble)).collect()
    }

    fn step(&self, low: &str, high: &str) -> Verdict {
        let of = |cell| Some(statistic(self.expect.of.statistic, self.expect.within, &self.pooled(cell))?.0);
        let (a, b) = (of(low), of(high));
        Verdict {
            claim: self.expect.claim.clone(),
            expectation: format!("{} not lower in {high} than in {low}: difference", self.subject()),
            unit: self.unit(),
            value: a.zip(b).map(|(a, b)| b - a),
            n: self.pooled(low).len().min(self.pooled(high).len()),
            met: a.zip(b).is_some_and(|(a, b)| b >= a),
            source: self.expect.source.clone(),
            ..Verdict::empty()
        }
    }

    /// Spearman's rank correlation over the cells of `ascending`.
    fn ranks(&self) -> Verdict {
        let means: Vec<f64> =
            self.expect.ascending.iter().filter_map(|c| Some(Summary::of(&self.pooled(c))?.mean)).collect();
        let complete = means.len() == self.expect.ascending.len();
        let value = complete.then(|| spearman(&means));
        let finding = self.expect.published.zip(value).map(|(published, value)| {
            let ours = Interval { low: value, high: value };
            judge(&Evidence { published, ours, single: None, null: None, neutral: Some(0.0) })
        });
        Verdict {
            claim: self.expect.claim.clone(),
            expectation: format!(
                "{} rises along {}{}",
                self.subject(),
                self.expect.ascending.join(" "),
                self.band()
            ),
            value,
            n: means.len(),
            published: self.expect.published,
            finding,
            met: value.is_some_and(|v| self.holds(v)),
            source: self.expect.source.clone(),
            ..Verdict::empty()
        }
    }

    fn unit(&self) -> (&'static str, f64) {
        match self.selector.is_ratio() || self.expect.of.statistic == Statistic::ShareWithin {
            true => ("", 1.0),
            false => self.selector.what.metric.unit(),
        }
    }

    fn band(&self) -> String {
        let (unit, factor) = self.unit();
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let shown = |v: f64| short(v * factor);
        match (self.expect.min, self.expect.max) {
            (Some(min), Some(max)) => format!(" from {} to {}{unit}", shown(min), shown(max)),
            (Some(min), None) => format!(" at least {}{unit}", shown(min)),
            (None, Some(max)) => format!(" at most {}{unit}", shown(max)),
            (None, None) => String::new(),
        }
    }

    fn subject(&self) -> String {
        let name = |value: serde_json::Value| value.as_str().unwrap_or_default().replace('_', " ");
        let statistic = match self.expect.of.statistic {
            Statistic::ShareWithin => {
                let (low, high) = self.expect.within.unwrap_or_default();
                format!("share of seeds with {low} to {high}")
            }
            Statistic::Spearman => "rank correlation".to_owned(),
            other => name(serde_json::json!(other)),
        };
        let what = |w: &What| {
            let of = match (&w.link, w.flows.join("+")) {
                (Some(link), flows) if flows.is_empty() => link.clone(),
                (Some(link), flows) => format!("{flows} at {link}"),
                (None, flows) => flows,
            };
            format!("{of}{}{}", w.path.map_or(String::new(), |p| format!(" path {p}")), time(w))
        };
        let (top, below) = (&self.selector.what, self.selector.over.as_ref());
        let metric = name(serde_json::json!(top.metric));
        let Some(below) = below else { return format!("{statistic} of {metric} of {}", what(top)) };
        let metric_below = match below.metric == top.metric {
            true => String::new(),
            false => format!("{} of ", name(serde_json::json!(below.metric))),
        };
        let there = self.selector.over_cell.as_ref().map_or(String::new(), |c| format!(" in {c}"));
        format!("{statistic} of {metric} {}/{metric_below}{}{there}", what(top), what(below))
    }
}

/// When `what` is measured, if that is its own time.
fn time(what: &What) -> String {
    let shown = |t: Option<Duration>, open: &str| t.map_or(open.to_owned(), |t| Human(t).to_string());
    match (what.from, what.to) {
        (None, None) => String::new(),
        (from, to) => format!(" ({}–{})", shown(from, ""), shown(to, "end")),
    }
}

fn in_cell(cell: &str) -> String {
    if cell.is_empty() { String::new() } else { format!(" in {cell}") }
}
