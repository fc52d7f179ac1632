//! One speaker's live stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::compute;
use crate::results::{Segment, segment, segments};

/// The state of one speaker's stream; made by `Recognizer.stream`.
#[pyclass(frozen, module = "srf")]
pub(crate) struct Stream {
    inner: Mutex<srf::Stream>,
}

impl Stream {
    pub(crate) fn new(inner: srf::Stream) -> Self {
        Self { inner: Mutex::new(inner) }
    }

    /// The stream, even if a call on it panicked: every call leaves one that can be reset.
    fn lock(&self) -> MutexGuard<'_, srf::Stream> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Stream {
    /// Accepts mono samples from -1 to 1; the Python half converts others.
    fn _accept(&self, samples: PyReadonlyArray1<'_, f32>, rate_hz: u32) -> PyResult<()> {
        let py = samples.py();
        let samples = samples.as_array().to_vec();
        compute(py, || Ok(self.lock().accept(&samples, rate_hz)?))
    }

    /// The current utterance so far; None if nothing was recognised yet.
    fn partial(&self, py: Python<'_>) -> PyResult<Option<Segment>> {
        let partial = compute(py, || Ok(self.lock().partial()))?;
        partial.map(|partial| segment(py, &partial)).transpose()
    }

    /// Takes the segments that have ended.
    fn take_ended(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let ended = compute(py, || Ok(self.lock().take_ended()))?;
        segments(py, &ended)
    }

    /// Ends the utterance now, without waiting for later samples. The stream goes on, and so do its times.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        compute(py, || {
            self.lock().flush();
            Ok(())
        })
    }

    /// Ends the stream and returns the segments that were not taken yet. The stream is at its start again.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let ended = compute(py, || Ok(self.lock().finish()))?;
        segments(py, &ended)
    }

    /// Forgets everything.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        compute(py, || {
            self.lock().reset();
            Ok(())
        })
    }

    /// Length of all samples accepted since the start, in seconds.
    #[getter]
    fn accepted_s(&self, py: Python<'_>) -> PyResult<f64> {
        compute(py, || Ok(self.lock().accepted_s()))
    }
}
