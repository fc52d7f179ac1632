//! What can be wrong with a model directory.

use std::io;
use std::path::PathBuf;

use srf_audio::features::FeaturesConfigError;
use srf_model::config::{InvalidConfig, ReadConfigError};
use srf_model::weights::{LoadWeightsError, SaveWeightsError};
use srf_text::labels::LoadLabelsError;

use crate::words::WordsError;

/// Why a model directory could not be read.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadModelError {
    #[error("`{path}` is not a directory, expected a model directory with config.toml, labels.txt and weights.safetensors", path = path.display())]
    NotADirectory { path: PathBuf },
    #[error("could not read `{path}`", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{path}` is larger than {most} bytes", path = path.display())]
    TooLarge { path: PathBuf, most: u64 },
    #[error(transparent)]
    Config(#[from] ReadConfigError),
    #[error(transparent)]
    Labels(#[from] LoadLabelsError),
    #[error(transparent)]
    Weights(#[from] LoadWeightsError),
    #[error("`{weights}` holds another model than `{config}` describes", weights = weights.display(), config = config.display())]
    OtherModel { weights: PathBuf, config: PathBuf },
    #[error("`{path}` is not the file that `{weights}` was written with", path = path.display(), weights = weights.display())]
    OtherFile { path: PathBuf, weights: PathBuf },
    #[error("`{path}`: {message}", path = path.display())]
    Cmvn { path: PathBuf, message: String },
    #[error("`{path}`: {message}", path = path.display())]
    Times { path: PathBuf, message: String },
    #[error("`{path}`: {cause}", path = path.display())]
    Parts { path: PathBuf, cause: InvalidParts },
    #[error(transparent)]
    Words(#[from] WordsError),
}

impl ReadModelError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Parts { cause, .. } => cause.hint(),
            Self::Words(cause) => cause.hint(),
            Self::OtherModel { .. } | Self::OtherFile { .. } => {
                Some("copy the whole directory again, all files of one model".to_owned())
            }
            _ => None,
        }
    }
}

/// Why parts do not make a model.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidParts {
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    #[error(transparent)]
    Features(#[from] FeaturesConfigError),
    #[error("the labels make {found} classes, but the model has {expected}")]
    Classes { found: usize, expected: usize },
    #[error("found {found} weights, but the model has {expected}")]
    Weights { found: usize, expected: usize },
    #[error("the statistics are of {found} values per frame, but a frame has {expected}")]
    CmvnWidth { found: usize, expected: usize },
    #[error("features are normalised by global statistics, but there are none (cmvn.json)")]
    NoStatistics,
}

impl InvalidParts {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Classes { .. } => Some("labels.txt must be the one the model was trained with".to_owned()),
            Self::NoStatistics => Some("copy cmvn.json from the model's own directory".to_owned()),
            _ => None,
        }
    }
}

/// Why a model directory could not be written.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteModelError {
    #[error(transparent)]
    Parts(#[from] InvalidParts),
    #[error("could not write `{path}`", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Weights(#[from] SaveWeightsError),
}
