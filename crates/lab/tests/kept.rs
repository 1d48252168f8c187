//! What `docs/results` keeps is what the specs ask, and each finding follows from the numbers beside it.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use polypath_lab::check::misfits;
use polypath_lab::shelf::Shelf;
use polypath_lab::spec::Experiment;
use serde_json::{Value, json};

const GROUPS: [&str; 3] = ["mhip", "rmtcp", "fast"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn specs(group: &str) -> Vec<Experiment> {
    let shelf = Shelf::Dir(root().join("experiments"));
    shelf
        .group(group)
        .unwrap()
        .iter()
        .map(|name| shelf.load(name).unwrap_or_else(|e| panic!("{e}")))
        .collect()
}

/// The check of the specs' own seeds, then the findings of three series of seeds.
fn blocks(group: &str) -> Vec<Value> {
    let read = |name: String| {
        let file = root().join("docs/results").join(name);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        serde_json::from_str(&text).unwrap()
    };
    ["", "-1", "-1001", "-31001"].map(|block| read(format!("{group}{block}.json"))).to_vec()
}

fn wrong(specs: &[Experiment], blocks: &[Value]) -> Vec<String> {
    misfits(&specs.iter().collect::<Vec<_>>(), blocks, false)
}

#[test]
fn every_claim_is_kept_as_the_spec_has_it_and_its_finding_follows_from_its_numbers() {
    for group in GROUPS {
        let found = wrong(&specs(group), &blocks(group));
        assert!(found.is_empty(), "{group}, run `make figures ONLY={group}`:\n{}", found.join("\n"));
    }
}

#[test]
fn a_finding_that_is_turned_by_hand_does_not_follow() {
    let (specs, blocks) = (specs("mhip"), blocks("mhip"));
    let all = ["reproduced", "refuted", "not_identifiable", "direction_only", "undecided"];
    let (mut turned, mut noticed) = (0, 0);
    for (n, experiment) in blocks[1]["experiments"].as_array().unwrap().iter().enumerate() {
        for (m, kept) in experiment["verdicts"].as_array().unwrap().iter().enumerate() {
            for finding in all.iter().filter(|f| !kept["finding"].is_null() && kept["finding"] != **f) {
                let mut other = blocks.clone();
                other[1]["experiments"][n]["verdicts"][m]["finding"] = json!(finding);
                turned += 1;
                noticed += usize::from(!wrong(&specs, &other).is_empty());
            }
        }
    }
    // Two rank correlations keep no numbers from which a finding follows.
    assert_eq!(noticed, turned - 2 * 4, "of {turned}");
}

#[test]
fn a_finding_that_is_turned_with_its_reason_mostly_contradicts_its_numbers() {
    let (specs, blocks) = (specs("mhip"), blocks("mhip"));
    let block = &blocks[1];
    let rows =
        || block["experiments"].as_array().unwrap().iter().flat_map(|e| e["verdicts"].as_array().unwrap());
    let mut reasons: Vec<(Value, Value)> =
        rows().map(|v| (v["finding"].clone(), v["reason"].clone())).collect();
    reasons.sort_by_key(|pair| format!("{pair:?}"));
    reasons.dedup();
    let (mut turned, mut unnoticed) = (0, Vec::new());
    for (n, experiment) in block["experiments"].as_array().unwrap().iter().enumerate() {
        for (m, kept) in experiment["verdicts"].as_array().unwrap().iter().enumerate() {
            for (finding, reason) in reasons.iter().filter(|(f, _)| !f.is_null() && kept["finding"] != *f) {
                let mut other = blocks.clone();
                let row = &mut other[1]["experiments"][n]["verdicts"][m];
                (row["finding"], row["reason"]) = (finding.clone(), reason.clone());
                turned += 1;
                if wrong(&specs, &other).is_empty() {
                    unnoticed.push(format!("{} {} as {finding}, {reason}", kept["claim"], kept["finding"]));
                }
            }
        }
    }
    assert!(unnoticed.len() * 20 < turned, "{} of {turned}:\n{}", unnoticed.len(), unnoticed.join("\n"));
}

#[test]
fn a_row_that_is_gone_or_new_or_of_another_value_is_noticed() {
    let (specs, blocks) = (specs("mhip"), blocks("mhip"));
    let changed = |change: &dyn Fn(&mut Vec<Value>), block: usize| {
        let mut other = blocks.clone();
        change(other[block]["experiments"][1]["verdicts"].as_array_mut().unwrap());
        wrong(&specs, &other)
    };
    for block in 0..4 {
        assert_eq!(changed(&|rows| drop(rows.remove(0)), block).len(), 1);
        assert_eq!(changed(&|rows| rows[0]["claim"] = json!("another"), block).len(), 2);
        assert_eq!(changed(&|rows| rows[0]["margin"] = json!(0.3), block).len(), 1);
        assert_eq!(changed(&|rows| rows[0]["published"] = json!(1.2), block).len(), 1);
        assert_eq!(changed(&|rows| rows[0]["null"]["of"] = json!("mhip/nulls:100p"), block).len(), 1);
        assert_eq!(changed(&|rows| rows[0]["value"] = json!(1.11), block).len(), 1);
    }
}
