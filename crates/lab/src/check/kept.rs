//! Kept answers beside the specs: each claim is there as the spec has it, and its finding follows from the numbers beside it.

use polypath_judge::{Interval, Kept, Scale, allowed, may_be_like};
use serde_json::{Value, json};

use super::question::Question;
use super::{Verdict, asked};
use crate::spec::Experiment;

/// Two numbers are one: JSON may change the last digit.
const SAME: f64 = 1e-12;

/// The entries of `blocks`, outputs of `lab check --json` of all of `experiments`, that no spec asks for or that do not follow from their
/// own numbers, and those that are missing; one line each. A block of published claims only, of `--settle`, needs no others; without `settled`, some block has each.
pub fn misfits(experiments: &[&Experiment], blocks: &[Value], settled: bool) -> Vec<String> {
    let asked: Vec<(&str, Verdict, Question<'_>)> = experiments
        .iter()
        .flat_map(|e| asked(e).into_iter().map(|(verdict, question)| (&e.name[..], verdict, question)))
        .collect();
    let mut found: Vec<String> = blocks.iter().flat_map(|block| unasked(&asked, block)).collect();
    for (name, v, question) in &asked {
        let rows: Vec<Option<&Value>> = blocks.iter().map(|block| row(block, name, v)).collect();
        let needed = |block: &Value| v.published.is_some() || (!settled && is_whole(block));
        let mut wrong: Vec<String> = Vec::new();
        if blocks.iter().zip(&rows).any(|(block, row)| row.is_none() && needed(block))
            || (!settled && rows.iter().all(Option::is_none))
        {
            wrong.push("is not kept".into());
        }
        wrong.extend(rows.into_iter().flatten().filter_map(|kept| wrong_row(v, question, kept)));
        found.extend(wrong.iter().map(|why| line(name, v, why)));
    }
    found
}

/// Of how many kept published values the finding cannot be computed again.
pub fn unjudged(experiments: &[&Experiment]) -> Vec<String> {
    let of = |e: &&Experiment| -> Vec<String> {
        let judged = |(v, q): &(Verdict, Question<'_>)| v.published.is_some() && q.scale().is_none();
        asked(e).iter().filter(|one| judged(one)).map(|(v, _)| v.expectation.clone()).collect()
    };
    experiments.iter().flat_map(of).collect()
}

fn line(experiment: &str, v: &Verdict, why: &str) -> String {
    let claim = if v.claim.is_empty() { String::new() } else { format!("\"{}\", ", v.claim) };
    format!("{experiment}: {claim}{} {why}", v.expectation)
}

/// What `block` keeps that no spec asks.
fn unasked(asked: &[(&str, Verdict, Question<'_>)], block: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, kept) in rows(block).filter(|(_, kept)| !is_fault(kept)) {
        if !asked.iter().any(|(experiment, v, _)| *experiment == name && is_of(kept, v)) {
            let text = |key: &str| kept[key].as_str().unwrap_or_default();
            found.push(format!(
                "{name}: kept, and asked by no spec: \"{}\", {}",
                text("claim"),
                text("expectation")
            ));
        }
    }
    found
}

fn rows(block: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let of = |e: &'_ Value| e["verdicts"].as_array().map_or(0, Vec::len);
    let all = block["experiments"].as_array().map_or(&[][..], |all| all);
    all.iter().flat_map(move |e| {
        (0..of(e)).map(move |n| (e["experiment"].as_str().unwrap_or_default(), &e["verdicts"][n]))
    })
}

/// What `block` keeps of `v`.
pub(super) fn row<'a>(block: &'a Value, experiment: &str, v: &Verdict) -> Option<&'a Value> {
    rows(block).find(|(name, kept)| *name == experiment && is_of(kept, v)).map(|(_, kept)| kept)
}

fn is_of(kept: &Value, v: &Verdict) -> bool {
    kept["claim"] == v.claim && kept["expectation"] == v.expectation && kept["cell"] == v.cell
}

/// A connection that failed, which nobody asked for.
fn is_fault(kept: &Value) -> bool {
    kept["claim"] == "" && kept["of"] == 0 && kept["value"].is_null() && kept["source"] == ""
}

fn is_whole(block: &Value) -> bool {
    rows(block).any(|(_, kept)| kept["published"].is_null() && !is_fault(kept))
}

/// Why `kept` is not what `question` asks, or does not follow from its own numbers.
fn wrong_row(v: &Verdict, question: &Question<'_>, kept: &Value) -> Option<String> {
    for (key, asked) in [("published", v.published), ("margin", v.margin)] {
        if !is_same(kept[key].as_f64(), asked) {
            return Some(format!("is kept with {key} {}, and the spec has {}", kept[key], json!(asked)));
        }
    }
    if kept["source"] != v.source {
        return Some(format!(
            "is kept with the source {}, and the spec has {}",
            kept["source"],
            json!(v.source)
        ));
    }
    let null = question.expect.null.as_deref().filter(|_| question.expect.ascending.is_empty());
    if kept["null"]["of"].as_str() != null {
        return Some(format!(
            "is kept beside the null {}, and the spec has {}",
            kept["null"]["of"],
            json!(null)
        ));
    }
    if kept["met"].as_bool() != Some(is_met(question, kept)) {
        return Some(format!("is kept as met: {}, which does not follow from its value", kept["met"]));
    }
    wrong_finding(question, kept)
}

fn is_same(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= SAME * b.abs(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn is_met(question: &Question<'_>, kept: &Value) -> bool {
    let Some(value) = kept["value"].as_f64() else { return false };
    match kept["of"].as_u64() {
        Some(0) => value >= 0.0, // a step
        of => (kept["n"].as_u64() == of || question.scale().is_none()) && question.holds(value),
    }
}

fn wrong_finding(question: &Question<'_>, kept: &Value) -> Option<String> {
    let claim = question.claim();
    if kept["finding"].is_null() != claim.is_none() {
        return Some(format!("is kept with the finding {}", kept["finding"]));
    }
    let (claim, scale) = claim.zip(question.scale())?;
    if kept["power"].is_null() != kept["null"].is_null() {
        return Some(format!("is kept with a power of {}", kept["power"]));
    }
    let ours = ensemble(kept, "value", "single", scale)?;
    let null = ensemble(&kept["null"], "middle", "single", scale);
    if let Some(wrong) = wrong_likeness(kept, claim.margin, &ours, null.as_ref()) {
        return Some(wrong);
    }
    let all = allowed(&claim, &ours, null.as_ref());
    if all.iter().any(|j| kept["finding"] == json!(j.finding) && kept["reason"] == j.reason) {
        return None;
    }
    let mut follows: Vec<String> = all.iter().map(|j| j.finding.to_string()).collect();
    follows.dedup();
    let follows = follows.join(" or ");
    Some(format!("is kept as {} ({}); from its numbers follows: {follows}", kept["finding"], kept["reason"]))
}

fn wrong_likeness(kept: &Value, margin: f64, ours: &Kept, null: Option<&Kept>) -> Option<String> {
    let said = &kept["as_tcp"];
    let follows = match null {
        Some(null) => may_be_like(ours, null, margin).iter().any(|answer| *said == json!(answer)),
        None => said.is_null(),
    };
    (!follows).then(|| format!("is kept as plain TCP: {said}, which does not follow from its numbers"))
}

fn ensemble(of: &Value, mean: &str, ends: &str, scale: Scale) -> Option<Kept> {
    let end = |name: &str| of[ends][name].as_f64();
    Some(Kept {
        scale,
        n: of["n"].as_u64()? as usize,
        mean: of[mean].as_f64()?,
        ci95: of["ci95"].as_f64(),
        ends: end("low").zip(end("high")).map(|(low, high)| Interval { low, high }),
    })
}
