//! Whether an ensemble is what the spec expects, and what it says of what a paper published.

mod against;
mod kept;
mod question;
mod statistics;

use std::fmt;

use polypath_judge::{Answer, Finding, Interval};
use serde::Serialize;

pub use against::{Compared, compare};
pub use kept::{misfits, unjudged};
pub use statistics::{statistic, value, values};

use crate::results::Run;
use crate::spec::{Expect, Experiment};
use question::Question;

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
    /// How many runs there were. Where some had none, nothing is met.
    pub of: usize,
    /// Where 95 % of single runs lie, for means.
    pub single: Option<Interval>,
    /// What the paper says.
    pub published: Option<f64>,
    /// How far from it still counts as it.
    pub margin: Option<f64>,
    /// The same number with plain TCP in the place of the path.
    pub null: Option<Null>,
    /// What this says of the paper's value.
    pub finding: Option<Finding>,
    /// Why; or why there is none of a published value.
    pub reason: Option<String>,
    /// Whether ours and the null have the same mean, within the margin; it changes no finding.
    pub as_tcp: Option<Answer>,
    /// How likely as many runs as the paper's are to show what it claims beside plain TCP, if it is true.
    pub power: Option<f64>,
    /// Whether there is a band or an order of ours to hold.
    #[serde(skip)]
    pub banded: bool,
    /// Whether the band or order holds; separate from the finding.
    pub met: bool,
    /// Why the spec says that it does not.
    pub unmet: Option<String>,
    /// From where the expectation comes.
    pub source: String,
}

/// The ensemble with plain TCP in the place of the multipath connection's path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Null {
    /// Which cell or experiment.
    pub of: String,
    /// Its median; of a share, the share.
    pub middle: f64,
    /// Where 95 % of the means of as many runs as the paper's lie.
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
    verdicts.extend(experiment.spec.expect.iter().flat_map(|expect| answers(expect, ensemble, others)));
    verdicts
}

/// What `experiment` expects, as verdicts without answers.
pub(crate) fn asked(experiment: &Experiment) -> Vec<(Verdict, Question<'_>)> {
    let question =
        |expect| Question { expect, selector: expect.selector(), ensemble: (experiment, &[]), others: &[] };
    let of = |expect| question(expect).asked().into_iter().map(move |verdict| (verdict, question(expect)));
    experiment.spec.expect.iter().flat_map(of).collect()
}

/// One verdict for each cell or step that `expect` is about.
pub(crate) fn answers(expect: &Expect, ensemble: Ensemble<'_>, others: &[Ensemble<'_>]) -> Vec<Verdict> {
    Question { expect, selector: expect.selector(), ensemble, others }.answers()
}

/// No experiment expects a connection to fail or a byte to change.
pub(crate) fn faults(run: &Run) -> Vec<Verdict> {
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
            of: 0,
            single: None,
            published: None,
            margin: None,
            null: None,
            finding: None,
            reason: None,
            as_tcp: None,
            power: None,
            banded: true,
            met: false,
            unmet: None,
            source: String::new(),
        }
    }

    /// Whether the band is as the spec says: met, or unmet where it says why.
    pub fn is_expected(&self) -> bool {
        self.met == self.unmet.is_none()
    }

    /// `met`, `UNMET`, or either with what the spec says of it.
    pub fn band(&self) -> &'static str {
        match (self.met, self.unmet.is_some()) {
            (true, false) => "met",
            (false, false) => "UNMET",
            (false, true) => "unmet, as stated",
            (true, true) => "MET, stated unmet",
        }
    }

    /// `value`, one of the verdict's own numbers, in the unit for people, without it.
    pub fn shown(&self, value: f64) -> String {
        short(value * self.unit.1)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let band = if self.banded || !self.is_expected() { self.band() } else { "judged" };
        write!(f, "{band:6} {}", self.expectation)?;
        let unit = if self.unit.0.is_empty() { String::new() } else { format!(" {}", self.unit.0) };
        match (self.value, self.ci95) {
            (Some(v), Some(ci)) => write!(f, ": {} ± {}{unit}", self.shown(v), self.shown(ci))?,
            (Some(v), None) => write!(f, ": {}{unit}", self.shown(v))?,
            (None, _) if self.n > 0 => write!(f, ": one run has no such statistic")?,
            (None, _) => write!(f, ": no such number in any run")?,
        }
        if self.value.is_some() && self.n < self.of {
            write!(f, " in {} of {} runs, none in the others", self.n, self.of)?;
        }
        if let Some(published) = self.published {
            let found = [self.finding.map(|finding| finding.to_string()), self.reason.clone()];
            let [finding, reason] = found.map(Option::unwrap_or_default);
            match (&finding[..], &reason[..]) {
                ("", "") => {}
                ("", why) => write!(f, "; published {}{unit}: {why}", self.shown(published))?,
                (finding, why) => {
                    write!(f, "; published {}{unit}: {finding} ({why})", self.shown(published))?
                }
            }
        }
        if let Some(null) = &self.null {
            let (low, high) = (self.shown(null.single.low), self.shown(null.single.high));
            write!(f, "; null {} [{low}, {high}]", self.shown(null.middle))?;
        }
        if let Some(as_tcp) = self.as_tcp {
            write!(f, "; as plain TCP: {as_tcp}")?;
        }
        if let Some(power) = self.power {
            write!(f, "; power {power:.2}")?;
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
    use crate::spec::Statistic;

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
        let flow = |name| format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1MB\"\n");
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

    /// The same, with two paths in `x` and plain TCP in `y`.
    fn same_cells(expect: &str) -> Experiment {
        let flow = |name| format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n");
        let link =
            |to| format!("[[link]]\nfrom = \"a\"\nto = \"{to}\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\n");
        let back = "[[link]]\nfrom = \"r\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\n";
        let text = format!(
            "version = 1\ntitle = \"t\"\nduration = \"9s\"\n{}{}{back}{}{}\
             [[grid]]\nname = \"who\"\nvalues = [{{ label = \"x\", set = {{ \"flow.a.paths\" = [[], [\"r\"]] }} }}, \
             {{ label = \"y\", set = {{}} }}]\n[[expect]]\nflow = \"a\"\n{expect}\n",
            link("b"),
            link("r"),
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
    fn what_has_no_band_is_judged_and_not_met() {
        let text = |keys: &str| {
            answers(&format!("metric = \"goodput\"\n{keys}"), &runs("x", &[1.0, 3.0]))[0].to_string()
        };
        assert!(
            text("published = 9\nmargin = 1").starts_with("judged mean of goodput"),
            "it is far from the value"
        );
        assert!(text("published = 9\nmargin = 1\nmax = 3").starts_with("met    mean of goodput"));
        let missing = answers("metric = \"completion\"\npublished = 9\nmargin = 1", &runs("x", &[1.0]));
        assert!(missing[0].to_string().starts_with("UNMET  mean of completion"));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert!(!answers("metric = \"completion\"\nmax = 9.0", &runs("x", &[1.0]))[0].met);
    }

    #[test]
    fn what_some_runs_do_not_have_is_not_met() {
        let mut some = runs("x", &[1.0, 1.0, 1.0]);
        some.iter_mut().take(2).for_each(|run| run.flows[0].completion_s = Some(2.0));
        let verdict = &answers("metric = \"completion\"\nmax = 9.0", &some)[0];
        assert_eq!((verdict.value, verdict.n, verdict.of, verdict.met), (Some(2.0), 2, 3, false));
        assert!(verdict.to_string().ends_with(": 2 ± 0 s in 2 of 3 runs, none in the others"), "{verdict}");
    }

    #[test]
    fn one_run_has_no_standard_deviation() {
        assert_eq!(statistic(Statistic::Sd, None, &[1.0]), None);
        assert_eq!(statistic(Statistic::Sd, None, &[1.0, 1.0]), Some((0.0, None)));
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
    fn all_of_several_are_inside_or_the_run_does_not_count() {
        let both = "flows = [\"b\"]\nmetric = \"goodput\"\nstatistic = \"share_all_within\"\nwithin = [0.6, 1.4]\n\
                    published = 1.0\nmargin = 0.2";
        // b has 2: the two are within 0.6 and 1.4 of their mean if a has 1 to 4.6.
        let verdict = &answers(both, &runs("x", &[1.0, 2.0, 4.6, 5.0]))[0];
        assert_eq!((verdict.value, verdict.finding), (Some(0.75), Some(Finding::Undecided)));
        let all = &answers(both, &runs("x", &[2.0; 20]))[0];
        assert_eq!(
            all.finding,
            Some(Finding::Reproduced),
            "at least 0.8 of all runs, with the error of one look"
        );
        let none = &answers(both, &runs("x", &[9.0; 20]))[0];
        assert_eq!(none.finding, Some(Finding::Refuted));
    }

    #[test]
    fn a_published_value_is_judged_beside_the_null() {
        let runs = [runs("x", &[2.2, 2.2, 2.25, 2.2].repeat(10)), runs("y", &[2.0; 40])].concat();
        let ff =
            "metric = \"goodput\"\nover = \"b\"\ncell = \"x\"\nnull = \"y\"\npublished = 1.11\nmargin = 0.1";
        let verdict = &check((&same_cells(ff), &runs), &[])[0];
        assert_eq!(verdict.finding, Some(Finding::Reproduced));
        assert_eq!(verdict.null.as_ref().map(|n| (n.middle, n.n)), Some((1.0, 40)));
        assert_eq!((verdict.power, verdict.as_tcp), (Some(1.0), Some(Answer::No)));
        assert!(verdict.met, "without a band nothing is unmet");
    }
}
