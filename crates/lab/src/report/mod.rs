//! A group of experiments as one page that needs nothing but a browser.

mod chart;
mod drawing;
mod lines;
mod marks;
mod points;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use chart::{Chart, Line, svg};
pub use drawing::drawing;
pub use lines::{FigureError, charts};
pub use points::points;

use crate::check::Verdict;
use crate::group::Done;

const STYLE: &str = include_str!("style.css");

/// The page of the group `name`.
pub fn page(name: &str, done: &[Done]) -> Result<String, FigureError> {
    let own: Vec<&Done> = done.iter().filter(|d| d.own).collect();
    let sections = own.iter().map(|d| section(d)).collect::<Result<Vec<_>, _>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Polypath: " (name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Polypath laboratory: " (name) }
                    p { (summary(&own)) " Repeat all of it: " code { "polypath lab report " (name) " --out report.html" } }
                    nav { ul { @for d in &own { li { a href={ "#" (anchor(&d.experiment.name)) } { (d.experiment.spec.title) } } } } }
                    (rule())
                }
                main { @for section in sections { (section) } }
            }
        }
    };
    Ok(page.into_string())
}

fn summary(own: &[&Done]) -> String {
    let verdicts = || own.iter().flat_map(|d| &d.verdicts);
    let runs: usize = own.iter().map(|d| d.runs.len()).sum();
    let unmet = verdicts().filter(|v| !v.is_expected()).count();
    let findings = verdicts().filter_map(|v| v.finding);
    let mut counts = std::collections::BTreeMap::new();
    findings.for_each(|f| *counts.entry(f.to_string()).or_insert(0) += 1);
    let counts: Vec<String> = counts.iter().map(|(finding, n)| format!("{n} {finding}")).collect();
    let published = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    format!(
        "{} experiments, {runs} runs. Published values: {published}. Our own bands: {} as expected, {unmet} not.",
        own.len(),
        verdicts().count() - unmet,
    )
}

fn rule() -> Markup {
    html! {
        details {
            summary { "How a finding follows from the numbers" }
            p {
                "Nobody sets a finding by hand. The null is the same experiment with plain TCP in the place of the path. \
                 A published value is " b { "not identifiable" } " if as many null runs as the paper's may give it too, or if ours are too few; "
                b { "reproduced" } " if the 90 % interval of our mean lies within its margin (two one-sided tests at 5 %); "
                b { "direction only" } " if our mean lies on the claimed side of the null's; else " b { "refuted" }
                ". Bands are what we expect of our own program, a separate question."
            }
        }
    }
}

fn section(done: &Done) -> Result<Markup, FigureError> {
    let experiment = &done.experiment;
    let charts = charts((experiment, &done.runs))?;
    Ok(html! {
        section id=(anchor(&experiment.name)) {
            h2 { (experiment.spec.title) }
            @for paragraph in experiment.spec.description.split("\n\n") {
                p { (paragraph.trim()) }
            }
            @for chart in &charts { (figure(chart)) }
            @if !done.verdicts.is_empty() { (table(&done.verdicts)) }
            p.how {
                @if experiment.cells.len() > 1 { (experiment.cells.len()) " cells with " } "seeds " (done.seeds) ": "
                code { "polypath lab run " (experiment.name) " --seeds " (done.seeds) }
            }
        }
    })
}

fn figure(chart: &Chart) -> Markup {
    let has_band = chart.lines.iter().any(|l| !l.band.is_empty());
    let has_published = chart.lines.iter().any(|l| !l.published.is_empty());
    html! {
        figure {
            h3 { (chart.title) }
            div.scroll { (PreEscaped(svg(chart))) }
            figcaption {
                ul.legend {
                    @for (n, line) in chart.lines.iter().enumerate() {
                        li { span.swatch style={ "background:var(--c" (n % chart::COLOURS) ")" } {} (line.label) }
                    }
                }
                @if has_published { p { "Triangles: published." } }
                @if has_band { p { "Band: " (chart.band) "." } }
                @if !chart.key.is_empty() { p { (chart.key) } }
                @if !chart.caption.is_empty() { p { (chart.caption) } }
            }
        }
    }
}

fn table(verdicts: &[Verdict]) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "claim" } th.number { "paper" } th.number { "ours" } th.number { "n" }
                        th.number { "null, 95 % of runs" } th.number { "power" } th { "finding" } th { "our band" }
                    }
                }
                tbody { @for v in verdicts { (row(v)) } }
            }
        }
    }
}

fn row(v: &Verdict) -> Markup {
    let null = v.null.as_ref().map(|n| (v.shown(n.middle), v.shown(n.single.low), v.shown(n.single.high)));
    html! {
        tr {
            td {
                @if v.claim.is_empty() { (v.expectation) } @else {
                    b { (v.claim) } @if !v.cell.is_empty() { " (" (v.cell) ")" }
                    br; small { (v.expectation) }
                }
                @if !v.source.is_empty() { br; small { (v.source) } }
            }
            td.number {
                @if let Some(p) = v.published { (v.shown(p)) } @else { "–" }
                @if let Some(margin) = v.margin { " ± " (v.shown(margin)) }
            }
            td.number {
                @if let Some(value) = v.value { (v.shown(value)) } @else { "–" }
                @if let Some(ci) = v.ci95 { " ± " (v.shown(ci)) }
                @if !v.unit.0.is_empty() { " " (v.unit.0) }
            }
            td.number { (v.n) }
            td.number { @if let Some((middle, low, high)) = null { (middle) " [" (low) ", " (high) "]" } @else { "–" } }
            td.number { @if let Some(power) = v.power { (format!("{power:.2}")) } @else { "–" } }
            td {
                @if let Some(f) = v.finding { span class={ "finding " (f.to_string().replace(' ', "-")) } { (f) } } @else { "–" }
                @if let Some(reason) = v.reason { br; small { (reason) } }
            }
            td class=(if v.is_expected() { "met" } else { "unmet" }) {
                (v.band())
                @if let Some(why) = &v.unmet { br; small { (why) } }
            }
        }
    }
}

fn anchor(name: &str) -> String {
    name.replace('/', "-")
}
