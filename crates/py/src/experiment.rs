//! An experiment, ready to run.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use polypath_lab::results::Run;
use polypath_lab::run::{Capture, Keep, Wanted, trace};
use polypath_lab::seeds::SeedRange;
use polypath_lab::shelf::{self, Place, Shelf, find};
use polypath_lab::spec::{self, Cell, LinkRate};
use polypath_lab::sweep::{on_cores, sweep};
use polypath_lab::task;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::errors;
use super::own::{Failure, Own};
use super::runs::Runs;
use super::table::Batches;
use super::work::wait;

/// An experiment whose spec makes sense.
#[pyclass(frozen, module = "polypath._native")]
pub struct Experiment {
    read: Arc<spec::Experiment>,
    own: Own,
}

impl From<spec::Experiment> for Experiment {
    fn from(read: spec::Experiment) -> Self {
        Self { read: Arc::new(read), own: Own::default() }
    }
}

/// The experiment that the TOML `text` describes; errors call it `file`.
pub fn parse(text: &str, file: &str) -> PyResult<Experiment> {
    Ok(spec::parse(text, file).map_err(|e| errors::spec(&e))?.into())
}

#[pymethods]
impl Experiment {
    /// The one in a file, or the one of this name here or built in.
    #[staticmethod]
    fn load(spec: PathBuf) -> PyResult<Self> {
        Ok(find(&spec, &Shelf::at(None)).map_err(errors::load)?.into())
    }

    /// The one that a document, as JSON, describes. `dir` is where files are that it names, `group` the group of built-in
    /// experiments whose files it names, `texts` what these say; `controllers` and `schedulers` are Python's classes by the names it has for them.
    #[staticmethod]
    #[pyo3(signature = (document, name, dir, group, controllers, schedulers, texts=None))]
    fn of(
        document: &str,
        name: &str,
        dir: Option<PathBuf>,
        group: Option<String>,
        controllers: &Bound<'_, PyDict>,
        schedulers: &Bound<'_, PyDict>,
        texts: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let table: toml::Table = serde_json::from_str(document).map_err(errors::value)?;
        let place = match (texts, dir, group) {
            (Some(texts), ..) => Place::Texts(texts),
            (None, Some(dir), _) => Place::Dir(dir),
            (None, None, Some(group)) => Place::BuiltIn(group),
            (None, None, None) => Place::Nowhere,
        };
        let own = Own::new(controllers, schedulers)?;
        let supplied = own.supplied(&Arc::default());
        let read = spec::from_document(&table, name, &place, &supplied).map_err(|e| errors::spec(&e))?;
        Ok(Self { read: Arc::new(read), own })
    }

    /// `group/name`, or what else names it.
    #[getter]
    fn name(&self) -> String {
        self.read.name.clone()
    }

    /// The document as JSON.
    #[getter]
    fn document(&self) -> PyResult<String> {
        let table: toml::Table = self.read.text.parse().map_err(errors::value)?;
        serde_json::to_string(&table).map_err(errors::value)
    }

    /// The document as TOML.
    #[getter]
    fn toml(&self) -> &str {
        &self.read.text
    }

    /// Where files are that it names: a directory, or a group of built-in experiments.
    #[getter]
    fn place(&self) -> (Option<PathBuf>, Option<String>) {
        match &self.read.place {
            Place::Dir(dir) => (Some(dir.clone()), None),
            Place::BuiltIn(group) => (None, Some(group.clone())),
            Place::Nowhere | Place::Texts(_) => (None, None),
        }
    }

    /// What the traces of its links say, by the names of their files: all that its runs read.
    #[getter]
    fn texts(&self) -> BTreeMap<String, String> {
        let links = self.read.cells.iter().flat_map(|cell| &cell.spec.link);
        let rates = links.flat_map(|link| [link.rate_of(true), link.rate_of(false)]);
        let files = rates.filter_map(|rate| match rate {
            LinkRate::Trace(file) => Some((file.trace.clone(), file.content.as_ref()?.to_string())),
            LinkRate::Constant(_) => None,
        });
        files.collect()
    }

    /// The labels of its cells.
    #[getter]
    fn cells(&self) -> Vec<String> {
        self.read.cells.iter().map(|c| c.label.clone()).collect()
    }

    /// The names of its axes.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.read.spec.grid.iter().map(|a| a.called().to_owned()).collect()
    }

    /// First and last seed of its ensemble.
    #[getter]
    fn seeds(&self) -> (u64, u64) {
        (self.read.spec.seeds.first, self.read.spec.seeds.last)
    }

    /// Runs all cells, or the one labelled `cell`. `told` hears how many runs have ended; `keep` says what else is
    /// kept: `dir`, `trace`, `pcap`, of which `links` and `snap` bytes.
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
        let (failure, read) = self.ready();
        let cells = chosen(&read, cell)?;
        seeds.runs(cells.len()).map_err(errors::value)?;
        let keep = keep.map_or(Ok(Keep::default()), kept)?;
        let capture =
            keep.capture.iter().flat_map(|capture| cells.iter().map(|cell| capture.check(&cell.spec)));
        capture.collect::<Result<(), _>>().map_err(|e| errors::unknown(&e))?;
        let ensemble = wait(py, told, &failure, move |control| {
            let ended = |_: &Run| control.count();
            on_cores(jobs, || sweep(&cells, seeds, &keep, &control.stop, ended))
        })?;
        Ok(Runs::new(read, ensemble.map_err(errors::run)?))
    }

    /// Every observation of one run.
    fn trace(&self, py: Python<'_>, seed: u64, cell: Option<&str>) -> PyResult<Batches> {
        let (failure, read) = self.ready();
        let cell = chosen(&read, cell)?.swap_remove(0);
        let batches = wait(py, None, &failure, move |control| trace(&cell, seed, &control.stop))?;
        Ok(Batches::new(batches.map_err(errors::run)?))
    }

    /// The parts of a sweep: cell, its key, first and last seed, in order.
    fn tasks(&self, first: u64, last: u64) -> PyResult<Vec<(String, String, u64, u64)>> {
        let seeds = SeedRange { first, last };
        seeds.runs(self.read.cells.len()).map_err(errors::value)?;
        let parts = self.read.cells.iter().map(|cell| (cell, task::parts(cell, seeds)));
        let of = |(cell, parts): (&Cell, Vec<SeedRange>)| {
            let (label, key) = (cell.label.clone(), task::key(&self.read, cell));
            parts
                .into_iter()
                .map(move |part| (label.clone(), key.clone(), part.first, part.last))
                .collect::<Vec<_>>()
        };
        Ok(parts.flat_map(of).collect())
    }

    /// Does a part of a sweep in this thread: the values of its runs as Parquet.
    fn task<'py>(&self, py: Python<'py>, cell: &str, first: u64, last: u64) -> PyResult<Bound<'py, PyBytes>> {
        let (failure, read) = self.ready();
        let label = chosen(&read, Some(cell))?.swap_remove(0).label;
        let seeds = SeedRange { first, last };
        let bytes = py.detach(|| task::run_part(&read, &label, seeds));
        failure.raise()?;
        let bytes = bytes.map_err(errors::run)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Experiment {
    /// For some runs: what is written in Python keeps its first exception in the `Failure` beside it.
    fn ready(&self) -> (Arc<Failure>, Arc<spec::Experiment>) {
        let failure = Arc::default();
        if self.own.is_empty() {
            return (failure, Arc::clone(&self.read));
        }
        let (mut read, supplied) = (spec::Experiment::clone(&self.read), self.own.supplied(&failure));
        read.cells.iter_mut().for_each(|cell| cell.spec.supplied = supplied.clone());
        (failure, Arc::new(read))
    }
}

fn chosen(experiment: &spec::Experiment, label: Option<&str>) -> PyResult<Vec<Cell>> {
    match label {
        None => Ok(experiment.cells.clone()),
        Some(label) => {
            let cell = shelf::cell(experiment, label).map_err(|e| errors::unknown(&e))?;
            Ok(vec![cell.clone()])
        }
    }
}

fn kept(keep: &Bound<'_, PyDict>) -> PyResult<Keep> {
    fn value<'py, T: FromPyObjectOwned<'py>>(keep: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>> {
        keep.get_item(key)?.map(|v| v.extract().map_err(Into::into)).transpose()
    }
    let links = value::<Vec<String>>(keep, "links")?.unwrap_or_default();
    let capture = Capture { links, snap: value(keep, "snap")? };
    Ok(Keep {
        dir: value(keep, "dir")?.unwrap_or_default(),
        capture: value::<bool>(keep, "pcap")?.unwrap_or(false).then_some(capture),
        trace: value::<bool>(keep, "trace")?.unwrap_or(false).then(Wanted::default),
        also: Vec::new(),
    })
}
