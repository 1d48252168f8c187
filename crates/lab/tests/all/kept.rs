//! What `docs/results` keeps is what the specs ask, and each finding follows from the numbers beside it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
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

/// The check of the specs' own seeds, then the findings of four series of seeds.
fn blocks(group: &str) -> Vec<Value> {
    let read = |name: String| {
        let file = root().join("docs/results").join(name);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        serde_json::from_str(&text).unwrap()
    };
    ["", "-1", "-1001", "-31001", "-61001"].map(|block| read(format!("{group}{block}.json"))).to_vec()
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

/// What tables of single runs are made of, `docs/results/factors-*.csv`, is of all cells and seeds of the specs, and of no others.
#[test]
fn factors_are_kept_of_each_cell_and_seed() {
    let shelf = Shelf::Dir(root().join("experiments"));
    for (name, spec) in [("null", "mhip/null"), ("jitter", "foundation/jitter")] {
        let experiment = shelf.load(spec).unwrap();
        let seeds =
            |cell: &str| experiment.spec.seeds.iter().map(|s| format!("{cell},{s}")).collect::<Vec<_>>();
        let asked: BTreeSet<String> = experiment.cells.iter().flat_map(|cell| seeds(&cell.label)).collect();
        let file = root().join(format!("docs/results/factors-{name}.csv"));
        let text = std::fs::read_to_string(file).unwrap();
        let run = |line: &str| line.rsplit_once(',').unwrap().0.replace('"', "");
        let kept: BTreeSet<String> = text.lines().skip(1).map(run).collect();
        assert!(kept == asked, "{spec}, run `make figures ONLY={}`", spec.split('/').next().unwrap());
    }
}

/// A finding of the first block that was turned: its claim, and into what.
struct Turned {
    claim: String,
    to: Value,
    noticed: bool,
}

/// Each kept finding as each of `others`, a finding and a reason.
fn turned(others: &[(Value, Option<Value>)]) -> Vec<Turned> {
    let (specs, block) = (specs("mhip"), blocks("mhip").remove(1));
    let mut all = Vec::new();
    for experiment in block["experiments"].as_array().unwrap() {
        let spec = specs.iter().find(|spec| experiment["experiment"] == *spec.name).unwrap();
        let alone = json!({ "experiments": [experiment] });
        let misfits = |block| misfits(&[spec], &[block], true);
        assert_eq!(misfits(alone.clone()), [""; 0]);
        for (n, kept) in experiment["verdicts"].as_array().unwrap().iter().enumerate() {
            for (finding, reason) in others.iter().filter(|(f, _)| kept["finding"] != *f) {
                let mut other = alone.clone();
                let row = &mut other["experiments"][0]["verdicts"][n];
                row["finding"] = finding.clone();
                reason.iter().for_each(|reason| row["reason"] = reason.clone());
                let noticed = !misfits(other).is_empty();
                let claim = kept["claim"].as_str().unwrap().to_owned();
                all.push(Turned { claim, to: finding.clone(), noticed });
            }
        }
    }
    all
}

/// Rank correlations keep no numbers from which a finding follows.
fn is_rank(one: &Turned) -> bool {
    one.claim.starts_with("FF rises with the receive buffer")
}

#[test]
fn a_finding_that_is_turned_by_hand_does_not_follow() {
    let all = ["reproduced", "refuted", "not_identifiable", "direction_only", "undecided"];
    let turned = turned(&all.map(|finding| (json!(finding), None)));
    let unnoticed: Vec<&str> =
        turned.iter().filter(|t| !t.noticed && !is_rank(t)).map(|t| &t.claim[..]).collect();
    assert!(turned.len() > 300 && unnoticed.is_empty(), "{unnoticed:?}");
}

#[test]
fn a_finding_that_is_turned_with_its_reason_into_another_contradicts_its_numbers() {
    let all = [
        ("reproduced", "our mean lies within the margin"),
        ("refuted", "another value"),
        ("direction_only", "another value, on the claimed side of plain TCP"),
        ("not_identifiable", "the paper's runs cannot tell it from plain TCP"),
    ];
    let turned = turned(&all.map(|(finding, reason)| (json!(finding), Some(json!(reason)))));
    let turned: Vec<&Turned> = turned.iter().filter(|t| !is_rank(t)).collect();
    let unnoticed: Vec<String> =
        turned.iter().filter(|t| !t.noticed).map(|t| format!("{} as {}", t.claim, t.to)).collect();
    // Where ours and the null lie near each other, the scatter of the null decides, which is not kept.
    assert!(turned.len() > 250 && unnoticed.len() * 50 < turned.len(), "{unnoticed:?}");
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
