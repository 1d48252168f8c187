//! What we expect of our own program: apart from what a paper claims.

use maud::{Markup, html};

use super::{claims, ours};
use crate::check::Verdict;
use crate::group::Done;

/// The first screen of experiments that no paper is compared with: claims of ours, each over all its cells.
pub fn first(own: &[&Done]) -> Markup {
    claims::screen(
        ("bands", 4, &first_head()),
        own,
        |d| claims_of(&d.verdicts),
        |cells| claim(cells),
        |cells| mark(cells),
    )
}

fn first_head() -> Markup {
    html! { thead { tr { th { "expected of our own program" } th.number { "ours" } th.number { "cells" } th { "band" } } } }
}

/// Whether a claim of ours is as expected in all its cells.
fn mark(cells: &[&Verdict]) -> Markup {
    let unexpected = cells.iter().filter(|v| !v.is_expected()).count();
    let of = if cells[0].claim.is_empty() { &cells[0].expectation } else { &cells[0].claim };
    let (class, sign, told) = match unexpected {
        0 => ("mark reproduced", "✓", format!("{of}: as expected")),
        n => ("mark refuted", "✗", format!("{of}: UNMET in {n} of {}", cells.len())),
    };
    html! { span class=(class) title=(told) { (sign) } }
}

/// The bands that have one claim, together.
fn claims_of(verdicts: &[Verdict]) -> Vec<Vec<&Verdict>> {
    let mut claims: Vec<Vec<&Verdict>> = Vec::new();
    for v in verdicts.iter().filter(|v| v.banded) {
        match claims.iter_mut().find(|c| !v.claim.is_empty() && c[0].claim == v.claim) {
            Some(cells) => cells.push(v),
            None => claims.push(vec![v]),
        }
    }
    claims
}

fn claim(cells: &[&Verdict]) -> Markup {
    let unexpected = cells.iter().filter(|v| !v.is_expected()).count();
    let values = || cells.iter().filter_map(|v| v.value);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let (first, only) = (cells[0], cells.len() == 1);
    html! {
        tr {
            td.claim { @if only { (claims::name(first)) } @else if first.claim.is_empty() { (first.expectation) } @else { (first.claim) } }
            td.number data-label="ours" {
                @if only || low == high { (ours(first)) } @else { (first.shown(low)) " to " (first.shown(high)) " " (first.unit.0) }
            }
            td.number data-label="cells" { (cells.len()) }
            @if unexpected == 0 { td.met { (first.band()) } }
            @else if only { td.unmet { (first.band()) } }
            @else { td.unmet { "UNMET in " (unexpected) } }
        }
    }
}

/// The bands of one experiment, folded; open where one is not as expected.
pub fn folded(verdicts: &[Verdict]) -> Markup {
    let banded: Vec<&Verdict> = verdicts.iter().filter(|v| v.banded).collect();
    let unexpected = banded.iter().filter(|v| !v.is_expected()).count();
    html! {
        @if !banded.is_empty() {
            details.bands open[unexpected > 0] {
                summary {
                    "Our own bands: " (banded.len() - unexpected) " as expected"
                    @if unexpected > 0 { ", " b.unmet { (unexpected) " not" } }
                }
                p.how { "What we expect of our own program, whatever a paper says. It decides the exit status of `lab check`." }
                table.bands { thead { (head()) } tbody { @for v in banded { (row(v)) } } }
            }
        }
    }
}

fn head() -> Markup {
    html! { tr { th { "expected" } th.number { "ours ± 95 %" } th { "band" } } }
}

fn row(v: &Verdict) -> Markup {
    html! {
        tr {
            td.claim {
                (claims::name(v))
                @if !v.claim.is_empty() { br; small { (v.expectation) } }
                @if let Some(why) = &v.unmet { br; small { "Stated unmet: " (why) } }
            }
            td.number data-label="ours" { (ours(v)) }
            td class=(if v.is_expected() { "met" } else { "unmet" }) { (v.band()) }
        }
    }
}
