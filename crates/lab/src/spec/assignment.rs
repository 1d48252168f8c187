//! Values that replace a file's: `lab run --set key=value`.

use std::fmt;

use serde::Serialize;
use toml::{Table, Value};

use super::error::Problem;
use super::{SpecError, grid};
use crate::document::Key;

/// A key of a spec, named as an axis of the grid names it, and the value that it gets.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub struct Assignment {
    /// As it was given, `flow.bulk.mss=1250`.
    text: String,
    #[serde(skip)]
    key: String,
    #[serde(skip)]
    value: Value,
}

/// What errors name where a spec's name its file.
const ARGUMENT: &str = "--set";

impl Assignment {
    /// Reads `key=value`. What is no value in TOML is a string: quotes may be left out.
    pub fn parse(text: &str) -> Result<Self, Box<SpecError>> {
        let of = |problem: Problem| problem.place(ARGUMENT, text, 0..text.len());
        let (key, value) = text.split_once('=').ok_or_else(|| {
            of(Problem::new(vec![], "no value").help("write for example connection.cc.algorithm=cubic"))
        })?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let problem = Problem::new(vec![], format!("\"{key}\" names no key"));
            return Err(of(problem.help("write for example flow.bulk.mss=1250, or link.a->b.queue=50p")));
        }
        let value = match value.parse::<Value>() {
            Ok(value) => value,
            Err(error) if value.starts_with(['[', '{', '"', '\'']) => {
                let problem = Problem::new(vec![], format!("not TOML: {}", error.message().trim_end()));
                return Err(
                    of(problem.help("write for example [1, 2], { algorithm = \"cubic\" }, \"text\"")),
                );
            }
            Err(_) => Value::String(value.to_owned()),
        };
        Ok(Self { text: text.to_owned(), key: key.to_owned(), value })
    }

    /// Does it to `doc`; where that is.
    pub(super) fn apply(&self, doc: &mut Table) -> Result<Vec<Key>, Box<SpecError>> {
        let on_key = |problem| self.blamed(Problem { on_key: true, ..problem });
        grid::set(doc, &self.key, self.value.clone()).map_err(on_key)
    }

    /// `problem`, which is its fault.
    pub(super) fn blamed(&self, problem: Problem) -> Box<SpecError> {
        let equals = self.text.find('=').unwrap_or_default();
        let place = if problem.on_key { 0..equals } else { equals + 1..self.text.len() };
        problem.place(ARGUMENT, &self.text, place)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
