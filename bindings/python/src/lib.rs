//! The native half of the Python package `srf`: the library's types and functions as Python sees them.
//!
//! The Python half (`python/srf`) turns arguments into plain values (paths, arrays of samples, JSON); this half checks
//! them, computes without the GIL, and turns every error into an exception. A panic becomes an exception too.

mod audio;
mod errors;
mod interrupt;
mod model;
mod options;
mod results;
mod routing;
mod scoring;
mod stream;
mod training;

use pyo3::prelude::*;

/// Computes with this many threads; only before the first computation.
#[pyfunction]
fn set_threads(n_threads: usize) -> PyResult<()> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build_global();
    built.map_err(|error| errors::raise(anyhow::Error::new(error).context("threads")))
}

/// The instruction set of the kernels, as `SRF_ISA` names it.
#[pyfunction]
fn isa() -> PyResult<&'static str> {
    srf_kernels::isa().map_err(|error| errors::raise(error.into()))
}

/// Panics, for the test that no panic crosses the border.
#[pyfunction]
fn _panic(py: Python<'_>) -> PyResult<()> {
    errors::compute(py, || panic!("on purpose"))
}

#[pymodule]
fn _srf(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEFAULT_MODEL", srf::DEFAULT_MODEL)?;
    module.add("Error", module.py().get_type::<errors::Error>())?;
    module.add_class::<model::Model>()?;
    module.add_class::<model::Transcripts>()?;
    module.add_class::<options::Options>()?;
    module.add_class::<results::Transcript>()?;
    module.add_class::<results::Segment>()?;
    module.add_class::<results::Word>()?;
    module.add_class::<results::Token>()?;
    module.add_class::<results::Evidence>()?;
    module.add_class::<results::Delay>()?;
    module.add_class::<results::Alternative>()?;
    module.add_class::<results::Said>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<scoring::Score>()?;
    module.add_class::<routing::Router32>()?;
    module.add_class::<routing::Router64>()?;
    module.add_function(wrap_pyfunction!(audio::features, module)?)?;
    module.add_function(wrap_pyfunction!(scoring::score, module)?)?;
    module.add_function(wrap_pyfunction!(scoring::compare, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(training::recipes, module)?)?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(isa, module)?)?;
    module.add_function(wrap_pyfunction!(_panic, module)?)
}
