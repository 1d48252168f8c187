//! Errors of the laboratory as Python's exceptions.

use polypath_lab::run::RunError;
use polypath_lab::shelf::Unknown;
use polypath_lab::spec::{LoadError, SpecError};
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `polypath.SpecError` with the place in the document, what is wrong, and the remedy.
pub fn spec(error: &SpecError) -> PyErr {
    let made = Python::attach(|py| {
        let keys = PyDict::new(py);
        keys.set_item("file", &error.file)?;
        keys.set_item("line", error.place.line)?;
        keys.set_item("column", error.place.column)?;
        keys.set_item("key", &error.key)?;
        keys.set_item("message", &error.message)?;
        keys.set_item("help", &error.help)?;
        let class = py.import("polypath._errors")?.getattr("SpecError")?;
        Ok(PyErr::from_value(class.call((error.to_string(),), Some(&keys))?))
    });
    made.unwrap_or_else(|e: PyErr| e)
}

/// A spec that was not read.
pub fn load(error: LoadError) -> PyErr {
    match error {
        LoadError::Read { file, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), file)),
            None => PyOSError::new_err(format!("{file}: {source}")),
        },
        LoadError::Unknown(e) => unknown(&e),
        LoadError::Spec(e) => spec(&e),
    }
}

/// A name that nothing has: `polypath.UnknownName`.
pub fn unknown(error: &Unknown) -> PyErr {
    let made = Python::attach(|py| {
        let class = py.import("polypath._errors")?.getattr("UnknownName")?;
        Ok(PyErr::from_value(class.call1((error.to_string(), &error.help))?))
    });
    made.unwrap_or_else(|e: PyErr| PyKeyError::new_err(e.to_string()))
}

/// A run that failed.
pub fn run(error: RunError) -> PyErr {
    match error {
        RunError::Write { file, source } => PyOSError::new_err(format!("cannot write {file}: {source}")),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// An argument that makes no sense.
pub fn value(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
