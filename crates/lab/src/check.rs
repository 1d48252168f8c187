//! Whether an ensemble is what the spec expects.

use std::fmt;

use serde::Serialize;

use crate::results::{Run, Summary};
use crate::spec::{Expect, Spec, Statistic};

/// The answer to one expectation in one cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// What was expected, in words.
    pub expectation: String,
    /// What came out; `None` if no run had such a number.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval, for means.
    pub ci95: Option<f64>,
    /// Whether it is so.
    pub met: bool,
}

/// Answers every expectation of `spec` from `runs`. A cell of which there are no runs is left out.
pub fn check(spec: &Spec, runs: &[Run]) -> Vec<Verdict> {
    let mut cells: Vec<&str> = runs.iter().map(|r| r.cell.as_str()).collect();
    cells.dedup();
    let mut verdicts: Vec<Verdict> = runs.iter().flat_map(faults).collect();
    for expect in &spec.expect {
        let wanted = |c: &&&str| expect.cell.as_ref().is_none_or(|only| only == **c);
        if expect.min.is_some() || expect.max.is_some() {
            verdicts.extend(cells.iter().filter(wanted).map(|c| band(expect, c, runs)));
        }
        let steps = expect.ascending.windows(2).filter(|s| s.iter().all(|c| cells.contains(&c.as_str())));
        verdicts.extend(steps.map(|s| step(expect, &s[0], &s[1], runs)));
    }
    verdicts
}

/// No experiment expects a connection to fail or a byte to change.
fn faults(run: &Run) -> Vec<Verdict> {
    let fault = |flow: &str, what: String| Verdict {
        expectation: format!("run {} (seed {}): {flow} {what}", run.id, run.seed),
        value: None,
        ci95: None,
        met: false,
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

fn summary(expect: &Expect, cell: &str, runs: &[Run]) -> Option<Summary> {
    let in_cell = runs.iter().filter(|r| r.cell == cell);
    let values: Vec<f64> =
        in_cell.filter_map(|r| r.metric(expect.metric, &expect.flow, expect.over.as_deref())).collect();
    Summary::of(&values)
}

fn pick(statistic: Statistic, s: &Summary) -> (Option<f64>, Option<f64>) {
    match statistic {
        Statistic::Mean => (Some(s.mean), s.ci95),
        Statistic::GeometricMean => (s.geometric_mean, s.log_ci95.zip(s.geometric_mean).map(|(l, g)| l * g)),
        Statistic::Median => (Some(s.median), None),
        Statistic::Sd => (Some(s.sd), None),
        Statistic::Min => (Some(s.min), None),
        Statistic::Max => (Some(s.max), None),
    }
}

fn band(expect: &Expect, cell: &str, runs: &[Run]) -> Verdict {
    let (value, ci95) = summary(expect, cell, runs).map_or((None, None), |s| pick(expect.statistic, &s));
    let above = |v: f64| expect.min.is_none_or(|min| v >= min);
    let below = |v: f64| expect.max.is_none_or(|max| v <= max);
    let band = match (expect.min, expect.max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => String::new(),
    };
    Verdict {
        expectation: format!("{}{} {band}", subject(expect), in_cell(cell)),
        value,
        ci95,
        met: value.is_some_and(|v| above(v) && below(v)),
    }
}

fn step(expect: &Expect, low: &str, high: &str, runs: &[Run]) -> Verdict {
    let of = |cell| summary(expect, cell, runs).and_then(|s| pick(expect.statistic, &s).0);
    let (a, b) = (of(low), of(high));
    Verdict {
        expectation: format!("{} not lower in {high} than in {low}", subject(expect)),
        value: a.zip(b).map(|(a, b)| b - a),
        ci95: None,
        met: a.zip(b).is_some_and(|(a, b)| b >= a),
    }
}

fn subject(expect: &Expect) -> String {
    let name = |value: serde_json::Value| value.as_str().unwrap_or_default().replace('_', " ");
    let metric = name(serde_json::json!(expect.metric));
    let statistic = name(serde_json::json!(expect.statistic));
    match &expect.over {
        Some(over) => format!("{statistic} of {metric} {}/{over}", expect.flow),
        None => format!("{statistic} of {metric} of {}", expect.flow),
    }
}

fn in_cell(cell: &str) -> String {
    if cell.is_empty() { String::new() } else { format!(" in {cell}") }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.met { "met   " } else { "UNMET " }, self.expectation)?;
        match (self.value, self.ci95) {
            (Some(v), Some(ci)) => write!(f, ": {} ± {}", short(v), short(ci)),
            (Some(v), None) => write!(f, ": {}", short(v)),
            (None, _) => Ok(()),
        }
    }
}

/// Four significant digits.
fn short(v: f64) -> String {
    let digits = 3 - v.abs().max(1e-9).log10().floor() as i32;
    format!("{v:.*}", digits.clamp(0, 6) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FlowResult;
    use crate::spec::Metric;

    fn runs(cell: &str, goodputs: &[f64]) -> Vec<Run> {
        let flow =
            |name: &str, goodput_bps| FlowResult { name: name.into(), goodput_bps, ..FlowResult::default() };
        let run = |(seed, g): (usize, &f64)| Run {
            id: String::new(),
            cell: cell.into(),
            seed: seed as u64,
            flows: vec![flow("a", *g), flow("b", 2.0)],
        };
        goodputs.iter().enumerate().map(run).collect()
    }

    fn expect() -> Expect {
        Expect {
            metric: Metric::Goodput,
            flow: "a".into(),
            over: None,
            statistic: Statistic::Mean,
            cell: None,
            min: None,
            max: None,
            ascending: vec![],
            source: String::new(),
        }
    }

    #[test]
    fn bands_include_their_ends() {
        let runs = runs("", &[1.0, 3.0]);
        let within = |min, max| band(&Expect { min: Some(min), max: Some(max), ..expect() }, "", &runs).met;
        assert!(within(2.0, 2.0) && within(1.0, 3.0));
        assert!(!within(2.1, 3.0) && !within(1.0, 1.9));
        let ratio = Expect { over: Some("b".into()), max: Some(1.0), ..expect() };
        assert_eq!(band(&ratio, "", &runs).value, Some(1.0));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let missing = Expect { metric: Metric::Completion, max: Some(9.0), ..expect() };
        assert!(!band(&missing, "", &runs("", &[1.0])).met);
    }

    #[test]
    fn orderings_compare_cells() {
        let runs = [runs("x", &[1.0]), runs("y", &[2.0])].concat();
        assert!(step(&expect(), "x", "y", &runs).met);
        assert!(!step(&expect(), "y", "x", &runs).met);
    }
}
