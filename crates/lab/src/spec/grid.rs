//! The grid: every combination of the values of its axes is a cell, a spec of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Spec;
use super::error::{Problem, at, suggestion};

/// A key of the spec and the values to try for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Which key, with dots: `connection.scheduler.policy`, `flow.bulk.mss` (flows and hosts by
    /// name), `link.0.queue` (links by number, from 0).
    pub key: String,
    /// What to set it to.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
    /// What to call the values in labels. Default: the values.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// One combination of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The values of its axes, `round_robin,144p`; empty without a grid.
    pub label: String,
    /// The spec with those values, and without the grid.
    pub spec: Spec,
}

/// The document of each cell of `grid`, with its label.
pub(super) fn documents(doc: &Table, grid: &[Axis]) -> Result<Vec<(String, Table)>, Problem> {
    let mut bare = doc.clone();
    bare.remove("grid");
    let mut cells = vec![(String::new(), bare)];
    for (n, axis) in grid.iter().enumerate() {
        if axis.values.is_empty() {
            return Err(Problem::new(at!["grid", n, "values"], "no values to try"));
        }
        if !axis.labels.is_empty() && axis.labels.len() != axis.values.len() {
            return Err(Problem::new(at!["grid", n, "labels"], "there must be as many labels as values"));
        }
        let mut next = Vec::with_capacity(cells.len() * axis.values.len());
        for (label, cell) in &cells {
            for (m, value) in axis.values.iter().enumerate() {
                let mut cell = cell.clone();
                set(&mut cell, &axis.key, value.clone())
                    .map_err(|p| Problem { at: at!["grid", n, "key"], ..p })?;
                let comma = if label.is_empty() { "" } else { "," };
                let shown = axis.labels.get(m).cloned().unwrap_or_else(|| show(value));
                next.push((format!("{label}{comma}{shown}"), cell));
            }
        }
        cells = next;
    }
    Ok(cells)
}

/// Sets `key` of `doc`; tables on the way come to be, elements of arrays must exist.
fn set(doc: &mut Table, key: &str, value: Value) -> Result<(), Problem> {
    let mut names = key.split('.').peekable();
    let mut table = doc;
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            table.insert(name.to_owned(), value);
            return Ok(());
        }
        let inner = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
        table = match inner {
            Value::Table(t) => t,
            Value::Array(elements) => element(elements, name, names.next().unwrap_or_default())?,
            _ => return Err(Problem::new(vec![], format!("{name} is a value, not a table"))),
        };
    }
    Ok(())
}

/// The element of the array `array` with this name or number.
fn element<'a>(elements: &'a mut [Value], array: &str, which: &str) -> Result<&'a mut Table, Problem> {
    let name_of = |v: &Value| v.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = elements.iter().filter_map(name_of).collect();
    let found = match which.parse::<usize>() {
        Ok(n) => elements.get_mut(n),
        Err(_) => elements.iter_mut().find(|v| name_of(v).as_deref() == Some(which)),
    };
    found.and_then(Value::as_table_mut).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        Problem::new(vec![], format!("no {array} is named \"{which}\"")).help(suggestion(which, &known))
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Table(t) => t.values().map(show).collect::<Vec<_>>().join("+"),
        other => other.to_string(),
    }
}
