//! Tables that leave for other libraries without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table as batches of Arrow columns.
#[pyclass(frozen, module = "polypath._native")]
pub struct Batches(Vec<RecordBatch>);

impl Batches {
    /// Of `batches`, one at least, which have the same schema.
    pub fn new(batches: Vec<RecordBatch>) -> Self {
        assert!(!batches.is_empty(), "a table has a schema");
        Self(batches)
    }
}

#[pymethods]
impl Batches {
    /// The Arrow PyCapsule interface. A consumer that wants another schema converts by itself.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (schema, batches) = (self.0[0].schema(), self.0.clone());
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), Arc::clone(&schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0[0].schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}
