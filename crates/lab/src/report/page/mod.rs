//! An ensemble, or a group of them, as one page that needs nothing but a browser: on its first screen a row a claim
//! (or a mark a claim, where there are many), below it each experiment with its figures, its readings and our own bands, folded.

mod bands;
mod claims;
mod figure;
mod frontier;
mod section;
mod topology;

use std::collections::BTreeMap;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use polypath_judge::Finding;

use super::lines::FigureError;
use crate::built_in::report as part;
use crate::check::Verdict;
use crate::group::{Done, Seeds};
use crate::shelf::VERSION;

pub use frontier::{Frontier, frontier};

/// What a page is about.
#[derive(Debug)]
pub struct About<'a> {
    /// The group, or the experiment, as the command line named it.
    pub name: &'a str,
    /// Which of its seeds.
    pub seeds: Seeds,
    /// What makes it again.
    pub again: Again<'a>,
}

/// What makes a page again.
#[derive(Debug)]
pub enum Again<'a> {
    /// `polypath lab report`, with the directory of the experiments if that was said.
    Command(Option<&'a Path>),
    /// The Python package.
    Python,
}

impl About<'_> {
    /// What makes the page again.
    fn repeat(&self) -> String {
        let seeds = match (self.seeds, &self.again) {
            (Seeds::Only(seeds), Again::Python) => {
                return format!("polypath.run(experiment, \"{seeds}\").report(\"report.html\")");
            }
            (Seeds::Only(seeds), _) => format!(" --seeds {seeds}"),
            (Seeds::Quick, _) => " --quick".to_owned(),
            (Seeds::Spec, _) => String::new(),
        };
        format!("{}{seeds}", self.report(self.name))
    }

    /// The command that makes a page of `name`, without its seeds.
    fn report(&self, name: &str) -> String {
        let dir = match self.again {
            Again::Command(Some(dir)) => format!(" --dir {}", dir.display()),
            _ => String::new(),
        };
        format!("polypath lab report {name}{dir}")
    }
}

/// The page of `done`.
pub fn page(about: &About<'_>, done: &[Done]) -> Result<String, FigureError> {
    let own: Vec<&Done> = done.iter().filter(|d| d.own).collect();
    let is_whole = own.len() == 1 && about.name.contains(['/', '.']) || matches!(about.again, Again::Python);
    let sections = own.iter().map(|d| section::section(about, d, is_whole)).collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        (header(about, &own, is_whole))
        main { @for section in sections { (section) } }
    };
    Ok(shell(about.name, &body, &rule()))
}

/// A page with `body` and, at its foot, `notes`.
fn shell(title: &str, body: &Markup, notes: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Polypath: " (title) }
                style { (PreEscaped(part("vendor/uPlot.min.css"))) (PreEscaped(part("page/style.css"))) }
            }
            body {
                (body)
                footer { (notes) p { "Drawn with uPlot (MIT licence). Made by polypath " (VERSION) "." } }
                // uPlot 1.6.32, MIT.
                script { "/*! " (PreEscaped(part("vendor/uPlot.LICENSE"))) " */\n" (PreEscaped(part("vendor/uPlot.iife.min.js"))) }
                // Draws what the page has as SVG anew, with zoom and tooltips.
                script { (PreEscaped(part("page/page.js"))) }
            }
        }
    };
    page.into_string()
}

/// The first screen.
fn header(about: &About<'_>, own: &[&Done], is_whole: bool) -> Markup {
    let title = match own {
        [one] if is_whole => one.experiment.spec.title.as_str(),
        _ => &format!("Laboratory: {}", about.name),
    };
    html! {
        header {
            h1 { (title) }
            p.counts { (counts(own)) }
            p.how { (seeds(about.seeds, own)) " Again: " code { (about.repeat()) } }
            @if own.iter().any(|d| d.verdicts.iter().any(|v| v.finding.is_some())) { (claims::table(own)) }
            @else { (bands::first(own)) }
        }
    }
}

/// How many claims have each finding, and how our own bands are.
fn counts(own: &[&Done]) -> Markup {
    let verdicts = || own.iter().flat_map(|d| &d.verdicts);
    let mut findings: BTreeMap<usize, (Finding, usize)> = BTreeMap::new();
    for finding in verdicts().filter_map(|v| v.finding) {
        findings.entry(claims::rank(finding)).or_insert((finding, 0)).1 += 1;
    }
    let banded = || verdicts().filter(|v| v.banded);
    let unexpected = banded().filter(|v| !v.is_expected()).count();
    html! {
        @for (finding, n) in findings.values() { span class={ "finding " (claims::class(*finding)) } { (claims::sign(*finding)) " " (n) " " (finding) } " " }
        @if banded().next().is_some() {
            span.own {
                "our own bands: " (banded().count() - unexpected) " as expected"
                @if unexpected > 0 { ", " b.unmet { (unexpected) " not" } }
            }
        }
    }
}

/// Which seeds there were, in words.
fn seeds(seeds: Seeds, own: &[&Done]) -> String {
    let runs: usize = own.iter().map(|d| d.runs.len()).sum();
    let mut ranges: Vec<String> = own.iter().map(|d| d.seeds.to_string()).collect();
    ranges.dedup();
    let ranges = if ranges.len() == 1 { format!("seeds {}", ranges[0]) } else { "seeds as below".to_owned() };
    let look = match seeds {
        Seeds::Quick => "A quick look (--quick): the first seeds of each experiment only. ",
        Seeds::Only(_) | Seeds::Spec => "",
    };
    format!("{look}{runs} runs, {ranges}.")
}

fn rule() -> Markup {
    html! {
        details {
            summary { "How a verdict follows from the numbers" }
            p {
                "Nobody sets a verdict by hand. The null is the same experiment with plain TCP in the place of the path. \
                 A published value is " b { "not identifiable" } " if as many null runs as the paper's may give it too; "
                b { "reproduced" } " if the interval of our mean lies within its margin; "
                b { "direction only" } " if it lies outside, and our mean on the claimed side of the null's by more than the margin; else "
                b { "refuted" } ". Where our runs are too few for one of these it is " b { "undecided" } ", which is no verdict. \
                 A claim is looked at up to four times with more runs, each test with an error of 1.25 % to each side"
                ". Intervals shown are of 95 %. Bands are what we expect of our own program, a separate question."
            }
        }
    }
}

/// What stands for a number that there is not.
fn shown(v: &Verdict, value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| v.shown(value))
}

/// `v.value ± interval unit`.
fn ours(v: &Verdict) -> String {
    let interval = v.ci95.map_or(String::new(), |ci| format!(" ± {}", v.shown(ci)));
    let unit = if v.unit.0.is_empty() { String::new() } else { format!(" {}", v.unit.0) };
    format!("{}{interval}{unit}", shown(v, v.value))
}

fn anchor(name: &str) -> String {
    name.replace('/', "-")
}
