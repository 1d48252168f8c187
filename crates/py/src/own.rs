//! Controllers and schedulers that are written in Python.

mod controller;
mod facts;
mod scheduler;

use std::sync::{Arc, Mutex};

use polypath_lab::spec::Supplied;
use polypath_transport::cc::ControllerMaker;
use polypath_transport::sched::SchedulerMaker;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use controller::Controlled;
pub use facts::{Ack, Loss, Parcel, Path};
use scheduler::Scheduled;

/// Python's classes by the names that specs have for them.
#[derive(Default)]
pub struct Own {
    controllers: Vec<(String, Arc<Py<PyAny>>)>,
    schedulers: Vec<(String, Arc<Py<PyAny>>)>,
}

impl Own {
    /// Of two dictionaries.
    pub fn new(controllers: &Bound<'_, PyDict>, schedulers: &Bound<'_, PyDict>) -> PyResult<Self> {
        let classes = |dict: &Bound<'_, PyDict>| {
            let entry = |(name, class): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok((name.extract::<String>()?, Arc::new(class.unbind())))
            };
            dict.iter().map(entry).collect::<PyResult<Vec<_>>>()
        };
        Ok(Self { controllers: classes(controllers)?, schedulers: classes(schedulers)? })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.schedulers.is_empty()
    }

    /// What makes them. Their first exception is kept in `failure`.
    pub fn supplied(&self, failure: &Arc<Failure>) -> Supplied {
        let controllers = self.controllers.iter().map(|(name, class)| {
            let (class, failure) = (Arc::clone(class), Arc::clone(failure));
            let make: Arc<ControllerMaker> =
                Arc::new(move |env| Box::new(Controlled::new(&class, env.seed, Arc::clone(&failure))));
            (name.clone(), make)
        });
        let schedulers = self.schedulers.iter().map(|(name, class)| {
            let (class, failure) = (Arc::clone(class), Arc::clone(failure));
            let make: Arc<SchedulerMaker> =
                Arc::new(move || Box::new(Scheduled::new(&class, Arc::clone(&failure))));
            (name.clone(), make)
        });
        Supplied { controllers: controllers.collect(), schedulers: schedulers.collect() }
    }
}

/// The first exception of what is written in Python. What comes after it does not ask Python any more.
#[derive(Default)]
pub struct Failure(Mutex<Option<PyErr>>);

impl Failure {
    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.0.lock().is_ok_and(|error| error.is_some())
    }

    /// `error` is it, if it is the first.
    fn keep(&self, error: PyErr) {
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert(error);
        }
    }

    /// Raises it.
    pub fn raise(&self) -> PyResult<()> {
        self.0.lock().ok().and_then(|mut error| error.take()).map_or(Ok(()), Err)
    }
}

/// What Python returns makes no sense.
fn refused(text: String) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(text)
}
