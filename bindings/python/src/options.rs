//! How a recogniser decodes and when it ends utterances: the arguments of `srf.Recognizer`.

use pyo3::prelude::*;
use srf::StreamOptions;
use srf::options::from_json;

use crate::errors::compute;
use crate::model::Model;

/// Options of streams, checked and with their files read.
#[pyclass(frozen, module = "srf._srf")]
pub(crate) struct Options {
    pub(crate) stream: StreamOptions,
}

#[pymethods]
impl Options {
    /// From JSON, as `srf::options` describes it.
    #[new]
    fn new(py: Python<'_>, model: &Model, settings: &str) -> PyResult<Self> {
        compute(py, || Ok(Self { stream: from_json(settings, &model.recognizer)? }))
    }
}
