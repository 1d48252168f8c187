//! Numbers in the pages of the papers follow from a check, or their paragraph names what gives them.

use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::{Elsewhere, ON_THE_WIRE, parameters, unused};
use serde_json::Value;

/// The pages, and the groups whose checks they speak of.
const PAGES: [(&str, &[&str]); 5] = [
    ("docs/mhip.md", &["mhip"]),
    ("docs/rmtcp.md", &["rmtcp"]),
    ("docs/fast.md", &["fast"]),
    ("docs/friendliness.md", &["mhip"]),
    ("docs/reproduction.md", &["mhip", "rmtcp", "fast"]),
];

/// What paragraphs have from elsewhere: the page, how the paragraph begins or what stands in it, why.
const ELSEWHERE: [Elsewhere; 9] = [
    ("docs/mhip.md", "A feasibility study preceded", "it is not in the repository, as the paragraph says"),
    (
        "docs/rmtcp.md",
        "| 7 | route id reply",
        "255: a byte of `options.rs`, which the text before the table names",
    ),
    ("docs/rmtcp.md", "**The window** of 128,000 bytes", "940: a segment of 960 less 20 bytes of options"),
    ("docs/rmtcp.md", "**A route dies**", "200 ms: from 20 to 20.2 s"),
    ("docs/fast.md", "Payload; 1,000 of 1,040 bytes", "1,000 and 40 of headers"),
    ("docs/fast.md", "**Why one window fails**", "2,500: 100 packets in 40 ms"),
    ("docs/friendliness.md", "**Window-limited runs.**", "sums of two published numbers"),
    ("docs/reproduction.md", "The seeds from 31001 on were new", "names of commits, and where seeds begin"),
    (
        "docs/reproduction.md",
        "With 128 packets of 940 bytes",
        "940: a segment of 960 less 20 bytes of options",
    ),
];

/// What stands before a table that follows from the factors of single runs, which are kept: it is compared as a whole.
const FACTORS: &str = "<!-- factors ";

#[test]
fn every_number_of_the_papers_pages_follows_from_a_check_or_names_its_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut loose = Vec::new();
    for (page, groups) in PAGES {
        let known: BTreeSet<String> = groups.iter().flat_map(|group| known(&root, group)).collect();
        let text = std::fs::read_to_string(root.join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
        let elsewhere: Vec<&str> =
            ELSEWHERE.iter().filter(|(of, ..)| *of == page).map(|(_, what, _)| *what).collect();
        let of_a_check = |p: &String| !elsewhere.iter().any(|what| p.contains(what));
        for paragraph in without_source(&text).into_iter().filter(of_a_check) {
            let missing: Vec<_> =
                numbers(&paragraph).into_iter().filter(|n| !known.contains(&normal(n))).collect();
            if !missing.is_empty() {
                loose.push(format!("{page}: {} in: {}", missing.join(", "), paragraph.trim()));
            }
        }
    }
    assert!(loose.is_empty(), "numbers without a source:\n\n{}", loose.join("\n\n"));
    let unused = unused(&ELSEWHERE, &root);
    assert!(unused.is_none(), "{unused:?} stands nowhere");
}

#[test]
fn numbers_of_all_other_pages_stand_in_a_section_that_names_a_command_or_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut looked_at = 0;
    let papers = PAGES.map(|(page, _)| root.join(page));
    let others = pages(&root).into_iter().filter(|page| !papers.contains(page));
    for page in others.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).expect("it is listed");
        let loose: Vec<String> =
            sections(&text).filter(|s| !names_a_command(s)).flat_map(fractions).collect();
        looked_at += sections(&text).flat_map(fractions).count();
        assert!(loose.is_empty(), "{}: {} without a source in the section", page.display(), loose.join(", "));
    }
    assert!(looked_at > 500, "only {looked_at} numbers are looked at");
}

/// From one heading to the next.
fn sections(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("\n#").map(|(at, _)| at + 1);
    let starts: Vec<usize> = [0].into_iter().chain(starts).collect();
    let ends: Vec<usize> = starts[1..].iter().copied().chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &text[start..end])
}

fn names_a_command(section: &str) -> bool {
    let mut quoted = section.split('`').skip(1).step_by(2);
    quoted.any(|q| ["cargo ", "make ", "polypath "].iter().any(|c| q.starts_with(c)))
        || names_its_source(section)
}

/// Numbers with a point outside of code: what is measured has one, mostly.
fn fractions(section: &str) -> Vec<String> {
    let plain: String = section.split('`').step_by(2).collect();
    numbers(&plain).into_iter().filter(|n| n.contains('.')).collect()
}

/// What the group's experiments set, what its kept results say, rounded in every way, and what papers say of it.
fn known(root: &Path, group: &str) -> Vec<String> {
    let mut known = Vec::new();
    for file in files(&root.join("experiments").join(group)) {
        let text = std::fs::read_to_string(file).expect("it is listed");
        known.extend(numbers(&parameters(&text)).iter().map(|n| normal(n)));
    }
    let of_group = ON_THE_WIRE.iter().filter(|(name, _)| name.starts_with(&format!("{group}/")));
    let wire = of_group.flat_map(|(_, factors)| factors.iter().copied());
    for kept in kept(root, group) {
        let seeds = kept["experiments"].as_array().into_iter().flatten().filter_map(|e| e["seeds"].as_str());
        known.extend(seeds.flat_map(|seeds| seeds.split("..").map(str::to_owned)));
        values(&kept, &mut |v| {
            for factor in [1.0, 1e-6, 100.0, 1e-3].into_iter().chain(wire.clone()) {
                known.extend((0..=4).map(|digits| normal(&format!("{:.digits$}", v * factor))));
            }
        });
    }
    known
}

/// What `make figures` keeps of a group: the check of its own seeds, and the findings of series of seeds, the first first.
fn kept(root: &Path, group: &str) -> Vec<Value> {
    let of = |file: &PathBuf| {
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.split('-').next() == Some(group)
    };
    let mut files: Vec<PathBuf> = files(&root.join("docs/results")).into_iter().filter(of).collect();
    files.sort();
    assert!(files.len() >= 2, "{group}: {files:?}");
    let text = |file: &PathBuf| std::fs::read_to_string(file).expect("it is listed");
    files.iter().map(|file| serde_json::from_str(&text(file)).expect("it is JSON")).collect()
}

/// The tables between markers are, byte for byte, what `tools/findings` makes of the results that are kept.
#[test]
fn tables_of_findings_stand_in_the_pages_as_they_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !is_there("python3") {
        println!("SKIPPED tables of findings: needs python3");
        return;
    }
    let said = check(&root, &pages(&root));
    assert!(said.is_none(), "run tools/findings docs/results docs/*.md:\n{}", said.unwrap_or_default());
}

/// Of each table of each page, a number in a row, a row, and all of it.
#[test]
fn a_table_that_is_changed_by_hand_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !is_there("python3") {
        println!("SKIPPED tables of findings: needs python3");
        return;
    }
    let dir = tempfile::tempdir().expect("there is a place for files");
    let mut changed = Vec::new();
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).expect("it is listed");
        let marks = ["<!-- findings ", "<!-- agreement", FACTORS];
        let marked = marks.iter().flat_map(|mark| text.match_indices(mark));
        for (at, _) in
            marked.filter(|(at, _)| text[*at..].lines().nth(1).is_some_and(|l| l.starts_with("| ")))
        {
            let row = text[at..].lines().nth(3).expect("a table has a row");
            let number = row.rfind(|c: char| c.is_ascii_digit()).expect("a row has a number");
            let other = if &row[number..=number] == "7" { "8" } else { "7" };
            let turned = format!("{}{other}{}", &row[..number], &row[number + 1..]);
            for new in [turned + "\n", String::new()] {
                let file = dir.path().join(format!("page-{}.md", changed.len()));
                let whole = format!("{row}\n");
                let here = at + text[at..].find(&whole).expect("it is a line of it");
                std::fs::write(&file, [&text[..here], &new, &text[here + whole.len()..]].concat())
                    .expect("it is ours");
                changed.push((file, format!("{}: {row}", page.display())));
            }
        }
    }
    let files: Vec<PathBuf> = changed.iter().map(|(file, _)| file.clone()).collect();
    let said = check(&root, &files).unwrap_or_default();
    for (file, what) in &changed {
        assert!(said.contains(&format!("{}:", file.display())), "{what} {said}");
    }
    assert!(changed.len() >= 12, "{}", changed.len());
}

/// What `tools/findings --check` says of `pages`; nothing if they are right.
fn check(root: &Path, pages: &[PathBuf]) -> Option<String> {
    let mut command = Command::new("python3");
    command.args([root.join("tools/findings"), "--check".into(), root.join("docs/results")]).args(pages);
    let output = command.output().expect("there is python3");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// All pages.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = files(&root.join("docs"));
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.sort();
    pages
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("there are experiments");
    entries.map(|e| e.expect("it can be listed").path()).filter(|p| p.is_file()).collect()
}

fn values(json: &Value, see: &mut impl FnMut(f64)) {
    match json {
        Value::Number(n) => see(n.as_f64().unwrap_or(0.0)),
        Value::Array(all) => all.iter().for_each(|v| values(v, see)),
        Value::Object(all) => all.values().for_each(|v| values(v, see)),
        _ => {}
    }
}

/// The paragraphs and rows that name no source but experiments: what these are said to give is looked for.
fn without_source(text: &str) -> Vec<String> {
    let mut loose = paragraphs(text);
    loose.retain(|p| !p.starts_with('#') && !names_code(p));
    loose
}

/// It names a command, a file of the program, or an RFC.
fn names_code(paragraph: &str) -> bool {
    let mut quoted = paragraph.split('`').skip(1).step_by(2);
    quoted.any(|q| ["crates/", "validate/", "lab "].iter().any(|code| q.contains(code)))
        || paragraph.contains("RFC ")
}

/// Blocks of text between empty lines, each table row and list item for itself; drawings, code and tables of factors are none.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut code, mut made) = (false, false);
    for line in text.lines() {
        code ^= line.starts_with("```");
        made = (made || line.starts_with(FACTORS)) && !line.starts_with("<!-- end");
        if made {
            continue;
        }
        let own = line.starts_with(['|', '#', '-']) || line.trim().is_empty();
        if own && !code {
            found.push(String::new());
        }
        if !code && !line.starts_with('`') {
            let last = found.last_mut().expect("it begins with one");
            last.push_str(line);
            last.push(' ');
        }
    }
    found.retain(|p| !p.trim().is_empty());
    found
}

/// It names a command, a test, an experiment or a file.
fn names_its_source(paragraph: &str) -> bool {
    let quoted = paragraph.split('`').skip(1).step_by(2);
    let mut quoted = quoted.filter(|q| q.contains('/') || q.contains(".toml") || q.contains("lab "));
    quoted.next().is_some() || paragraph.contains("RFC ") || paragraph.contains("FINDINGS")
}

/// Numbers with a point, or of three digits and more, but those of sections of a paper.
fn numbers(text: &str) -> Vec<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut parts = text.split('§');
    let first = parts.next().unwrap_or_default();
    let text: String = iter::once(first).chain(parts.map(|p| p.trim_start_matches(is_number))).collect();
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let words = text.split(|c: char| !is_part(c)).map(|w| w.trim_matches(['.', ',']));
    let digits = |w: &str| w.chars().filter(char::is_ascii_digit).count();
    let counts = |w: &&str| (w.contains('.') && digits(w) > 1) || digits(w) >= 3;
    words.filter(counts).map(str::to_owned).collect()
}

/// `1,250` is `1250`, `0.90` is `0.9`.
fn normal(number: &str) -> String {
    let plain = number.replace(',', "");
    match plain.contains('.') {
        true => plain.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => plain,
    }
}

#[test]
fn a_number_from_nowhere_is_found() {
    assert_eq!(numbers("FF is 1.73 ± 0.02 at 1,000 packets, 20 s."), ["1.73", "0.02", "1,000"]);
    assert!(names_its_source("7.4 (`experiments/fast/drift.toml`)") && !names_its_source("7.4 of `alpha`"));
    let page = "# t\n\na 123\n\n| 4.5 |\n\n## u\n\nb `lab check x`:\n\n| 6.7 |\n";
    let found = without_source(page);
    assert_eq!(found.iter().map(|p| p.trim()).collect::<Vec<_>>(), ["a 123", "| 4.5 |", "| 6.7 |"]);
    assert_eq!(without_source("a 123 (`experiments/fast/drift.toml`)").len(), 1);
    let loose: Vec<_> = sections(page).filter(|s| !names_a_command(s)).flat_map(fractions).collect();
    assert_eq!(loose, ["4.5"]);
}
