//! The compiled part of the Python package `polypath`: what `polypath_lab` does, with Python's types. What it means is
//! documented in `python/polypath`, which nobody goes around.

mod errors;
mod experiment;
mod own;
mod runs;
mod table;
mod work;

use polypath_lab::shelf::{self, Shelf};
use polypath_lab::spec;
use polypath_lab::traces::Kind;
use polypath_lab::units::Human;
use polypath_wire::{Rate, Seed};
use pyo3::prelude::*;

/// The module `polypath._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::experiment::Experiment;
    #[pymodule_export]
    use super::own::{Ack, Loss, Parcel, Path};
    #[pymodule_export]
    use super::runs::Runs;
    #[pymodule_export]
    use super::table::Batches;
    #[pymodule_export]
    use super::{link_trace, names, parse, schema, template, version};
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
fn schema() -> &'static str {
    spec::schema()
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

/// A trace of a link's rate, drawn by seed, in mahimahi's format.
#[pyfunction]
fn link_trace(kind: &str, seed: u64, seconds: u64, mean: Option<&str>) -> PyResult<String> {
    let kind = Kind::called(kind).map_err(errors::value)?;
    let mean = mean.map(str::parse::<Human<Rate>>).transpose().map_err(errors::value)?;
    let trace = kind.draw(Seed(seed), seconds, mean.map_or(kind.mean(), |mean| mean.0));
    Ok(trace.map_err(errors::value)?.to_string())
}
