//! Errors of spec files: the place in the file, what is wrong, and the remedy.

use std::fmt;
use std::ops::Range;

use toml::de::DeTable;

use crate::document::{Key, dotted, find};
use crate::excerpt::Excerpt;

/// What is wrong with a spec file, where, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct SpecError {
    /// Name of the file.
    pub file: String,
    /// Where in the file.
    pub place: Excerpt,
    /// Where in the document, `link[0].rate`; empty for the document itself.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// Most characters of a message that a file brings into it.
const SAID: usize = 400;

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => writeln!(f, "{}", self.message)?,
            key => writeln!(f, "{key}: {}", self.message)?,
        }
        writeln!(f, "{}", self.place.below(&self.file))?;
        let pad = " ".repeat(self.place.line.to_string().len());
        self.help.iter().try_for_each(|help| write!(f, "{pad} = help: {help}"))
    }
}

/// What is wrong, and where in the document; [`SpecError`] once the text is at hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub at: Vec<Key>,
    /// The key itself is wrong, not its value.
    pub on_key: bool,
    pub message: String,
    pub help: Option<String>,
}

/// Keys that specs of earlier versions may have, and what they are called now.
const RENAMED: [(&str, &str); 1] = [("told", "configured")];

/// `at!["link", 3, "rate"]`.
macro_rules! at {
    ($($key:expr),* $(,)?) => { vec![$($crate::document::Key::from($key)),*] };
}
pub(super) use at;

impl Problem {
    pub fn new(at: Vec<Key>, message: impl Into<String>) -> Self {
        Self { at, on_key: false, message: message.into(), help: None }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// `name` is none of `known`, which are `what`s.
    pub fn unknown(at: Vec<Key>, what: &str, name: &str, known: &[&str]) -> Self {
        let problem = Self::new(at, format!("no {what} is named \"{name}\""));
        problem.help(suggestion(what, name, known))
    }

    /// What serde says of the value at the end of `prefix`, in our words.
    pub fn from_serde(mut prefix: Vec<Key>, message: &str) -> Self {
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match quoted.split_first() {
            Some((field, known)) if message.starts_with("unknown field") => {
                if prefix.last() != Some(&Key::from(*field)) {
                    prefix.push(Key::from(*field));
                }
                let problem = match RENAMED.iter().find(|(old, new)| old == field && known.contains(new)) {
                    Some((_, new)) => {
                        Self::new(prefix, "this key has another name now").help(format!("write {new}"))
                    }
                    None => Self::new(prefix, "unknown key").help(suggestion("key", field, known)),
                };
                Self { on_key: true, ..problem }
            }
            Some((variant, known)) if message.starts_with("unknown variant") => {
                let message = format!("\"{variant}\" is not a choice here");
                Self::new(prefix, message).help(suggestion("choice", variant, known))
            }
            Some((field, _)) if message.starts_with("missing field") => {
                let within = prefix.iter().rev().find_map(Key::name).unwrap_or_default();
                let help = example_of(field, within);
                Self::new(prefix, format!("the key `{field}` is missing")).help(help)
            }
            _ if message.starts_with("data did not match any variant") => {
                let help = form_of(&prefix).map(|form| format!("write for example {form}"));
                Self { help, ..Self::new(prefix, "it has none of the forms that are possible here") }
            }
            _ => match message.trim_end().split_once(", expected ") {
                Some((found, expected)) if found.starts_with("invalid ") => {
                    Self::of_type(prefix, found, expected)
                }
                _ => match message.trim_end().split_once("; write for example ") {
                    Some((wrong, example)) => {
                        Self::new(prefix, wrong).help(format!("write for example {example}"))
                    }
                    None => Self::new(prefix, message.trim_end()),
                },
            },
        }
    }

    /// A value of another type than `expected`, as serde calls it.
    fn of_type(at: Vec<Key>, found: &str, expected: &str) -> Self {
        let names = |kind: &str| expected.starts_with(kind);
        let expected = match expected {
            "f32" | "f64" => "a number",
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
            "i8" | "i16" | "i32" | "i64" => "a whole number",
            _ if names("a sequence") => "a list",
            _ if names("a map") || names("struct") || names("internally tagged enum") => "a table",
            other => other,
        };
        let is_band = at.first() == Some(&Key::from("expect")) && expected == "a number";
        let form = if is_band { Some("5e6, without a unit: rates are in bit/s") } else { form_of(&at) };
        let help =
            form.map_or_else(|| format!("write {expected}"), |form| format!("write for example {form}"));
        Self::new(at, format!("{}, expected {expected}", found.replace('`', ""))).help(help)
    }

    /// Finds the place in `text`, whose document is `doc`.
    pub fn locate(self, file: &str, text: &str, doc: &DeTable<'_>) -> Box<SpecError> {
        let span = find(doc, &self.at, self.on_key).unwrap_or(0..0);
        self.place(file, text, span)
    }

    /// It is at `span` of `text`.
    pub fn place(self, file: &str, text: &str, span: Range<usize>) -> Box<SpecError> {
        SpecError::at(file, text, span, self)
    }
}

impl SpecError {
    /// The text is not TOML.
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Box<Self> {
        let problem =
            Problem::new(vec![], format!("not TOML: {}", error.message().trim_end().replace('\n', "; ")));
        Self::at(file, text, error.span().unwrap_or(0..0), problem)
    }

    fn at(file: &str, text: &str, span: Range<usize>, problem: Problem) -> Box<Self> {
        Box::new(Self {
            file: file.to_owned(),
            place: Excerpt::of(text, span),
            key: clipped(dotted(&problem.at)),
            message: clipped(problem.message),
            help: problem.help.map(clipped),
        })
    }
}

fn clipped(text: String) -> String {
    match text.char_indices().nth(SAID) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

/// More names than this hide the one that was meant.
const MANY: usize = 40;

/// The nearest of `known`, each of them a `what`, and all of them unless there are many.
pub(crate) fn suggestion(what: &str, word: &str, known: &[&str]) -> String {
    let mut by_likeness: Vec<(f64, &str)> =
        known.iter().map(|k| (strsim::jaro_winkler(word, k), *k)).collect();
    by_likeness.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Labels of cells have commas in them.
    let all = known.join(if known.iter().any(|k| k.contains(',')) { "  " } else { ", " });
    let first = |n| by_likeness.iter().take(n).map(|(_, name)| format!("\"{name}\"")).collect::<Vec<_>>();
    let is_near = by_likeness.first().is_some_and(|(likeness, _)| *likeness > 0.75);
    match (known.len(), is_near) {
        (0, _) => "leave it out: there are none here".to_owned(),
        (n, true) if n > MANY => {
            let near = first(4);
            format!("did you mean {}? Next to it are {}; there are {n}", near[0], near[1..].join(", "))
        }
        (n, false) if n > MANY => format!("the nearest of {n} are {}", first(3).join(", ")),
        (_, true) => format!("did you mean {}? The {} are: {all}", first(1)[0], plural(what)),
        (_, false) => format!("the {} are: {all}", plural(what)),
    }
}

/// Several of what is called `what`, as in "axis of the grid".
fn plural(what: &str) -> String {
    let (noun, rest) =
        what.split_once(' ').map_or((what, String::new()), |(n, rest)| (n, format!(" {rest}")));
    let nouns = if noun == "axis" { "axes".to_owned() } else { format!("{noun}s") };
    nouns + &rest
}

/// How to add `field` to the table `within`.
fn example_of(field: &str, within: &str) -> String {
    let value = match (field, within) {
        ("version", _) => "1",
        ("rate", _) => "\"8Mbit/s\"",
        ("delay" | "at" | "on" | "off", _) => "\"30ms\"",
        ("duration", _) => "\"20s\"",
        ("packet", _) => "\"1000B\"",
        ("link" | "flow", _) => return format!("add at least one [[{field}]] table"),
        ("algorithm", _) => "\"newreno\"",
        ("policy", "loss" | "inner") => "\"sack\"",
        ("policy", "acks") => "\"thinned\"",
        ("policy", _) => "\"earliest_arrival\"",
        ("allowance", _) => "5",
        ("inner", _) => "{ policy = \"sack\" }",
        ("probability", _) => "0.01",
        ("discipline", _) => "\"codel\"",
        ("trace", _) => "\"lte.trace\"",
        ("values", _) => "[…]",
        _ => "\"…\"",
    };
    format!("add for example {field} = {value}")
}

/// How what stands at `path` is written.
fn form_of(path: &[Key]) -> Option<&'static str> {
    let names: Vec<&str> = path.iter().filter_map(Key::name).collect();
    Some(match names.last().copied()? {
        "cc" => "cc = { algorithm = \"newreno\" }",
        "scheduler" => "scheduler = { policy = \"earliest_arrival\" }",
        "acks" => "acks = { policy = \"thinned\" }",
        "inner" => "inner = { policy = \"sack\" }",
        "knowledge" => "knowledge = { heartbeat = 100 }",
        "reordering" => "reordering = { probability = 0.01, delay = \"20ms\" }",
        "back" => "back = { rate = \"1Mbit/s\" }",
        "change" => "change = [{ at = \"8s\", rate = \"6Mbit/s\" }]",
        "queue" => "queue = \"144p\", or { discipline = \"codel\" }",
        "seeds" => "seeds = \"1..20\", the last included, or \"3\" for one",
        "paths" => "paths = [[\"r1\"], [\"r2\"]]",
        "start" => "start = \"1s\", or [\"0s\", \"1s\"] for a time that each seed draws",
        "duplication" => "duplication = 0.01, which is one percent",
        "corruption" => "corruption = 0.01, which is one percent",
        "probability" => "probability = 0.01, which is one percent",
        "loss" if names[0] != "link" => "loss = { policy = \"sack\" }",
        "loss" => "loss = 0.01, which is one percent",
        "link" | "flow" | "host" | "grid" | "expect" | "figure" => "a table with two brackets: [[flow]]",
        _ => return None,
    })
}
