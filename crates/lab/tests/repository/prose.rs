//! Numbers in the sentences and tables of the pages that stand beside an experiment of the papers are kept of it, set in its spec, or published.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::{Path, PathBuf};

use crate::sources::{Elsewhere, ON_THE_WIRE, parameters, unused};
use serde_json::Value;

/// Whose results are kept.
const GROUPS: [&str; 3] = ["mhip", "rmtcp", "fast"];
/// The pages whose decimal numbers are checked, and the directories where bare file names are looked up.
const WHOLE: [(&str, &[&str]); 4] =
    [("mhip.md", &["mhip"]), ("rmtcp.md", &["rmtcp"]), ("fast.md", &["fast"]), ("reproduction.md", &GROUPS)];
/// What sentences have from elsewhere: the page, what stands in the sentence, why.
const ELSEWHERE: [Elsewhere; 5] = [
    (
        "reproduction.md",
        "For runs of a normal distribution most are",
        "bounds that tests of `judge/src/rates.rs` assert",
    ),
    ("mhip.md", "An independent simulator goes from", "of issue 16, which asked why ours does not"),
    ("reproduction.md", "An independent simulator had", "of issue 16, as above"),
    ("reproduction.md", "The published sums of path 1", "each of two published numbers"),
    (
        "mhip.md",
        "its simple scheme with an oracle had",
        "of a feasibility study; not in the repository, as the paragraph says",
    ),
];

/// The simulated error rates that stand in `docs/experiments.md`, which a test of theirs compares: for paragraphs that name that page.
const RATES: &str = "rates";

/// What stands before an interval or a margin, and after the name of what it is of.
const PLUS_MINUS: &str = "± ";

/// Numbers by what they are of: an experiment, its intervals ([`PLUS_MINUS`]), or a group for what papers published; [`RATES`].
type Kept = BTreeMap<String, Vec<f64>>;

/// A number of a page, where it stands, and the experiments that stand beside it.
struct Number {
    text: String,
    percent: bool,
    spread: bool,
    line: usize,
    of: BTreeSet<String>,
    sentence: String,
}

#[test]
fn numbers_beside_the_name_of_an_experiment_are_kept_of_it() {
    let kept = kept();
    let (mut all, mut wrong) = (0, Vec::new());
    for page in pages() {
        let name = name_of(&page);
        let numbers = numbers_of(&name, &std::fs::read_to_string(&page).unwrap(), &kept);
        let found = numbers.iter().filter(|n| !is_kept(&n.text, n, &kept));
        let lines: Vec<String> = found
            .map(|n| format!("  {name}:{}: {} of {:?} in: {}", n.line, n.text, n.of, n.sentence.trim()))
            .collect();
        let say = format!("{name}: {} of {} numbers are kept nowhere", lines.len(), numbers.len());
        println!("{say}");
        all += numbers.len();
        if !lines.is_empty() {
            wrong.push(format!("{say}\n{}", lines.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "of {all} numbers looked at:\n{}", wrong.join("\n"));
    assert!(all >= 270, "only {all} numbers are looked at");
    let unused = unused(&ELSEWHERE, &root().join("docs"));
    assert!(unused.is_none(), "{unused:?} stands nowhere");
}

/// A wrong last digit may happen to match another value; most match none.
#[test]
fn a_wrong_digit_is_mostly_found() {
    let kept = kept();
    let read = |page: PathBuf| (name_of(&page), std::fs::read_to_string(page).unwrap());
    let all = pages().into_iter().map(read).flat_map(|(name, text)| numbers_of(&name, &text, &kept));
    let turned = all.map(|n| {
        let (number, percent) = n.text.split_at(n.text.trim_end_matches(" %").len());
        let (rest, last) = number.split_at(number.len() - 1);
        let other = format!("{rest}{}{percent}", (last.parse::<u8>().unwrap() + 3) % 10);
        !is_kept(&other, &n, &kept)
    });
    let turned: Vec<bool> = turned.collect();
    let found = turned.iter().filter(|found| **found).count();
    println!("{found} of {} are found", turned.len());
    assert!(found * 2 > turned.len(), "{found} of {}", turned.len());
}

#[test]
fn tables_that_are_made_code_and_sentences_with_another_source_have_none() {
    let kept = Kept::from([("mhip/x".into(), vec![1.234]), ("mhip".into(), vec![1.11])]);
    let page = "FF is 1.23 and 4.56, not 1.11 (`experiments/mhip/x.toml`). It was 7.89 (FINDINGS).\n\n\
                It is 9.99.\n\n<!-- findings mhip -->\n| mhip/x | 8.88 |\n<!-- end -->\n```\nmhip/x 6.66\n```\n";
    assert_eq!(shown("x.md", page, &kept), [("1.23", 1, true), ("4.56", 1, false), ("1.11", 1, true)]);
}

#[test]
fn on_the_pages_of_the_papers_rows_and_paragraphs_have_the_experiment_of_their_section() {
    let mut kept = Kept::from([("fast/a".into(), vec![1.25]), ("fast/b".into(), vec![3.75])]);
    kept.insert("fast".into(), vec![6.5]);
    let page = "# t\n\nIt is 3.75 or 6.5 or 9.5.\n\n## u\n\nIt is 1.25 (`a.toml`).\n\n| 1.25 |\n| 3.75 |\n| 3.75 | `b.toml` |\n\n\
                It is 3.75.\n\n## v\n\n- It is 3.75.\n";
    let all = [
        ("3.75", 3, true),
        ("6.5", 3, true),
        ("9.5", 3, false),
        ("1.25", 7, true),
        ("1.25", 9, true),
        ("3.75", 10, false),
        ("3.75", 11, true),
        ("3.75", 13, false),
        ("3.75", 17, true),
    ];
    assert_eq!(shown("fast.md", page, &kept), all);
    assert_eq!(shown("other.md", page, &kept), []);
    let share = "95 % of 8 or 25 % (`a.toml`), 3 % (`crates/x.rs`).\n";
    let kept = Kept::from([("fast/a".into(), vec![0.25])]);
    assert_eq!(shown("fast.md", share, &kept), []);
    let share = "95 % of 8 or 25 % (`a.toml`). Or 75 %: a price of 75 %.\n";
    assert_eq!(shown("fast.md", share, &kept), [("25 %", 1, true), ("75 %", 1, false), ("75 %", 1, true)]);
}

/// Numbers, their lines, and whether they are kept.
fn shown(name: &str, page: &str, kept: &Kept) -> Vec<(&'static str, usize, bool)> {
    let found = numbers_of(name, page, kept);
    let one = |n: &Number| (&*n.text.clone().leak(), n.line, is_kept(&n.text, n, kept));
    found.iter().map(one).collect()
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

fn name_of(page: &Path) -> String {
    page.file_name().unwrap_or_default().display().to_string()
}

/// What the checks of the experiments' own seeds and the findings of four series of seeds say; of an experiment's nulls too; what its
/// spec sets; and of a group what the papers published.
fn kept() -> Kept {
    let (mut kept, mut nulls) = (Kept::new(), BTreeSet::new());
    for group in GROUPS {
        for block in ["", "-1", "-1001", "-31001", "-61001"] {
            let file = root().join(format!("docs/results/{group}{block}.json"));
            let text = std::fs::read_to_string(file).unwrap();
            let block: Value = serde_json::from_str(&text).unwrap();
            for experiment in block["experiments"].as_array().unwrap() {
                let name = experiment["experiment"].as_str().unwrap();
                for verdict in experiment["verdicts"].as_array().unwrap() {
                    kept.entry(name.to_owned()).or_default().extend(values(verdict));
                    let spread = ["ci95", "margin"].into_iter().filter_map(|key| verdict[key].as_f64());
                    kept.entry(format!("{name}{PLUS_MINUS}")).or_default().extend(spread);
                    let null = verdict["null"]["of"].as_str().filter(|null| null.contains('/'));
                    nulls.extend(
                        null.map(|null| (name.to_owned(), null.split(':').next().unwrap().to_owned())),
                    );
                    kept.entry(group.to_owned()).or_default().extend(verdict["published"].as_f64());
                }
            }
        }
        for file in std::fs::read_dir(root().join("experiments").join(group)).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            let stem = file.file_stem().unwrap().to_str().unwrap();
            let set = match file.extension().and_then(|e| e.to_str()) {
                Some("toml") => (format!("{group}/{stem}"), parameters(&text)),
                _ => (group.to_owned(), text),
            };
            let numbers = decimals(&set.1).into_iter().filter_map(|n| n.parse::<f64>().ok());
            kept.entry(set.0).or_default().extend(numbers);
        }
    }
    let own = kept.clone();
    for ((name, null), of) in nulls.iter().flat_map(|pair| ["", PLUS_MINUS].map(|of| (pair, of))) {
        let null = own.get(&format!("{null}{of}"));
        kept.entry(format!("{name}{of}")).or_default().extend(null.into_iter().flatten());
    }
    let page = std::fs::read_to_string(root().join("docs/experiments.md")).unwrap();
    let rates = page.split("<!-- rates -->").nth(1).unwrap().split("<!-- end -->").next().unwrap();
    kept.insert(RATES.to_owned(), decimals(rates).iter().map(|n| n.parse().unwrap()).collect());
    for factor in ON_THE_WIRE {
        let of =
            |name: &String| ON_THE_WIRE.iter().find(|(begin, _)| name.starts_with(begin)) == Some(&factor);
        for values in kept.iter_mut().filter(|(name, _)| of(name)).map(|(_, values)| values) {
            let wire: Vec<f64> = values.iter().flat_map(|v| factor.1.iter().map(move |f| v * f)).collect();
            values.extend(wire);
        }
    }
    kept
}

/// The numbers of a verdict, those of its band among them.
fn values(verdict: &Value) -> Vec<f64> {
    let null = &verdict["null"];
    let [published, margin] = ["published", "margin"].map(|key| verdict[key].as_f64());
    let own = [verdict["value"].as_f64(), published, null["middle"].as_f64()];
    let band = decimals(verdict["expectation"].as_str().unwrap_or_default()).into_iter();
    let ends = published.zip(margin).map(|(published, margin)| [published - margin, published + margin]);
    let all = own.into_iter().flatten().chain(ends.into_iter().flatten());
    all.chain(band.filter_map(|n| n.parse().ok())).collect()
}

/// The numbers of the page with a decimal or more that stand beside experiments, but in sentences with another source. On the pages of
/// the papers all: what a sentence, else its paragraph or row, names stands beside its numbers; where that names none, what the section's text
/// names; else the group.
fn numbers_of(page: &str, text: &str, kept: &Kept) -> Vec<Number> {
    let groups = WHOLE.iter().find(|(whole, _)| *whole == page).map(|(_, groups)| *groups);
    let (mut found, mut section) = (Vec::new(), BTreeSet::new());
    let paragraphs = paragraphs(text);
    for (n, (line, paragraph)) in paragraphs.iter().enumerate() {
        let mut of = named(paragraph, groups.unwrap_or(&[]), kept);
        if paragraph.starts_with('#') {
            let own = paragraphs[n + 1..].iter().take_while(|(_, p)| !p.starts_with('#'));
            let prose = own.filter(|(_, p)| !p.starts_with('|'));
            section = prose.flat_map(|(_, p)| named(p, groups.unwrap_or(&[]), kept)).collect();
        }
        if let Some(groups) = groups.filter(|_| of.is_empty()) {
            let all = kept.keys().filter(|name| groups.contains(&name.split('/').next().unwrap_or_default()));
            of = if section.is_empty() { all.cloned().collect() } else { section.clone() };
        }
        if groups.is_some() && paragraph.contains("`docs/experiments.md`") {
            of.insert(RATES.to_owned());
        }
        let elsewhere = ELSEWHERE.iter().filter(|(of, ..)| *of == page).map(|(_, what, _)| *what);
        let sources: Vec<&str> = match groups {
            Some(_) => elsewhere.collect(),
            None => vec!["FINDINGS", "feasibility study", "RFC ", "`docs/"],
        };
        let has_source = |s: &str| sources.iter().any(|source| s.contains(source));
        let mut line = *line;
        for sentence in joined(paragraph.split_inclusive(['.', ':', ';'])) {
            let plain: String = sentence.split('`').step_by(2).collect();
            let shares = groups.filter(|_| !names_code(&sentence)).map(|_| whole_percents(&plain));
            let own = decimals(&plain).into_iter().chain(shares.into_iter().flatten());
            let own = own.filter(|_| !of.is_empty() && !has_source(&sentence));
            found.extend(own.map(|text| {
                let at = sentence.find(&text).unwrap_or_default();
                let line = line + sentence[..at].matches('\n').count();
                let percent = sentence[at..].starts_with(&format!("{text} %"));
                let own = named(&sentence, groups.unwrap_or(&[]), kept);
                let of = if own.is_empty() { of.clone() } else { own };
                let spread = sentence[..at].ends_with(PLUS_MINUS);
                Number { text, percent, spread, line, of, sentence: sentence.replace('\n', " ") }
            }));
            line += sentence.matches('\n').count();
        }
    }
    found
}

/// The experiments that a paragraph names, and their groups: as `group/name`, or the file alone where `groups` have one of that name.
fn named(paragraph: &str, groups: &[&str], kept: &Kept) -> BTreeSet<String> {
    let group = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let is_named = |name: &&String| {
        let file = groups.contains(&&group(name)[..]).then(|| name.split('/').nth(1)).flatten();
        names(paragraph, name) || file.is_some_and(|file| paragraph.contains(&format!("`{file}.toml`")))
    };
    let all = kept.keys().filter(|name| name.contains('/')).filter(is_named);
    all.flat_map(|name| [name.clone(), group(name)]).collect()
}

/// Pieces that end in a full stop, a colon or a semicolon, with the next where no space follows.
fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for piece in pieces {
        match sentences.last_mut().filter(|_| !piece.starts_with([' ', '\n'])) {
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

/// Text between empty lines and the line where it begins, each list item and row of a table for itself, without code and tables that are made.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut code, mut made) = (vec![(1, String::new())], false, false);
    for (n, line) in page.lines().enumerate() {
        made |= ["<!-- findings", "<!-- agreement", "<!-- factors"].iter().any(|mark| line.starts_with(mark));
        code ^= line.starts_with("```");
        if line.trim().is_empty() || line.starts_with(['|', '#']) || line.starts_with("- ") {
            found.push((n + 1, String::new()));
        }
        if !code && !made && !line.starts_with("```") {
            let last = &mut found.last_mut().unwrap().1;
            last.push_str(line);
            last.push('\n');
        }
        made &= !line.starts_with("<!-- end");
    }
    found
}

/// Numbers with a point, but those of sections of a paper.
fn decimals(text: &str) -> Vec<String> {
    let mut parts = text.split('§');
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let first = parts.next().unwrap_or_default();
    let text: String = iter::once(first).chain(parts.map(|p| p.trim_start_matches(is_number))).collect();
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let words = words.map(|w| w.trim_matches(['.', ',']).replace(',', ""));
    words.filter(|w| w.matches('.').count() == 1).collect()
}

/// Whole numbers of percent, `14 %`, but the level of intervals.
fn whole_percents(text: &str) -> Vec<String> {
    let before = text.match_indices(" %").map(|(at, _)| &text[..at]);
    let number = |text: &str| {
        let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (rest, number) = text.split_at(text.len() - digits);
        (digits > 0 && number != "95" && !rest.ends_with(['.', ','])).then(|| format!("{number} %"))
    };
    before.filter_map(number).collect()
}

/// It names a file of the program, or a page, that says its numbers.
fn names_code(sentence: &str) -> bool {
    ["`crates/", "`docs/", "`validate/"].iter().any(|code| sentence.contains(code))
}

fn places(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// Whether one of the values beside `of`, rounded to as many places, is `number`: as it is, in Mbit/s, or in percent. A price
/// is what is missing to 1.
fn is_kept(number: &str, of: &Number, kept: &Kept) -> bool {
    if let Some(whole) = number.strip_suffix(" %") {
        let all = of.of.iter().filter_map(|name| kept.get(name)).flatten();
        let share = |v: &f64| if of.sentence.contains("price") { 1.0 - v } else { *v };
        return all.map(share).any(|v| format!("{:.0}", 100.0 * v) == whole);
    }
    let places = places(number);
    let factors: &[f64] = if of.percent { &[100.0, 1.0] } else { &[1.0, 1e-6] };
    let pool = |name: &String| if of.spread { format!("{name}{PLUS_MINUS}") } else { name.clone() };
    let all = of.of.iter().filter_map(|name| kept.get(&pool(name))).flatten();
    all.flat_map(|v| factors.iter().map(move |f| v * f)).any(|v| format!("{v:.places$}") == number)
}
