//! The compiled part of the Python package `polypath`: what `polypath_lab` does, with Python's types. What it means is
//! documented in `python/polypath`, which nobody goes around.

mod errors;
mod experiment;
mod runs;
mod table;
mod work;

use polypath_lab::shelf::{self, Shelf};
use polypath_lab::spec;
use pyo3::prelude::*;

/// The module `polypath._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::experiment::Experiment;
    #[pymodule_export]
    use super::runs::Runs;
    #[pymodule_export]
    use super::table::Batches;
    #[pymodule_export]
    use super::{names, parse, schema, template, version};
}

/// Version of the program, and a hash of the sources that decide what a run gives.
#[pyfunction]
fn version() -> &'static str {
    shelf::VERSION
}

/// The names of the built-in experiments.
#[pyfunction]
fn names() -> Vec<String> {
    Shelf::BuiltIn.names().unwrap_or_default()
}

/// The JSON Schema of spec files.
#[pyfunction]
fn schema() -> String {
    spec::schema().as_value().to_string()
}

/// The text of a template.
#[pyfunction]
fn template(name: &str) -> PyResult<&'static str> {
    shelf::template(name).map_err(|e| errors::unknown(&e))
}

/// The experiment that the TOML `text` describes; errors call it `file`.
#[pyfunction]
fn parse(text: &str, file: &str) -> PyResult<experiment::Experiment> {
    experiment::parse(text, file)
}
