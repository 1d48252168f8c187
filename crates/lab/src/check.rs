//! Whether an ensemble is what the spec expects, and what it says of what a paper published.

use std::fmt;

use serde::Serialize;

use crate::judge::{Evidence, Finding, Interval, judge, single_runs};
use crate::results::{Run, Summary};
use crate::spec::{Cell, Expect, Experiment, Selector, Statistic, beside, chosen};

/// The answer to one expectation in one cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Short name of the claim; empty if it has none.
    pub claim: String,
    /// The cell; empty without a grid.
    pub cell: String,
    /// What was expected, in words.
    pub expectation: String,
    /// Unit of the values for people, and the factor to get there.
    #[serde(skip)]
    pub unit: (&'static str, f64),
    /// What came out; `None` if no run had such a number.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval, for means.
    pub ci95: Option<f64>,
    /// How many runs had such a number.
    pub n: usize,
    /// Where 95 % of single runs lie, for means.
    pub single: Option<Interval>,
    /// What the paper says.
    pub published: Option<f64>,
    /// The same number where nothing distinguishes the flows.
    pub null: Option<Null>,
    /// What this says of the paper's value.
    pub finding: Option<Finding>,
    /// Whether the band or order holds; separate from the finding.
    pub met: bool,
    /// From where the expectation comes.
    pub source: String,
}

/// An ensemble in which nothing distinguishes the flows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Null {
    /// Which cell or experiment.
    pub of: String,
    /// Its mean, geometric for ratios.
    pub mean: f64,
    /// Where 95 % of its single runs lie.
    pub single: Interval,
    /// How many runs.
    pub n: usize,
}

/// An experiment with its runs.
pub type Ensemble<'a> = (&'a Experiment, &'a [Run]);

/// Answers every expectation of an experiment from its runs. A cell of which there are no runs is
/// left out. `others` are experiments that it names as nulls.
pub fn check(ensemble: Ensemble<'_>, others: &[Ensemble<'_>]) -> Vec<Verdict> {
    let (experiment, runs) = ensemble;
    let mut verdicts: Vec<Verdict> = runs.iter().flat_map(faults).collect();
    for expect in &experiment.spec.expect {
        let question = Question { expect, selector: expect.selector(), ensemble, others };
        verdicts.extend(question.answers());
    }
    verdicts
}

/// No experiment expects a connection to fail or a byte to change.
fn faults(run: &Run) -> Vec<Verdict> {
    let fault = |flow: &str, what: String| Verdict {
        cell: run.cell.clone(),
        expectation: format!("run {} (seed {}): {flow} {what}", run.id, run.seed),
        ..Verdict::empty()
    };
    let changed = run
        .flows
        .iter()
        .filter(|f| !f.intact)
        .map(|f| fault(&f.name, "read a byte that was not sent".into()));
    let failed =
        run.flows.iter().filter_map(|f| Some(fault(&f.name, format!("failed: {}", f.failed.as_ref()?))));
    changed.chain(failed).collect()
}

/// One number of every run in the cell labelled `cell`, in the order of seeds.
pub fn values(selector: &Selector, cell: &Cell, (experiment, runs): Ensemble<'_>) -> Vec<f64> {
    let below = selector.over_cell.as_ref().map(|other| beside(&experiment.cells, cell, other));
    let value = |run: &Run| {
        let value = run.value(&selector.what)?;
        let Some(over) = &selector.over else { return Some(value) };
        let other = match below {
            Some(cell) => {
                runs.iter().find(|r| cell.is_some_and(|c| c.label == r.cell) && r.seed == run.seed)?
            }
            None => run,
        };
        Some(value / other.value(over)?).filter(|ratio| ratio.is_finite())
    };
    runs.iter().filter(|r| r.cell == cell.label).filter_map(value).collect()
}

/// A statistic of `values` and half the width of its confidence interval.
pub fn statistic(
    statistic: Statistic,
    within: Option<(f64, f64)>,
    values: &[f64],
) -> Option<(f64, Option<f64>)> {
    let s = Summary::of(values)?;
    Some(match statistic {
        Statistic::Mean | Statistic::Spearman => (s.mean, s.ci95),
        Statistic::GeometricMean => {
            let mean = s.geometric_mean?;
            (mean, s.log_ci95.map(|l| mean * l.sinh()))
        }
        Statistic::Median => (s.median, None),
        Statistic::Sd => (s.sd, None),
        Statistic::Min => (s.min, None),
        Statistic::Max => (s.max, None),
        Statistic::ShareWithin => {
            let (low, high) = within?;
            let share = values.iter().filter(|v| (low..=high).contains(*v)).count() as f64 / s.n as f64;
            (share, None)
        }
    })
}

struct Question<'a> {
    expect: &'a Expect,
    selector: Selector,
    ensemble: Ensemble<'a>,
    others: &'a [Ensemble<'a>],
}

impl Question<'_> {
    fn answers(&self) -> Vec<Verdict> {
        let (experiment, runs) = self.ensemble;
        let expect = self.expect;
        let there = |c: &&Cell| runs.iter().any(|r| r.cell == c.label);
        if expect.statistic == Statistic::Spearman {
            return vec![self.ranks()];
        }
        let mut verdicts = Vec::new();
        if expect.min.is_some() || expect.max.is_some() || expect.published.is_some() {
            let cells = chosen(&experiment.cells, expect.cell.as_deref());
            verdicts.extend(cells.into_iter().filter(there).map(|cell| self.in_cell(cell)));
        }
        let known = |c: &String| !self.pooled(c).is_empty();
        let steps = expect.ascending.windows(2).filter(|s| s.iter().all(known));
        verdicts.extend(steps.map(|s| self.step(&s[0], &s[1])));
        verdicts
    }

    fn in_cell(&self, cell: &Cell) -> Verdict {
        let values = values(&self.selector, cell, self.ensemble);
        let found = statistic(self.expect.statistic, self.expect.within, &values);
        let (value, ci95) = found.map_or((None, None), |(v, ci)| (Some(v), ci));
        let single = Summary::of(&values)
            .filter(|_| self.expect.statistic.is_average())
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
            single,
            published: self.expect.published,
            null,
            finding,
            met: value.is_some_and(|v| self.holds(v)),
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
        let wanted = chosen(cells, self.expect.cell.as_deref());
        let both = chosen(cells, Some(cell)).into_iter().filter(|c| wanted.contains(c));
        both.flat_map(|c| values(&self.selector, c, self.ensemble)).collect()
    }

    fn step(&self, low: &str, high: &str) -> Verdict {
        let of = |cell| Some(statistic(self.expect.statistic, self.expect.within, &self.pooled(cell))?.0);
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
        match self.selector.is_ratio() || self.expect.statistic == Statistic::ShareWithin {
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
        let statistic = match self.expect.statistic {
            Statistic::ShareWithin => {
                let (low, high) = self.expect.within.unwrap_or_default();
                format!("share of seeds with {low} to {high}")
            }
            Statistic::Spearman => "rank correlation".to_owned(),
            other => name(serde_json::json!(other)),
        };
        let what = |w: &crate::spec::What| {
            let of = w.link.clone().unwrap_or_else(|| w.flows.join("+"));
            format!("{of}{}", w.path.map_or(String::new(), |p| format!(" path {p}")))
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

impl Statistic {
    /// Whether it speaks of a typical run.
    fn is_average(self) -> bool {
        matches!(self, Self::Mean | Self::GeometricMean | Self::Median)
    }
}

/// Spearman's rank correlation of `values` with their order; ties share their mean rank.
fn spearman(values: &[f64]) -> f64 {
    let rank = |v: f64| {
        let below = values.iter().filter(|x| **x < v).count() as f64;
        let equal = values.iter().filter(|x| **x == v).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (i, v) in values.iter().enumerate() {
        let (a, b) = (i as f64 - middle, rank(*v) - middle);
        (both, first, second) = (both + a * b, first + a * a, second + b * b);
    }
    if second == 0.0 { 0.0 } else { both / (first * second).sqrt() }
}

fn in_cell(cell: &str) -> String {
    if cell.is_empty() { String::new() } else { format!(" in {cell}") }
}

impl Verdict {
    fn empty() -> Self {
        Self {
            claim: String::new(),
            cell: String::new(),
            expectation: String::new(),
            unit: ("", 1.0),
            value: None,
            ci95: None,
            n: 0,
            single: None,
            published: None,
            null: None,
            finding: None,
            met: false,
            source: String::new(),
        }
    }

    /// `value`, one of the verdict's own numbers, in the unit for people, without it.
    pub fn shown(&self, value: f64) -> String {
        short(value * self.unit.1)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.met { "met   " } else { "UNMET " }, self.expectation)?;
        let unit = if self.unit.0.is_empty() { String::new() } else { format!(" {}", self.unit.0) };
        match (self.value, self.ci95) {
            (Some(v), Some(ci)) => write!(f, ": {} ± {}{unit}", self.shown(v), self.shown(ci))?,
            (Some(v), None) => write!(f, ": {}{unit}", self.shown(v))?,
            (None, _) => write!(f, ": no such number in any run")?,
        }
        if let Some((published, finding)) = self.published.zip(self.finding) {
            write!(f, "; published {}{unit}: {finding}", self.shown(published))?;
        }
        if let Some(null) = &self.null {
            let (low, high) = (self.shown(null.single.low), self.shown(null.single.high));
            write!(f, "; null {} [{low}, {high}]", self.shown(null.mean))?;
        }
        Ok(())
    }
}

/// Four significant digits, without zeros that say nothing.
pub fn short(v: f64) -> String {
    let digits = 3 - v.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{v:.*}", digits.clamp(0, 4) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FlowResult;
    use crate::spec;

    fn runs(cell: &str, goodputs: &[f64]) -> Vec<Run> {
        let flow =
            |name: &str, goodput_bps| FlowResult { name: name.into(), goodput_bps, ..FlowResult::default() };
        let run = |(seed, g): (usize, &f64)| Run {
            id: String::new(),
            cell: cell.into(),
            seed: seed as u64,
            flows: vec![flow("a", *g), flow("b", 2.0)],
            timeline: Default::default(),
        };
        goodputs.iter().enumerate().map(run).collect()
    }

    /// An experiment with the cells `x` and `y` that expects `expect`.
    fn experiment(expect: &str) -> Experiment {
        let flow = |name| format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n");
        let text = format!(
            "version = 1\ntitle = \"t\"\nduration = \"9s\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\n{}{}\
             [[grid]]\nkey = \"flow.a.mss\"\nvalues = [100, 200]\nlabels = [\"x\", \"y\"]\n\
             [[expect]]\nflow = \"a\"\n{expect}\n",
            flow("a"),
            flow("b"),
        );
        spec::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    fn answers(expect: &str, runs: &[Run]) -> Vec<Verdict> {
        check((&experiment(expect), runs), &[])
    }

    #[test]
    fn bands_include_their_ends() {
        let runs = runs("x", &[1.0, 3.0]);
        let within =
            |min, max| answers(&format!("metric = \"goodput\"\nmin = {min:?}\nmax = {max:?}"), &runs)[0].met;
        assert!(within(2.0, 2.0) && within(1.0, 3.0));
        assert!(!within(2.1, 3.0) && !within(1.0, 1.9));
        let ratio = answers("metric = \"goodput\"\nover = \"b\"\nmax = 1.0", &runs);
        assert_eq!(ratio[0].value, Some(1.0));
        assert_eq!(ratio.len(), 1, "there are no runs of y");
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert!(!answers("metric = \"completion\"\nmax = 9.0", &runs("x", &[1.0]))[0].met);
    }

    #[test]
    fn orderings_compare_cells() {
        let runs = [runs("x", &[1.0]), runs("y", &[2.0])].concat();
        assert!(answers("metric = \"goodput\"\nascending = [\"x\", \"y\"]", &runs)[0].met);
        assert!(!answers("metric = \"goodput\"\nascending = [\"y\", \"x\"]", &runs)[0].met);
    }

    #[test]
    fn a_cell_over_another_is_paired_by_seed() {
        let runs = [runs("x", &[1.0, 2.0]), runs("y", &[2.0, 8.0])].concat();
        let of = answers("metric = \"goodput\"\ncell = \"y\"\nover_cell = \"x\"\nmin = 0.0", &runs);
        assert_eq!((of[0].value, of[0].n), (Some(3.0), 2));
    }

    #[test]
    fn shares_count_the_seeds_in_the_band() {
        let runs = runs("x", &[1.0, 2.0, 3.0, 4.0]);
        let share = "metric = \"goodput\"\nstatistic = \"share_within\"\nwithin = [2.0, 3.0]\nmin = 0.5";
        assert_eq!((answers(share, &runs)[0].value, answers(share, &runs)[0].met), (Some(0.5), true));
    }

    #[test]
    fn a_published_value_is_judged_beside_the_null() {
        let runs = [runs("x", &[2.2, 2.2, 2.3]), runs("y", &[2.0, 2.0, 2.0])].concat();
        let ff = "metric = \"goodput\"\nover = \"b\"\ncell = \"x\"\nnull = \"y\"\npublished = 1.11";
        let verdict = &answers(ff, &runs)[0];
        assert_eq!(verdict.finding, Some(Finding::Reproduced));
        assert_eq!(verdict.null.as_ref().map(|n| (n.mean, n.n)), Some((1.0, 3)));
        assert!(verdict.met, "without a band nothing is unmet");
    }

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[1.0, 2.0, 5.0]), 1.0);
        assert_eq!(spearman(&[3.0, 2.0, 1.0]), -1.0);
        // Ranks 1 3 2 4: 1 − 6 · 2 / (4 · 15).
        assert!((spearman(&[1.0, 7.0, 5.0, 9.0]) - 0.8).abs() < 1e-12);
        assert_eq!(spearman(&[2.0, 2.0]), 0.0);
    }
}
