//! What can be wrong with a model directory.

use std::io;
use std::path::PathBuf;

use srf_audio::features::FeaturesConfigError;
use srf_model::config::{InvalidConfig, ReadConfigError};
use srf_model::weights::{LoadWeightsError, SaveWeightsError};
use srf_text::labels::LoadLabelsError;

/// Why a model directory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadModelError {
    /// There is no such directory.
    #[error("`{path}` is not a directory, expected a model directory with config.toml, labels.txt and weights.safetensors", path = path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// A file of it could not be read.
    #[error("could not read `{path}`", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of it is larger than any such file.
    #[error("`{path}` is larger than {most} bytes", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        most: u64,
    },
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ReadConfigError),
    /// The labels.
    #[error(transparent)]
    Labels(#[from] LoadLabelsError),
    /// The weights.
    #[error(transparent)]
    Weights(#[from] LoadWeightsError),
    /// The weights are of another model than the configuration.
    #[error("`{weights}` holds another model than `{config}` describes", weights = weights.display(), config = config.display())]
    OtherModel {
        /// The weights.
        weights: PathBuf,
        /// The configuration.
        config: PathBuf,
    },
    /// The statistics of the features are not written as they should be.
    #[error("`{path}`: {message}", path = path.display())]
    Cmvn {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The times of the labels are not written as they should be.
    #[error("`{path}`: {message}", path = path.display())]
    Times {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The parts do not fit each other.
    #[error("`{path}`: {cause}", path = path.display())]
    Parts {
        /// The directory.
        path: PathBuf,
        /// What does not fit.
        cause: InvalidParts,
    },
}

impl ReadModelError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Parts { cause, .. } => cause.hint(),
            Self::OtherModel { .. } => Some("copy the whole directory again, all files of one training".to_owned()),
            _ => None,
        }
    }
}

/// Why parts do not make a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidParts {
    /// A value of the configuration is out of bounds, or the width of the features is not what the network reads.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The front end cannot compute such features.
    #[error(transparent)]
    Features(#[from] FeaturesConfigError),
    /// The labels are not the classes of the network.
    #[error("the labels make {found} classes, but the model has {expected}")]
    Classes {
        /// Labels, padding and blank.
        found: usize,
        /// Outputs of the network.
        expected: usize,
    },
    /// The number of weights is not that of the network.
    #[error("found {found} weights, but the model has {expected}")]
    Weights {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Statistics of frames of another width.
    #[error("the statistics are of {found} values a frame, but a frame has {expected}")]
    CmvnWidth {
        /// Values of the statistics.
        found: usize,
        /// Values of a frame.
        expected: usize,
    },
    /// The features are normalised by statistics that are not there.
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteModelError {
    /// The parts do not fit each other.
    #[error(transparent)]
    Parts(#[from] InvalidParts),
    /// The directory or a file in it.
    #[error("could not write `{path}`", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The weights.
    #[error(transparent)]
    Weights(#[from] SaveWeightsError),
}
