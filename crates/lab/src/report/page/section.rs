//! One experiment of a page: its figures, and what stands behind them, folded.

use maud::{Markup, html};

use super::{About, anchor, bands, claims, figure, ours, shown, topology};
use crate::check::Verdict;
use crate::group::Done;
use crate::report::lines::{FigureError, charts};

/// The section of `done`; `is_whole` if the page is about nothing else.
pub fn section(about: &About<'_>, done: &Done, is_whole: bool) -> Result<Markup, FigureError> {
    let experiment = &done.experiment;
    let charts = charts((experiment, &done.runs))?;
    Ok(html! {
        section id=(anchor(&experiment.name)) {
            @if !is_whole { h2 { (experiment.spec.title) } }
            p.how { (seeds(done)) @if !is_whole { " Again: " code { (about.report(&experiment.name)) " --seeds " (done.seeds) } } }
            @for chart in &charts { (figure::figure(chart)) }
            details {
                summary { "What it is about, and its set-up" }
                @for paragraph in experiment.spec.description.split("\n\n").filter(|p| !p.trim().is_empty()) {
                    @match paragraph.trim().strip_prefix("- ") {
                        Some(list) => ul { @for item in list.split("\n- ") { li { (item) } } },
                        None => p { (paragraph.trim()) },
                    }
                }
                (topology::drawn(&experiment.spec))
            }
            (readings(&done.verdicts))
            (bands::folded(&done.verdicts))
        }
    })
}

fn seeds(done: &Done) -> String {
    let all = done.experiment.spec.seeds;
    let of = if done.seeds == all { String::new() } else { format!(" (its own are {all})") };
    let cells = match done.experiment.cells.len() {
        1 => String::new(),
        n => format!("{n} cells with "),
    };
    format!("{cells}seeds {}{of}.", done.seeds)
}

/// Everything that a verdict follows from.
fn readings(verdicts: &[Verdict]) -> Markup {
    let judged = || verdicts.iter().filter(|v| v.finding.is_some());
    html! {
        @if judged().next().is_some() {
            details {
                summary { "Readings: what the verdicts follow from" }
                div.scroll {
                    table.readings {
                        thead {
                            tr {
                                th { "claim" } th.number { "paper" } th.number { "ours" } th.number { "n" }
                                th.number { "null, 95 % of runs" } th.number { "power" } th { "verdict" }
                            }
                        }
                        tbody { @for v in judged() { (reading(v)) } }
                    }
                }
            }
        }
    }
}

fn reading(v: &Verdict) -> Markup {
    let null = v.null.as_ref().map(|n| (v.shown(n.middle), v.shown(n.single.low), v.shown(n.single.high), n));
    html! {
        tr {
            td.claim {
                (claims::name(v))
                br; small { (v.expectation) }
                @if !v.source.is_empty() { br; small { (v.source) } }
            }
            td.number { (shown(v, v.published)) @if let Some(margin) = v.margin { " ± " (v.shown(margin)) } }
            td.number { (ours(v)) }
            td.number { (v.n) @if v.n < v.of { " of " (v.of) } }
            td.number {
                @if let Some((middle, low, high, null)) = null {
                    (middle) " [" (low) ", " (high) "]" br; small { (null.of) ", n = " (null.n) }
                } @else { "–" }
            }
            td.number { @if let Some(power) = v.power { (format!("{power:.2}")) } @else { "–" } }
            td {
                @if let Some(f) = v.finding { span class={ "finding " (claims::class(f)) } { (f) } }
                @if let Some(reason) = &v.reason { br; small { (reason) } }
            }
        }
    }
}
