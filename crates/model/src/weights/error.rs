//! What can go wrong with a weights file.

use std::io;
use std::path::PathBuf;

use crate::config::ReadConfigError;

/// Why a model could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write the model `{path}`")]
pub struct SaveWeightsError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadWeightsError {
    /// The file could not be opened or read.
    #[error("could not read the model `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The header's size, which comes first, is out of bounds.
    #[error("`{path}` states a header of {found} bytes, expected at most {most}: not a model's safetensors file")]
    HeaderSize {
        /// The file.
        path: PathBuf,
        /// The size it states.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// The file is shorter or longer than its own header says.
    #[error("`{path}` has {found} bytes, expected {expected}")]
    FileSize {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size that the header needs.
        expected: u64,
    },
    /// The header is not what safetensors prescribes.
    #[error("`{path}` has a header that cannot be read: {message}")]
    Header {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        message: String,
    },
    /// The metadata lacks something, or says something else than the configuration.
    #[error("`{path}` has {found} as metadata `{key}`, expected {expected}")]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: String,
    },
    /// The configuration it carries is not valid.
    #[error(transparent)]
    Config(#[from] ReadConfigError),
    /// A tensor of the model is not in the file.
    #[error("`{path}` lacks the tensor `{tensor}` of shape {expected:?}")]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape.
        expected: Vec<usize>,
    },
    /// A tensor of the file is not in the model.
    #[error("`{path}` has a tensor `{tensor}` that its model does not have")]
    ExtraTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A tensor has another shape or type.
    #[error("`{path}` has the tensor `{tensor}` as {found}, expected {expected}")]
    TensorForm {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape of the model.
        expected: String,
    },
    /// A value that no model can have.
    #[error("`{path}` has {found} at index {index} of the tensor `{tensor}`, expected {expected}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Which of its numbers.
        index: usize,
        /// The number.
        found: f32,
        /// What it may be.
        expected: &'static str,
    },
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
