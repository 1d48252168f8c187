//! An experiment, ready to run.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use polypath_lab::results::Run;
use polypath_lab::run::{Keep, trace};
use polypath_lab::seeds::SeedRange;
use polypath_lab::shelf::{self, Place, Shelf, find};
use polypath_lab::spec::{self, Cell};
use polypath_lab::sweep::{on_cores, sweep};
use polypath_lab::task;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::errors;
use super::runs::Runs;
use super::table::Batches;
use super::work::wait;

/// An experiment whose spec makes sense.
#[pyclass(frozen, module = "polypath._native")]
pub struct Experiment(Arc<spec::Experiment>);

/// The experiment that the TOML `text` describes; errors call it `file`.
pub fn parse(text: &str, file: &str) -> PyResult<Experiment> {
    Ok(Experiment(Arc::new(spec::parse(text, file).map_err(|e| errors::spec(&e))?)))
}

#[pymethods]
impl Experiment {
    /// The one in a file, or the one of this name here or built in.
    #[staticmethod]
    fn load(spec: PathBuf) -> PyResult<Self> {
        Ok(Self(Arc::new(find(&spec, &Shelf::at(None)).map_err(errors::load)?)))
    }

    /// The one that a document, as JSON, describes. `dir` is where files are that it names, `group` the group of built-in
    /// experiments whose files it names.
    #[staticmethod]
    fn of(document: &str, name: &str, dir: Option<PathBuf>, group: Option<String>) -> PyResult<Self> {
        let table: toml::Table = serde_json::from_str(document).map_err(errors::value)?;
        let place = match (dir, group) {
            (Some(dir), _) => Place::Dir(dir),
            (None, Some(group)) => Place::BuiltIn(group),
            (None, None) => Place::Nowhere,
        };
        let experiment = spec::from_document(&table, name, &place).map_err(|e| errors::spec(&e))?;
        Ok(Self(Arc::new(experiment)))
    }

    /// `group/name`, or what else names it.
    #[getter]
    fn name(&self) -> String {
        self.0.name.clone()
    }

    /// The document as JSON.
    #[getter]
    fn document(&self) -> PyResult<String> {
        let table: toml::Table = self.0.text.parse().map_err(errors::value)?;
        serde_json::to_string(&table).map_err(errors::value)
    }

    /// The document as TOML.
    #[getter]
    fn toml(&self) -> &str {
        &self.0.text
    }

    /// Where files are that it names: a directory, or a group of built-in experiments.
    #[getter]
    fn place(&self) -> (Option<PathBuf>, Option<String>) {
        match &self.0.place {
            Place::Dir(dir) => (Some(dir.clone()), None),
            Place::BuiltIn(group) => (None, Some(group.clone())),
            Place::Nowhere => (None, None),
        }
    }

    /// The labels of its cells.
    #[getter]
    fn cells(&self) -> Vec<String> {
        self.0.cells.iter().map(|c| c.label.clone()).collect()
    }

    /// The names of its axes.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.0.spec.grid.iter().map(|a| a.called().to_owned()).collect()
    }

    /// First and last seed of its ensemble.
    #[getter]
    fn seeds(&self) -> (u64, u64) {
        (self.0.spec.seeds.first, self.0.spec.seeds.last)
    }

    /// Runs all cells, or the one labelled `cell`. `told` hears how many runs have ended; `keep` says what else is
    /// kept: `dir`, `trace`, `pcap`.
    #[pyo3(signature = (first, last, cell=None, jobs=None, told=None, keep=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn run(
        &self,
        py: Python<'_>,
        first: u64,
        last: u64,
        cell: Option<&str>,
        jobs: Option<NonZero<usize>>,
        told: Option<&Bound<'_, PyAny>>,
        keep: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Runs> {
        let seeds = SeedRange { first, last };
        let cells = self.chosen(cell)?;
        seeds.runs(cells.len()).map_err(errors::value)?;
        let keep = keep.map_or(Ok(Keep::default()), kept)?;
        let ensemble = wait(py, told, move |control| {
            let ended = |_: &Run| control.count();
            on_cores(jobs, || sweep(&cells, seeds, &keep, &control.stop, ended))
        })?;
        Ok(Runs::new(Arc::clone(&self.0), ensemble.map_err(errors::run)?))
    }

    /// Every observation of one run.
    fn trace(&self, py: Python<'_>, seed: u64, cell: Option<&str>) -> PyResult<Batches> {
        let cell = self.chosen(cell)?.swap_remove(0);
        let batches = wait(py, None, move |control| trace(&cell, seed, &control.stop))?;
        Ok(Batches::new(batches.map_err(errors::run)?))
    }

    /// The parts of a sweep: cell, its key, first and last seed, in order.
    fn tasks(&self, first: u64, last: u64) -> PyResult<Vec<(String, String, u64, u64)>> {
        let seeds = SeedRange { first, last };
        seeds.runs(self.0.cells.len()).map_err(errors::value)?;
        let parts = self.0.cells.iter().map(|cell| (cell, task::parts(cell, seeds)));
        let of = |(cell, parts): (&Cell, Vec<SeedRange>)| {
            let (label, key) = (cell.label.clone(), task::key(&self.0, cell));
            parts
                .into_iter()
                .map(move |part| (label.clone(), key.clone(), part.first, part.last))
                .collect::<Vec<_>>()
        };
        Ok(parts.flat_map(of).collect())
    }

    /// Does a part of a sweep in this thread: the values of its runs as Parquet.
    fn task<'py>(&self, py: Python<'py>, cell: &str, first: u64, last: u64) -> PyResult<Bound<'py, PyBytes>> {
        let experiment = Arc::clone(&self.0);
        let label = self.chosen(Some(cell))?.swap_remove(0).label;
        let seeds = SeedRange { first, last };
        let bytes = py.detach(|| task::run_part(&experiment, &label, seeds)).map_err(errors::run)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Experiment {
    fn chosen(&self, label: Option<&str>) -> PyResult<Vec<Cell>> {
        match label {
            None => Ok(self.0.cells.clone()),
            Some(label) => {
                let cell = shelf::cell(&self.0, label).map_err(|e| errors::unknown(&e))?;
                Ok(vec![cell.clone()])
            }
        }
    }
}

fn kept(keep: &Bound<'_, PyDict>) -> PyResult<Keep> {
    let yes = |key: &str| keep.get_item(key)?.map_or(Ok(false), |v| v.extract::<bool>());
    let dir = keep.get_item("dir")?.map_or(Ok(PathBuf::new()), |v| v.extract())?;
    Ok(Keep { dir, capture: yes("pcap")?, trace: yes("trace")?, also: Vec::new() })
}
