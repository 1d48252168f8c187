//! The grid: every combination of the values of its axes is a cell, a spec of its own.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::{Problem, at, suggestion};
use super::link::ends;
use crate::document::Key;
use crate::seeds::SeedRange;

/// A key of the spec and the values to try for it, or values that set several keys together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Which key, with dots: `connection.scheduler.policy`, `duration`, `flow.bulk.mss`,
    /// `flow.bulk.connection.cc` (flows and hosts by name), `link.r->b.queue` or `link.0.queue` (links
    /// by their ends as written, or by number, from 0). May be left out if every value says what it
    /// sets.
    #[serde(default)]
    pub key: Option<String>,
    /// What to call the axis in figures. Default: the key.
    #[serde(default)]
    pub name: Option<String>,
    /// What to set it to; or `{ label = "…", set = { "some.key" = …, "other.key" = … } }`, which sets
    /// several keys together. `label` and `value` name a value of `key`.
    #[cfg_attr(test, schemars(with = "Vec<serde_json::Value>"))]
    pub values: Vec<Value>,
    /// What to call the values in labels. Default: the values.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// A value of an axis: what it is called and what it sets.
struct Choice {
    label: String,
    set: Vec<(String, Value)>,
}

/// The document of each cell of `grid`, with the labels of its values.
pub(super) fn documents(doc: &Table, grid: &[Axis]) -> Result<Vec<(Vec<String>, Table)>, Problem> {
    let mut bare = doc.clone();
    bare.remove("grid");
    let mut cells = vec![(Vec::new(), bare)];
    for (n, axis) in grid.iter().enumerate() {
        let choices = axis.choices(n)?;
        let mut next: Vec<(Vec<String>, Table)> = Vec::with_capacity(cells.len() * choices.len());
        for (labels, cell) in &cells {
            for choice in &choices {
                let mut cell = cell.clone();
                for (key, value) in &choice.set {
                    of_a_cell(key, axis, n)?;
                    set(&mut cell, key, value.clone()).map_err(|p| axis.blame(n, p))?;
                }
                next.push((labels.iter().chain([&choice.label]).cloned().collect(), cell));
            }
        }
        cells = next;
    }
    Ok(cells)
}

/// Sections that are of the experiment, and the same in each of its cells.
const OF_ALL: [&str; 8] = ["version", "title", "description", "seeds", "grid", "expect", "measure", "figure"];

/// What an axis sets differs between cells.
fn of_a_cell(key: &str, axis: &Axis, n: usize) -> Result<(), Problem> {
    let section = key.split('.').next().unwrap_or_default();
    if !OF_ALL.contains(&section) {
        return Ok(());
    }
    let problem = Problem::new(vec![], format!("{section} is the same in all cells"));
    Err(axis
        .blame(n, problem.help("set a key of links, hosts, flows or connections, duration or measure_from")))
}

/// The number of the first axis of `doc` each of whose values replaces what stands at `at`.
pub(super) fn replaced_by(doc: &Table, grid: &[Axis], at: &[Key]) -> Option<usize> {
    let replaces = |choice: &Choice| {
        let places = choice.set.iter().map(|(key, value)| set(&mut doc.clone(), key, value.clone()));
        places.flatten().any(|place| at.starts_with(&place))
    };
    let always =
        |(n, axis): (usize, &Axis)| axis.choices(n).is_ok_and(|choices| choices.iter().all(replaces));
    grid.iter().enumerate().position(always)
}

/// Most cells of a grid.
const MAX_CELLS: usize = 10_000;

/// Before any cell is made: there are not too many, and no axis undoes another.
pub(super) fn check(grid: &[Axis], seeds: SeedRange) -> Result<(), Problem> {
    let cells = grid.iter().fold(1usize, |product, axis| product.saturating_mul(axis.values.len().max(1)));
    if cells > MAX_CELLS {
        return Err(Problem::new(
            at!["grid"],
            format!("a grid of {cells} cells; at most {MAX_CELLS} are run"),
        )
        .help("try fewer values"));
    }
    if let Err(too_many) = seeds.runs(cells) {
        return Err(Problem::new(at!["grid"], too_many.to_string()).help("try fewer values, or fewer seeds"));
    }
    for (n, axis) in grid.iter().enumerate() {
        if let Some(key) =
            axis.key.as_ref().filter(|key| grid[..n].iter().any(|a| a.key.as_ref() == Some(key)))
        {
            return Err(Problem::new(at!["grid", n, "key"], format!("a second axis sets {key}"))
                .help("what the first sets would be lost: put all its values into one axis"));
        }
    }
    Ok(())
}

impl Axis {
    /// What figures call it.
    pub fn called(&self) -> &str {
        self.name.as_deref().or(self.key.as_deref()).unwrap_or_default()
    }

    fn choices(&self, n: usize) -> Result<Vec<Choice>, Problem> {
        if self.values.is_empty() {
            return Err(Problem::new(at!["grid", n, "values"], "no values to try")
                .help("write for example values = [10, 20], or leave the [[grid]] out"));
        }
        if !self.labels.is_empty() && self.labels.len() != self.values.len() {
            let (labels, values) = (self.labels.len(), self.values.len());
            return Err(Problem::new(
                at!["grid", n, "labels"],
                format!("not one label for each value: {labels} for {values}"),
            )
            .help("write one label for each value, or leave labels out"));
        }
        let choices: Vec<Choice> = self
            .values
            .iter()
            .enumerate()
            .map(|(m, value)| {
                let choice = self.choice(value, at!["grid", n, "values", m])?;
                Ok(match self.labels.get(m) {
                    Some(label) => Choice { label: label.clone(), ..choice },
                    None => choice,
                })
            })
            .collect::<Result<_, Problem>>()?;
        for (m, choice) in choices.iter().enumerate() {
            if choices[..m].iter().any(|c| c.label == choice.label) {
                let problem =
                    Problem::new(at!["grid", n], format!("two values are called \"{}\"", choice.label));
                return Err(problem.help("give them labels"));
            }
        }
        Ok(choices)
    }

    fn choice(&self, value: &Value, at: Vec<Key>) -> Result<Choice, Problem> {
        let table = value.as_table().filter(|t| t.contains_key("set") || t.contains_key("value"));
        let keyless = || {
            Problem::new(at.clone(), "which key does it set?")
                .help("give the axis a key, or write { label = \"…\", set = { \"some.key\" = … } }")
        };
        let Some(table) = table else {
            let key = self.key.clone().ok_or_else(keyless)?;
            return Ok(Choice { label: show(value), set: vec![(key, value.clone())] });
        };
        if let Some(other) = table.keys().find(|k| !["label", "set", "value"].contains(&k.as_str())) {
            let problem = Problem::new(at, format!("unknown key {other} in a value of the grid"));
            return Err(problem.help("the keys are: label, value, set"));
        }
        let mut set = Vec::new();
        if let Some(value) = table.get("value") {
            set.push((self.key.clone().ok_or_else(keyless)?, value.clone()));
        }
        flatten("", table.get("set").and_then(Value::as_table), &mut set);
        let shown = || set.first().map(|(_, v)| show(v)).unwrap_or_default();
        let label = table.get("label").and_then(Value::as_str).map_or_else(shown, str::to_owned);
        Ok(Choice { label, set })
    }

    /// A key that cannot be set is a fault of the axis.
    fn blame(&self, n: usize, problem: Problem) -> Problem {
        let key = if self.key.is_some() { "key" } else { "values" };
        Problem { at: at!["grid", n, key], ..problem }
    }
}

/// The entries of a `set`; tables that are sections of a spec are entered, others are values.
fn flatten(prefix: &str, table: Option<&Table>, set: &mut Vec<(String, Value)>) {
    for (name, value) in table.into_iter().flatten() {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let parts: Vec<&str> = key.split('.').collect();
        let is_section = matches!(
            parts[..],
            ["connection" | "flow" | "link" | "host"]
                | ["flow" | "link" | "host", _]
                | ["flow", _, "connection"]
        );
        match value {
            Value::Table(inner) if is_section => flatten(&key, Some(inner), set),
            value => set.push((key, value.clone())),
        }
    }
}

/// What a link may have otherwise on the way back.
const BACK: [&str; 4] = ["rate", "delay", "queue", "loss"];

/// Sets `key` of `doc`, and says where that is. Missing tables on the way are created, and hosts; elements of other arrays must exist.
pub(super) fn set(doc: &mut Table, key: &str, value: Value) -> Result<Vec<Key>, Problem> {
    let mut names = key.split('.').peekable();
    let (mut table, mut at) = (doc, Vec::new());
    while let Some(name) = names.next() {
        at.push(Key::from(name));
        if names.peek().is_none() {
            table.insert(name.to_owned(), value);
            return Ok(at);
        }
        let missing = || if name == HOST { Value::Array(vec![]) } else { Value::Table(Table::new()) };
        let inner = table.entry(name).or_insert_with(missing);
        table = match inner {
            Value::Table(t) => t,
            Value::Array(elements) if elements.iter().all(Value::is_table) => {
                let which = names.next().unwrap_or_default();
                let rest: Vec<&str> = names.clone().collect();
                let (n, element) = element(elements, name, which, &rest.join("."))?;
                at.push(Key::from(n));
                element
            }
            _ => {
                return Err(Problem::new(vec![], format!("{name} is a value, not a table"))
                    .help(format!("set {name} itself")));
            }
        };
    }
    Err(Problem::new(vec![], format!("{key} is a table, not a value"))
        .help(format!("name one of its keys: {key}.…")))
}

/// The array whose elements need not be written: a host is what a link names.
const HOST: &str = "host";

/// The element of the array `array` with this name, number or ends, of which `key` is set, and its number.
fn element<'a>(
    elements: &'a mut Vec<Value>,
    array: &str,
    which: &str,
    key: &str,
) -> Result<(usize, &'a mut Table), Problem> {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let name_of = |v: &Value| match array {
        "link" => Some(format!("{}->{}", text(v, "from")?, text(v, "to")?)),
        _ => text(v, "name"),
    };
    let names: Vec<String> = elements.iter().filter_map(name_of).collect();
    let wanted = ends(which).map_or_else(|| which.to_owned(), |(a, b)| format!("{a}->{b}"));
    let number = which.parse::<usize>().ok();
    if array == HOST && number.is_none() && !names.contains(&wanted) {
        elements.push(Value::Table(Table::from_iter([("name".to_owned(), wanted.clone().into())])));
    }
    let found = number.or_else(|| elements.iter().position(|v| name_of(v).as_ref() == Some(&wanted)));
    found.and_then(|n| Some((n, elements.get_mut(n)?.as_table_mut()?))).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let other = ends(which).map(|(a, b)| format!("{b}->{a}")).filter(|other| names.contains(other));
        let help = match other {
            Some(link) if BACK.iter().any(|own| key.starts_with(own)) => {
                format!("it is written {link}: the way back is link.{link}.back.{key}")
            }
            Some(link) => format!("it is written {link}: link.{link}.{key}"),
            None => suggestion(array, which, &known),
        };
        Problem::new(vec![], format!("no {array} is named \"{which}\"")).help(help)
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Table(t) => t.values().map(show).collect::<Vec<_>>().join("+"),
        other => other.to_string(),
    }
}
