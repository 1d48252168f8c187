//! Ended runs and what they say.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use polypath_lab::check::{Verdict, check};
use polypath_lab::group::{Done, Seeds};
use polypath_lab::results::Run;
use polypath_lab::seeds::SeedRange;
use polypath_lab::spec::Experiment;
use polypath_lab::{columns, report, store, values};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::errors;
use super::table::Batches;

/// An ensemble.
#[pyclass(frozen, module = "polypath._native")]
pub struct Runs {
    experiment: Arc<Experiment>,
    runs: Vec<Run>,
    verdicts: OnceLock<Vec<Verdict>>,
}

impl Runs {
    /// What ended.
    pub fn new(experiment: Arc<Experiment>, runs: Vec<Run>) -> Self {
        Self { experiment, runs, verdicts: OnceLock::new() }
    }

    fn answers(&self) -> &[Verdict] {
        self.verdicts.get_or_init(|| check((&self.experiment, &self.runs), &[]))
    }

    fn charts(&self) -> PyResult<Vec<report::Chart>> {
        report::charts((&self.experiment, &self.runs)).map_err(errors::value)
    }
}

#[pymethods]
impl Runs {
    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// A row for each run and flow.
    fn runs(&self) -> Batches {
        Batches::new(vec![columns::runs(&self.runs)])
    }

    /// A row for each number of each run.
    fn values(&self) -> Batches {
        Batches::new(vec![values::values((&self.experiment, &self.runs))])
    }

    /// A row for each point of each figure.
    fn points(&self) -> PyResult<Batches> {
        Ok(Batches::new(vec![report::points(&self.charts()?)]))
    }

    /// The figures' lines, as JSON.
    fn drawn(&self) -> PyResult<String> {
        serde_json::to_string(&self.charts()?).map_err(errors::value)
    }

    /// The answers to all expectations, as JSON.
    fn verdicts(&self) -> PyResult<String> {
        serde_json::to_string(self.answers()).map_err(errors::value)
    }

    /// The answers as text, a line each.
    fn lines(&self) -> Vec<String> {
        self.answers().iter().map(Verdict::to_string).collect()
    }

    /// The page of a report.
    fn page(&self) -> PyResult<String> {
        let seeds = || self.runs.iter().map(|run| run.seed);
        let (first, last) = (seeds().min().unwrap_or(1), seeds().max().unwrap_or(1));
        let done = Done {
            experiment: Experiment::clone(&self.experiment),
            seeds: SeedRange { first, last },
            runs: self.runs.clone(),
            verdicts: self.answers().to_vec(),
            own: true,
        };
        let about = report::About {
            name: &self.experiment.name,
            seeds: Seeds::Only(done.seeds),
            again: report::Again::Python,
        };
        report::page(&about, &[done]).map_err(errors::value)
    }

    /// Writes the tables into a directory.
    fn write(&self, dir: PathBuf) -> PyResult<()> {
        let ensemble = (&*self.experiment, &self.runs[..]);
        let charts = report::charts(ensemble);
        store::tables(ensemble, &dir).map_err(|e| PyOSError::new_err(e.to_string()))?;
        store::figures(&charts.map_err(errors::value)?, &dir).map_err(|e| PyOSError::new_err(e.to_string()))
    }
}
