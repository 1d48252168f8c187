//! One expectation, asked of an ensemble.

use polypath_judge::{Asked, Claim, Interval, Judgement, LEVEL, Scale, judge, judge_ranks, power, spearman};
use polypath_wire::Duration;

use super::statistics::{all_within, statistic, values};
use super::{Ensemble, Null, Verdict, short};
use crate::results::Summary;
use crate::spec::{Cell, Expect, Selector, Statistic, What, beside, chosen, in_null};
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
        if self.is_of_cells() {
            let cells = chosen(&experiment.cells, expect.of.cell.as_deref());
            verdicts.extend(cells.into_iter().filter(there).map(|cell| self.in_cell(cell)));
        }
        let known = |c: &String| !self.pooled(c).is_empty();
        let steps = expect.ascending.windows(2).filter(|s| s.iter().all(known));
        verdicts.extend(steps.map(|s| self.step(&s[0], &s[1])));
        verdicts
    }

    fn in_cell(&self, cell: &Cell) -> Verdict {
        let values = self.values(&self.selector, cell, self.ensemble);
        let runs = self.ensemble.1.iter().filter(|r| r.cell == cell.label).count();
        let found = statistic(self.expect.of.statistic, self.expect.within, &values);
        let (value, ci95) = found.map_or((None, None), |(v, ci)| (Some(v), ci));
        let ours = self.judged(&values);
        let null = self.null(cell);
        let verdict = Verdict {
            value,
            ci95,
            n: values.len(),
            of: runs,
            single: ours.as_ref().map(|ours| ours.means_of(1)),
            null: null.as_ref().map(|(null, _)| null.clone()),
            met: values.len() == runs && value.is_some_and(|v| self.holds(v)),
            ..self.of_cell(cell)
        };
        let Some((claim, ours)) = self.claim().zip(ours) else { return verdict };
        if let (Some(name), None) = (&self.expect.null, &null) {
            let reason = format!("not judged: the null {name} was not run");
            return Verdict { reason: Some(reason), ..verdict };
        }
        let null = null.and_then(|(_, null)| null);
        let asked = Asked::of(&claim, &ours, null.as_ref());
        let Judgement { finding, reason } = judge(&claim, ours.confidence(LEVEL), asked);
        let as_tcp = null.as_ref().map(|null| ours.is_like(null, claim.margin, LEVEL));
        let power = null.map(|null| power(&claim, &null, &ours));
        Verdict { finding: Some(finding), reason: Some(reason.to_owned()), as_tcp, power, ..verdict }
    }

    /// What it asks, without answers: a verdict for each cell or step.
    pub fn asked(&self) -> Vec<Verdict> {
        if self.expect.of.statistic == Statistic::Spearman {
            return vec![self.of_ranks()];
        }
        let cells = chosen(&self.ensemble.0.cells, self.expect.of.cell.as_deref());
        let cells = cells.into_iter().filter(|_| self.is_of_cells()).map(|cell| self.of_cell(cell));
        cells.chain(self.expect.ascending.windows(2).map(|s| self.of_step(&s[0], &s[1]))).collect()
    }

    fn is_of_cells(&self) -> bool {
        self.is_banded() || self.expect.published.is_some()
    }

    fn of_cell(&self, cell: &Cell) -> Verdict {
        Verdict {
            cell: cell.label.clone(),
            published: self.expect.published,
            margin: self.expect.margin,
            banded: self.is_banded(),
            ..self.of(format!("{}{}{}", self.subject(), in_cell(&cell.label), self.band()))
        }
    }

    fn of_step(&self, low: &str, high: &str) -> Verdict {
        self.of(format!("{} not lower in {high} than in {low}: difference", self.subject()))
    }

    fn of_ranks(&self) -> Verdict {
        let along = self.expect.ascending.join(" ");
        Verdict {
            published: self.expect.published,
            margin: self.expect.margin,
            banded: self.is_banded(),
            ..self.of(format!("{} rises along {along}{}", self.subject(), self.band()))
        }
    }

    fn of(&self, expectation: String) -> Verdict {
        Verdict {
            claim: self.expect.claim.clone(),
            expectation,
            unit: self.unit(),
            unmet: self.expect.unmet.clone(),
            source: self.expect.source.clone(),
            ..Verdict::empty()
        }
    }

    /// One number of every run in `cell`; of a share 1 or 0.
    fn values(&self, selector: &Selector, cell: &Cell, ensemble: Ensemble<'_>) -> Vec<f64> {
        let within = self.expect.within.unwrap_or_default();
        match self.expect.of.statistic {
            Statistic::ShareAllWithin => all_within(selector, within, cell, ensemble),
            _ => values(selector, cell, ensemble),
        }
    }

    /// What is published, if anything.
    pub fn claim(&self) -> Option<Claim> {
        let e = self.expect;
        let (published, margin) = e.published.zip(e.margin)?;
        Some(Claim { published, margin, runs: e.runs.unwrap_or(1), equal: e.equal })
    }

    /// What kind of number the rule judges; none for a statistic that it does not judge from single runs.
    pub fn scale(&self) -> Option<Scale> {
        match self.expect.of.statistic {
            Statistic::Mean if self.selector.is_ratio() => Some(Scale::Ratio),
            Statistic::Mean => Some(Scale::Linear),
            Statistic::GeometricMean => Some(Scale::Geometric),
            Statistic::ShareWithin | Statistic::ShareAllWithin => Some(Scale::Share),
            _ => None,
        }
    }

    /// `values` as the rule needs them; none for a statistic that it does not judge.
    fn judged(&self, values: &[f64]) -> Option<polypath_judge::Ensemble> {
        let (low, high) = self.expect.within.unwrap_or_default();
        let inside = |v: &f64| f64::from(u8::from((low..=high).contains(v)));
        match self.expect.of.statistic {
            Statistic::ShareWithin => {
                polypath_judge::Ensemble::of(Scale::Share, &values.iter().map(inside).collect::<Vec<_>>())
            }
            _ => polypath_judge::Ensemble::of(self.scale()?, values),
        }
    }

    fn is_banded(&self) -> bool {
        self.expect.min.is_some() || self.expect.max.is_some()
    }

    pub fn holds(&self, value: f64) -> bool {
        self.expect.min.is_none_or(|min| value >= min) && self.expect.max.is_none_or(|max| value <= max)
    }

    /// The same number in the null's runs.
    fn null(&self, cell: &Cell) -> Option<(Null, Option<polypath_judge::Ensemble>)> {
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
        let values = self.values(&in_null(&self.selector, cell, null_cell), null_cell, ensemble);
        let judged = self.judged(&values);
        let middle = judged
            .as_ref()
            .map(polypath_judge::Ensemble::middle)
            .or_else(|| Some(Summary::of(&values)?.median))?;
        let at = Interval { low: middle, high: middle };
        let single = judged.as_ref().map_or(at, |j| j.means_of(self.expect.runs.unwrap_or(1)));
        Some((Null { of: name.to_owned(), middle, single, n: values.len() }, judged))
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
            value: a.zip(b).map(|(a, b)| b - a),
            n: self.pooled(low).len().min(self.pooled(high).len()),
            met: a.zip(b).is_some_and(|(a, b)| b >= a),
            ..self.of_step(low, high)
        }
    }

    /// Spearman's rank correlation over the cells of `ascending`.
    fn ranks(&self) -> Verdict {
        let cells: Vec<Vec<f64>> = self.expect.ascending.iter().map(|c| self.pooled(c)).collect();
        let means: Vec<f64> = cells.iter().filter_map(|c| Some(Summary::of(c)?.mean)).collect();
        let complete = means.len() == self.expect.ascending.len();
        let value = complete.then(|| spearman(&means));
        let judged = self.claim().filter(|_| complete).map(|claim| judge_ranks(&claim, &cells));
        Verdict {
            value,
            n: cells.iter().map(Vec::len).min().unwrap_or(0),
            of: cells.iter().map(Vec::len).max().unwrap_or(0),
            finding: judged.map(|j| j.finding),
            reason: judged.map(|j| j.reason.to_owned()),
            met: value.is_some_and(|v| self.holds(v)),
            ..self.of_ranks()
        }
    }

    fn unit(&self) -> (&'static str, f64) {
        match self.selector.is_ratio() || self.expect.of.statistic.is_bare() {
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
            Statistic::ShareAllWithin => {
                let (low, high) = self.expect.within.unwrap_or_default();
                format!("share of seeds with all from {low} to {high}")
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
