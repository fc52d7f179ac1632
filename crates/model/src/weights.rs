//! Models as files: parameters to safetensors and back.
//!
//! A file holds the tensors of a [`Layout`] under their names and shapes in single precision, and as metadata what is
//! needed to build the model: `format`, `architecture`, `classes`, `blank`, and `model`, the keys of the recipe's
//! `[model]` table in TOML.
//! The same values give the same bytes.
//!
//! Files are not trusted: the header is limited to [`MAX_HEADER_BYTES`], every size is known from the checked
//! configuration before anything of that size is allocated, names and shapes must be exactly those of the layout, and
//! values that would poison every result are refused.

mod error;
mod header;

#[cfg(test)]
mod tests;

pub use error::{LoadWeightsError, SaveWeightsError};
pub use header::MAX_HEADER_BYTES;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::ModelConfig;
use crate::params::{Layout, Params, Tensor};

/// Bytes of a number in a file.
const VALUE_BYTES: usize = size_of::<f32>();

/// Writes a model beside `path` and renames it when it is complete, so that `path` never holds half a model.
pub fn save(path: &Path, config: &ModelConfig, params: &Params<f32>) -> Result<(), SaveWeightsError> {
    let beside = beside(path);
    let written = write_file(&beside, config, params).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&beside);
        SaveWeightsError { path: path.to_owned(), source }
    })
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

fn write_file(path: &Path, config: &ModelConfig, params: &Params<f32>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    write(&mut out, config, params)?;
    out.into_inner()?.sync_all()
}

/// Writes a model.
///
/// # Panics
/// If the parameters are not those of the configuration.
pub fn write(out: &mut impl Write, config: &ModelConfig, params: &Params<f32>) -> io::Result<()> {
    assert_eq!(*params.layout, Layout::new(config), "parameters of another model");
    let header = header::format(config, &params.layout);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    params.values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
}

/// Reads a model: the configuration it carries and its parameters.
pub fn load(path: &Path) -> Result<(ModelConfig, Params<f32>), LoadWeightsError> {
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
) -> Result<(ModelConfig, Params<f32>), LoadWeightsError> {
    let header = header::read(file, n_bytes, path)?;
    let config = header.config(path)?;
    let layout = Arc::new(Layout::new(&config));
    header.check_tensors(&layout, path)?;
    header.check_size(n_bytes, path)?;
    let mut params = Params::zeros(layout.clone());
    for tensor in layout.tensors() {
        let values = tensor.slot.of_mut(&mut params.values);
        read_values(file, header.offset_bytes(&tensor.name), values)
            .map_err(|source| LoadWeightsError::Io { path: path.to_owned(), source })?;
        check_values(tensor, values, path)?;
    }
    Ok((config, params))
}

fn read_values(file: &mut (impl Read + Seek), offset_bytes: u64, values: &mut [f32]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset_bytes))?;
    let mut bytes = vec![0; values.len() * VALUE_BYTES];
    file.read_exact(&mut bytes)?;
    let (numbers, _) = bytes.as_chunks::<VALUE_BYTES>();
    values.iter_mut().zip(numbers).for_each(|(value, number)| *value = f32::from_le_bytes(*number));
    Ok(())
}

/// One NaN or infinity reaches every output; so does the root of a negative variance.
fn check_values(tensor: &Tensor, values: &[f32], path: &Path) -> Result<(), LoadWeightsError> {
    let is_variance = tensor.name.ends_with(".moving_var");
    let is_bad = |value: &f32| !value.is_finite() || (is_variance && *value < 0.0);
    values.iter().position(is_bad).map_or(Ok(()), |index| {
        Err(LoadWeightsError::Value {
            path: path.to_owned(),
            tensor: tensor.name.clone(),
            index,
            found: values[index],
            expected: if is_variance { "a finite number of at least 0" } else { "a finite number" },
        })
    })
}
