//! Weights files: the parameters of a model as safetensors.
//!
//! A file holds the tensors of a [`Layout`] under their names and shapes, and as metadata what is needed to build the
//! model: `format`, `architecture`, `classes`, `blank`, and `model`, the keys of the recipe's `[model]` table in TOML.
//! [`SaveOptions`] add further metadata, such as hashes of the files that belong to the model, and choose the precision.
//! The same values give the same bytes.
//!
//! Files are not trusted: the header is limited to [`MAX_HEADER_BYTES`], every size is known from the checked
//! configuration before anything of that size is allocated, names and shapes must be exactly those of the layout, and
//! values that would make every result NaN are refused, by the writer too.
//!
//! ```
//! use std::sync::Arc;
//! use srf_model::config::{ModelConfig, SrfConfig};
//! use srf_model::params::{Layout, Params};
//! use srf_model::weights::{
//!     BadValue, LoadWeightsError, MAX_HEADER_BYTES, MAX_METADATA, Metadata, Precision, SaveOptions, SaveWeightsError,
//!     load, load_with_metadata, save, save_with,
//! };
//!
//! let config = ModelConfig::Srf(SrfConfig { filters: 2, layers: 1, primary_height: 2, ..SrfConfig::new(4) });
//! let mut params = Params::<f32>::initialize(Arc::new(Layout::new(&config)), 1);
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("weights.safetensors");
//! save(&path, &config, &params)?;
//! let (read_config, read) = load(&path)?;
//! assert_eq!((read_config, &read.values), (config.clone(), &params.values));
//!
//! let metadata = Metadata::from([("corpus".to_owned(), "mine".to_owned())]);
//! save_with(&path, &config, &params, &SaveOptions { precision: Precision::F16, metadata: metadata.clone() })?;
//! assert_eq!(load_with_metadata(&path)?.2, metadata);
//! assert!(metadata.len() <= MAX_METADATA[0]);
//!
//! // Nothing that would make every result NaN is written or read.
//! params.values[0] = f32::NAN;
//! match save(&path, &config, &params) {
//!     Err(SaveWeightsError::Value { problem: BadValue { index: 0, .. }, .. }) => {}
//!     other => unreachable!("{other:?}"),
//! }
//! std::fs::write(&path, [0xff; 100])?;
//! assert!(load(&path).is_err_and(|error: LoadWeightsError| error.to_string().contains("header")));
//! assert!(MAX_HEADER_BYTES < 1 << 30);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;
use safetensors::tensor::Dtype;
use srf_base::files::write_atomically_with;

pub use self::header::MAX_HEADER_BYTES;
use crate::config::{ModelConfig, ReadConfigError};
use crate::params::{Layout, Params, Tensor};

/// The most further metadata that a file may be given: entries, bytes of a key, bytes of a value.
pub const MAX_METADATA: [usize; 3] = [64, 64, 4096];

/// Metadata besides what every file has.
pub type Metadata = BTreeMap<String, String>;

/// How a file is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// Of the trained tensors; moving statistics are always in single precision.
    pub precision: Precision,
    /// Further metadata, limited by [`MAX_METADATA`].
    pub metadata: Metadata,
}

/// The type of numbers in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Exact.
    #[default]
    F32,
    /// Half the size; rounded to 11 significant bits.
    F16,
}

/// Why a model could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum SaveWeightsError {
    #[error("could not write the model `{path}`")]
    Io { path: PathBuf, source: io::Error },
    #[error("could not write the model `{path}`: {problem}")]
    Value { path: PathBuf, problem: BadValue },
    #[error("could not write the model `{path}`: metadata `{key}` {problem}")]
    Metadata { path: PathBuf, key: String, problem: String },
}

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum LoadWeightsError {
    #[error("could not read the model `{path}`")]
    Io { path: PathBuf, source: io::Error },
    #[error("`{path}` states a header of {found} bytes, expected at most {most}: not a model's safetensors file")]
    HeaderSize { path: PathBuf, found: u64, most: u64 },
    #[error("`{path}` has {found} bytes, expected {expected}")]
    FileSize { path: PathBuf, found: u64, expected: u64 },
    #[error("`{path}` has a header that cannot be read: {message}")]
    Header { path: PathBuf, message: String },
    #[error("`{path}` has {found} as metadata `{key}`, expected {expected}")]
    Metadata { path: PathBuf, key: &'static str, found: String, expected: String },
    #[error(transparent)]
    Config(#[from] ReadConfigError),
    #[error("`{path}` lacks the tensor `{tensor}` of shape {expected:?}")]
    MissingTensor { path: PathBuf, tensor: String, expected: Vec<usize> },
    #[error("`{path}` has a tensor `{tensor}` that its model does not have")]
    ExtraTensor { path: PathBuf, tensor: String },
    #[error("`{path}` has the tensor `{tensor}` as {found}, expected {expected}")]
    TensorForm { path: PathBuf, tensor: String, found: String, expected: String },
    #[error("`{path}` has {problem}")]
    Value { path: PathBuf, problem: BadValue },
}

/// A number that no model can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{found} at index {index} of the tensor `{tensor}`, expected {expected}")]
#[allow(missing_docs)] // the message says what the fields are
pub struct BadValue {
    pub tensor: String,
    pub index: usize,
    pub found: f32,
    pub expected: &'static str,
}

impl LoadWeightsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::FileSize { .. } => Some("the file was cut off or added to: copy it again".to_owned()),
            Self::Value { .. } => Some("training diverged or the file is damaged: take an earlier model".to_owned()),
            _ => None,
        }
    }
}

/// Writes a model atomically, in single precision and without further metadata.
pub fn save(path: &Path, config: &ModelConfig, params: &Params<f32>) -> Result<(), SaveWeightsError> {
    save_with(path, config, params, &SaveOptions::default())
}

/// Writes a model atomically: `path` never holds half a model.
///
/// # Panics
/// If the parameters are not those of the configuration.
pub fn save_with(
    path: &Path,
    config: &ModelConfig,
    params: &Params<f32>,
    options: &SaveOptions,
) -> Result<(), SaveWeightsError> {
    assert_eq!(*params.layout, Layout::new(config), "parameters of another model");
    header::check_metadata(&options.metadata).map_err(|(key, problem)| SaveWeightsError::Metadata {
        path: path.to_owned(),
        key,
        problem,
    })?;
    check_params(params, options.precision)
        .map_err(|problem| SaveWeightsError::Value { path: path.to_owned(), problem })?;
    write_atomically_with(path, |out| write(out, config, params, options))
        .map_err(|source| SaveWeightsError::Io { path: path.to_owned(), source })
}

/// The bytes of a file whose values and metadata were checked.
fn write(out: &mut impl Write, config: &ModelConfig, params: &Params<f32>, options: &SaveOptions) -> io::Result<()> {
    let header = header::format(config, &params.layout, options);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    let (trainable, statistics) = params.values.split_at(params.layout.n_trainable());
    match options.precision {
        Precision::F32 => trainable.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?,
        Precision::F16 => {
            trainable.iter().try_for_each(|&value| out.write_all(&f16::from_f32(value).to_le_bytes()))?;
        }
    }
    statistics.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
}

fn check_params(params: &Params<f32>, precision: Precision) -> Result<(), BadValue> {
    for tensor in params.layout.tensors() {
        let values = tensor.slot.of(&params.values);
        check_values(tensor, values)?;
        let is_trainable = tensor.slot.offset < params.layout.n_trainable();
        let is_too_large = |value: &f32| !f16::from_f32(*value).is_finite();
        if precision == Precision::F16
            && is_trainable
            && let Some(index) = values.iter().position(is_too_large)
        {
            return Err(bad_value(tensor, index, values, "a number that half precision can hold"));
        }
    }
    Ok(())
}

/// Reads a model: the configuration it carries and its parameters.
pub fn load(path: &Path) -> Result<(ModelConfig, Params<f32>), LoadWeightsError> {
    let (config, params, _) = load_with_metadata(path)?;
    Ok((config, params))
}

/// Reads a model with the metadata that [`SaveOptions`] added.
pub fn load_with_metadata(path: &Path) -> Result<(ModelConfig, Params<f32>, Metadata), LoadWeightsError> {
    let io = |source| LoadWeightsError::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    let n_bytes = file.metadata().map_err(io)?.len();
    read(&mut file, n_bytes, path)
}

/// Reads a model from a file of `n_bytes`; `path` is named in errors.
pub fn read(
    file: &mut (impl Read + Seek),
    n_bytes: u64,
    path: &Path,
) -> Result<(ModelConfig, Params<f32>, Metadata), LoadWeightsError> {
    let header = header::read(file, n_bytes, path)?;
    let config = header.config(path)?;
    let layout = Arc::new(Layout::new(&config));
    header.check_tensors(&layout, path)?;
    header.check_size(n_bytes, path)?;
    let mut params = Params::zeros(layout.clone());
    for tensor in layout.tensors() {
        let values = tensor.slot.of_mut(&mut params.values);
        read_values(file, header.place(&tensor.name), values)
            .map_err(|source| LoadWeightsError::Io { path: path.to_owned(), source })?;
        check_values(tensor, values).map_err(|problem| LoadWeightsError::Value { path: path.to_owned(), problem })?;
    }
    Ok((config, params, header.further_metadata()))
}

fn read_values(file: &mut (impl Read + Seek), (offset, dtype): (u64, Dtype), values: &mut [f32]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    let is_half = dtype == Dtype::F16;
    let mut bytes = vec![0; values.len() * if is_half { size_of::<f16>() } else { size_of::<f32>() }];
    file.read_exact(&mut bytes)?;
    if is_half {
        let numbers = bytes.as_chunks().0.iter().map(|&number| f16::from_le_bytes(number).to_f32());
        values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
    } else {
        let numbers = bytes.as_chunks().0.iter().map(|&number| f32::from_le_bytes(number));
        values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
    }
    Ok(())
}

/// One NaN or infinity reaches every output; so does the root of a negative variance.
fn check_values(tensor: &Tensor, values: &[f32]) -> Result<(), BadValue> {
    let is_variance = tensor.name.ends_with(".moving_var");
    let is_bad = |value: &f32| !value.is_finite() || (is_variance && *value < 0.0);
    let expected = if is_variance { "a finite number of at least 0" } else { "a finite number" };
    values.iter().position(is_bad).map_or(Ok(()), |index| Err(bad_value(tensor, index, values, expected)))
}

fn bad_value(tensor: &Tensor, index: usize, values: &[f32], expected: &'static str) -> BadValue {
    BadValue { tensor: tensor.name.clone(), index, found: values[index], expected }
}
