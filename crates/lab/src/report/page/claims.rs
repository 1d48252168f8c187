//! The claims of a paper: a row each, with the paper's value, ours, the null, the verdict and a small figure.

use maud::{Markup, PreEscaped, html};
use polypath_judge::Finding;

use super::{anchor, ours, shown};
use crate::check::Verdict;
use crate::group::Done;

/// Width and height of a small figure.
const SMALL: (f64, f64) = (170.0, 22.0);

/// Most rows for which the first screen of a desk has room.
const ROOM: usize = 24;

/// All claims of published values.
pub fn table(own: &[&Done]) -> Markup {
    screen(("claims", 6, &head()), own, judged, |v| row(v), |v| mark(v))
}

fn judged(done: &Done) -> Vec<&Verdict> {
    done.verdicts.iter().filter(|v| v.finding.is_some()).collect()
}

/// The first screen of experiments that have claims: a row each where one screen has room for them, otherwise a line of marks for each
/// experiment that opens into its rows. The table has a class, a number of columns and a head.
pub fn screen<'a, C>(
    (class, columns, head): (&str, u32, &Markup),
    own: &[&'a Done],
    claims_of: impl Fn(&'a Done) -> Vec<C>,
    row: impl Fn(&C) -> Markup,
    mark: impl Fn(&C) -> Markup,
) -> Markup {
    let all: Vec<(&Done, Vec<C>)> =
        own.iter().map(|d| (*d, claims_of(d))).filter(|(_, claims)| !claims.is_empty()).collect();
    let rows: usize = all.iter().map(|(_, claims)| 1 + claims.len()).sum();
    html! {
        @if rows <= ROOM || all.len() == 1 {
            table class=(class) {
                (head)
                @for (d, claims) in &all {
                    tbody {
                        @if all.len() > 1 { tr.experiment { th colspan=(columns) { (title(d)) } } }
                        @for claim in claims { (row(claim)) }
                    }
                }
            }
        } @else {
            p.how { "A mark a claim; a line opens into its claims." }
            @for (d, claims) in &all {
                details.claims {
                    summary {
                        span.title { (d.experiment.spec.title) }
                        span.marks { @for claim in claims { (mark(claim)) } }
                    }
                    table class=(class) { (head) tbody { @for claim in claims { (row(claim)) } } }
                    p.how { a href={ "#" (anchor(&d.experiment.name)) } { "Figures and what stands behind them" } }
                }
            }
        }
    }
}

/// Its title, which leads to its section.
fn title(done: &Done) -> Markup {
    html! { a href={ "#" (anchor(&done.experiment.name)) } { (done.experiment.spec.title) } }
}

/// A claim as the sign of its verdict; its numbers are told where the pointer stands.
fn mark(v: &Verdict) -> Markup {
    let Some(finding) = v.finding else { return html! {} };
    let cell = if v.cell.is_empty() { String::new() } else { format!(" ({})", v.cell) };
    let null = v.null.as_ref().map_or(String::new(), |n| format!(", null {}", v.shown(n.middle)));
    let told =
        format!("{}{cell}: {finding}; paper {}, ours {}{null}", v.claim, shown(v, v.published), ours(v));
    html! { span class={ "mark " (class(finding)) } title=(told) { (sign(finding)) } }
}

/// Its sign, for those who do not see its colour.
pub fn sign(finding: Finding) -> &'static str {
    match finding {
        Finding::Reproduced => "✓",
        Finding::DirectionOnly => "→",
        Finding::NotIdentifiable => "?",
        Finding::Undecided => "…",
        Finding::Refuted => "✗",
    }
}

fn head() -> Markup {
    html! {
        thead {
            tr {
                th { "claim" } th.number { "paper" } th.number { "ours ± 95 %" } th.number { "null" } th { "verdict" }
                th.small { span.key-paper { "◆ paper" } " " span.key-ours { "● ours" } " " span.key-null { "▬ null" } }
            }
        }
    }
}

fn row(v: &Verdict) -> Markup {
    let Some(finding) = v.finding else { return html! {} };
    let null = v.null.as_ref().map(|n| v.shown(n.middle));
    html! {
        tr {
            td.claim { (name(v)) }
            td.number data-label="paper" { (shown(v, v.published)) }
            td.number data-label="ours" { (ours(v)) }
            td.number data-label="null" { (null.unwrap_or_else(|| "–".into())) }
            td.verdict { span class={ "finding " (class(finding)) } title=[v.reason.as_deref()] { (finding) } }
            td.small { (small(v, finding)) }
        }
    }
}

/// Short name and cell; what is expected in words, if it has no name.
pub fn name(v: &Verdict) -> Markup {
    html! {
        @if v.claim.is_empty() { (v.expectation) } @else {
            (v.claim) @if !v.cell.is_empty() { " " small { "(" (v.cell) ")" } }
        }
    }
}

/// Where the paper's value with its margin, our interval and the null's lie beside one another.
fn small(v: &Verdict, finding: Finding) -> Markup {
    let (Some(paper), Some(value)) = (v.published, v.value) else { return html! {} };
    let margin = v.margin.unwrap_or(0.0);
    let around = |half: f64| (value - half, value + half);
    let (low, high) = around(v.ci95.unwrap_or(0.0));
    let null = v.null.as_ref().map(|n| (n.single.low, n.single.high));
    let all = [paper - margin, paper + margin, low, high]
        .into_iter()
        .chain(null.into_iter().flat_map(|(a, b)| [a, b]));
    let (least, most) =
        all.filter(|x| x.is_finite()).fold((f64::MAX, f64::MIN), |(l, m), x| (l.min(x), m.max(x)));
    let (width, height) = SMALL;
    let scale = (width - 16.0) / (most - least).max(f64::MIN_POSITIVE);
    let x = |value: f64| 8.0 + (value - least) * scale;
    let bar = |class: &str, (low, high): (f64, f64), y: f64, thick: f64| {
        let wide = (x(high) - x(low)).max(2.0);
        format!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y}\" width=\"{wide:.1}\" height=\"{thick}\" rx=\"1\"/>",
            x(low)
        )
    };
    let null_bar = null.map_or(String::new(), |null| bar("null", null, 15.0, 5.0));
    let margin_bar = bar("margin", (paper - margin, paper + margin), 2.0, 9.0);
    let our_bar = bar("ours", (low, high), 8.5, 2.0);
    let at = x(paper);
    let diamond = format!("<path class=\"paper\" d=\"M{at:.1} 1l5 5.5l-5 5.5l-5-5.5z\"/>");
    let dot = format!("<circle class=\"ours\" cx=\"{:.1}\" cy=\"9.5\" r=\"4\"/>", x(value));
    let told = format!(
        "paper {} ± {}, ours {}{}",
        v.shown(paper),
        v.shown(margin),
        ours(v),
        null.map_or(String::new(), |(l, h)| format!(", null from {} to {}", v.shown(l), v.shown(h)))
    );
    html! {
        svg class={ "interval " (class(finding)) } viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(told) {
            title { (told) }
            (PreEscaped([margin_bar, null_bar, diamond, our_bar, dot].concat()))
        }
    }
}

/// Class of its colour.
pub fn class(finding: Finding) -> String {
    finding.to_string().replace(' ', "-")
}

/// Its place among the findings.
pub fn rank(finding: Finding) -> usize {
    match finding {
        Finding::Reproduced => 0,
        Finding::DirectionOnly => 1,
        Finding::NotIdentifiable => 2,
        Finding::Undecided => 3,
        Finding::Refuted => 4,
    }
}
