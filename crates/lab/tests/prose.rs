//! Numbers in the sentences of the pages that name an experiment of the papers are kept of that experiment.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Whose results are kept.
const GROUPS: [&str; 3] = ["mhip", "rmtcp", "fast"];
/// As they are, in Mbit/s, in percent.
const FACTORS: [f64; 3] = [1.0, 1e-6, 100.0];

/// Numbers by what they are of: an experiment, or a group for what papers published.
type Kept = BTreeMap<String, Vec<f64>>;

/// A number of a page, and the experiments that its paragraph names.
struct Number {
    text: String,
    of: BTreeSet<String>,
    sentence: String,
}

#[test]
fn numbers_beside_the_name_of_an_experiment_are_kept_of_it() {
    let kept = kept();
    let (mut all, mut wrong) = (0, Vec::new());
    for page in pages() {
        let numbers = numbers_of(&std::fs::read_to_string(&page).unwrap(), &kept);
        let found = numbers.iter().filter(|n| !is_kept(&n.text, &n.of, &kept));
        let lines: Vec<String> = found.map(|n| format!("  {} in: {}", n.text, n.sentence.trim())).collect();
        let name = page.file_name().unwrap_or_default().display().to_string();
        let say = format!("{name}: {} of {} numbers are kept nowhere", lines.len(), numbers.len());
        println!("{say}");
        all += numbers.len();
        if !lines.is_empty() {
            wrong.push(format!("{say}\n{}", lines.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "of {all} numbers looked at:\n{}", wrong.join("\n"));
    assert!(all >= 80, "only {all} numbers are looked at");
}

/// A last digit that is wrong may be that of another value; most are of none.
#[test]
fn a_wrong_digit_is_mostly_found() {
    let kept = kept();
    let all = pages().into_iter().flat_map(|page| numbers_of(&std::fs::read_to_string(page).unwrap(), &kept));
    let turned = all.map(|n| {
        let (rest, last) = n.text.split_at(n.text.len() - 1);
        let other = format!("{rest}{}", (last.parse::<u8>().unwrap() + 3) % 10);
        !is_kept(&other, &n.of, &kept)
    });
    let turned: Vec<bool> = turned.collect();
    let found = turned.iter().filter(|found| **found).count();
    assert!(found * 2 > turned.len(), "{found} of {}", turned.len());
}

#[test]
fn tables_that_are_made_code_and_sentences_with_another_source_have_none() {
    let kept = Kept::from([("mhip/x".into(), vec![1.234]), ("mhip".into(), vec![1.11])]);
    let page = "FF is 1.23 and 4.56, not 1.11 (`experiments/mhip/x.toml`). It was 7.89 (FINDINGS).\n\n\
                It is 9.99.\n\n<!-- findings mhip -->\n| mhip/x | 8.88 |\n<!-- end -->\n```\nmhip/x 6.66\n```\n";
    let found = numbers_of(page, &kept);
    let shown: Vec<(&str, bool)> =
        found.iter().map(|n| (&n.text[..], is_kept(&n.text, &n.of, &kept))).collect();
    assert_eq!(shown, [("1.23", true), ("4.56", false), ("1.11", true)]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path());
    let mut pages: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    pages
}

/// What the checks of the experiments' own seeds and the findings of three series of seeds say; of an experiment's nulls too.
fn kept() -> Kept {
    let (mut kept, mut nulls) = (Kept::new(), BTreeSet::new());
    for group in GROUPS {
        for block in ["", "-1", "-1001", "-31001"] {
            let file = root().join(format!("docs/results/{group}{block}.json"));
            let text = std::fs::read_to_string(file).unwrap();
            let block: Value = serde_json::from_str(&text).unwrap();
            for experiment in block["experiments"].as_array().unwrap() {
                let name = experiment["experiment"].as_str().unwrap();
                for verdict in experiment["verdicts"].as_array().unwrap() {
                    kept.entry(name.to_owned()).or_default().extend(values(verdict));
                    let null = verdict["null"]["of"].as_str().filter(|null| null.contains('/'));
                    nulls.extend(
                        null.map(|null| (name.to_owned(), null.split(':').next().unwrap().to_owned())),
                    );
                    kept.entry(group.to_owned()).or_default().extend(verdict["published"].as_f64());
                }
            }
        }
    }
    let own = kept.clone();
    for (name, null) in nulls {
        kept.entry(name).or_default().extend(own.get(&null).into_iter().flatten());
    }
    kept
}

/// The numbers of a verdict, those of its band among them.
fn values(verdict: &Value) -> Vec<f64> {
    let null = &verdict["null"];
    let own = ["value", "ci95", "published", "margin"].map(|key| verdict[key].as_f64());
    let nulls = [null["middle"].as_f64(), null["single"]["low"].as_f64(), null["single"]["high"].as_f64()];
    let band = decimals(verdict["expectation"].as_str().unwrap_or_default()).into_iter();
    let ends = own[2].zip(own[3]).map(|(published, margin)| [published - margin, published + margin]);
    let all = own.into_iter().chain(nulls).flatten().chain(ends.into_iter().flatten());
    all.chain(band.filter_map(|n| n.parse().ok())).collect()
}

/// The numbers of `page` with a decimal or more in paragraphs that name experiments, but in sentences with another source.
fn numbers_of(page: &str, kept: &Kept) -> Vec<Number> {
    let mut found = Vec::new();
    for paragraph in paragraphs(page) {
        let of: BTreeSet<String> = kept
            .keys()
            .filter(|name| name.contains('/') && names(&paragraph, name))
            .flat_map(|name| [name.clone(), name.split('/').next().unwrap_or_default().to_owned()])
            .collect();
        let sentences = paragraph.split_inclusive(['.', ':', ';']);
        let sources = ["FINDINGS", "feasibility study", "RFC ", "`docs/"];
        let has_source = |s: &str| sources.iter().any(|source| s.contains(source));
        for sentence in joined(sentences).iter().filter(|s| !of.is_empty() && !has_source(s)) {
            let plain: String = sentence.split('`').step_by(2).collect();
            let two = decimals(&plain).into_iter().filter(|n| places(n) >= 1);
            found.extend(two.map(|text| Number { text, of: of.clone(), sentence: sentence.clone() }));
        }
    }
    found
}

/// Pieces that end in a full stop, a colon or a semicolon, with the next where no space follows.
fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for piece in pieces {
        match sentences.last_mut().filter(|_| !piece.starts_with(' ')) {
            Some(last) => last.push_str(piece),
            None => sentences.push(piece.to_owned()),
        }
    }
    sentences
}

/// It names the experiment, and not only one that begins like it.
fn names(paragraph: &str, experiment: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = paragraph.match_indices(experiment);
    at.any(|(at, _)| !paragraph[at + experiment.len()..].starts_with(is_word))
}

/// Text between empty lines, each list item and row of a table for itself, without code and tables that are made.
fn paragraphs(page: &str) -> Vec<String> {
    let (mut found, mut code, mut made) = (vec![String::new()], false, false);
    for line in page.lines() {
        made |= line.starts_with("<!-- findings") || line.starts_with("<!-- agreement");
        code ^= line.starts_with("```");
        if line.trim().is_empty() || line.starts_with(['|', '#']) || line.starts_with("- ") {
            found.push(String::new());
        }
        if !code && !made && !line.starts_with("```") {
            let last = found.last_mut().unwrap();
            last.push_str(line);
            last.push(' ');
        }
        made &= !line.starts_with("<!-- end");
    }
    found
}

/// Numbers with a point.
fn decimals(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let words = words.map(|w| w.trim_matches(['.', ',']).replace(',', ""));
    words.filter(|w| w.matches('.').count() == 1).collect()
}

fn places(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// Whether one of the values of `of`, rounded to as many places, is `number`.
fn is_kept(number: &str, of: &BTreeSet<String>, kept: &Kept) -> bool {
    let places = places(number);
    let all = of.iter().filter_map(|name| kept.get(name)).flatten();
    all.flat_map(|v| FACTORS.map(|factor| format!("{:.places$}", v * factor))).any(|shown| shown == number)
}
