//! Why a table cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use srf::directory::ReadModelError;
use srf_model::config::OverrideError;

use crate::builtin::layout::WriteCorpusError;
use crate::corpus::prepare::PrepareError;
use crate::evaluate::files::WriteFilesError;
use crate::trainer::TrainError;
use crate::trainer::prepared::LoadPreparedError;

/// Why a table cannot be made; what was trained and measured before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// The table is about other labels.
    #[error("table `{table}` is about {expected}, but the labels of `{corpus}` are {found}")]
    Units {
        /// The table.
        table: &'static str,
        /// Whether phones or words are counted.
        expected: &'static str,
        /// The corpus.
        corpus: String,
        /// What its labels are.
        found: String,
    },
    /// Nothing to measure on.
    #[error("`{corpus}` has neither `dev.jsonl` nor `test.jsonl` to measure on")]
    NoParts {
        /// The corpus.
        corpus: String,
    },
    /// A row that the table does not have.
    #[error("table `{table}` has no row `{found}`, expected {expected}")]
    UnknownRow {
        /// The table.
        table: &'static str,
        /// As typed.
        found: String,
        /// All rows.
        expected: String,
        /// The one that was meant, perhaps.
        nearest: String,
    },
    /// Seeds are ours to give.
    #[error("`training.seed` cannot be changed: the seeds are 1 to {n_seeds}")]
    Seed {
        /// How many.
        n_seeds: u64,
    },
    /// A file of the table.
    #[error("could not write `{path}`: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A recipe with the changes.
    #[error("row `{row}`: {source}")]
    Recipe {
        /// Whose recipe.
        row: &'static str,
        /// What is wrong with it.
        source: OverrideError,
    },
    /// The corpus.
    #[error(transparent)]
    Data(#[from] LoadPreparedError),
    /// A training.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A trained model.
    #[error(transparent)]
    Model(#[from] ReadModelError),
    /// An evaluation.
    #[error(transparent)]
    Evaluation(#[from] WriteFilesError),
    /// The corpus that is made to try a table out.
    #[error(transparent)]
    Speech(#[from] WriteCorpusError),
    /// Its preparation.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

impl ReproduceError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Units { expected: "phones", .. } => {
                Some("prepare the corpus with `--units phones`, or choose table `wsj`".to_owned())
            }
            Self::Units { .. } => {
                Some("prepare the corpus with `--units chars` or `words`, or choose a table of phones".to_owned())
            }
            Self::UnknownRow { nearest, .. } => Some(format!("did you mean `{nearest}`?")),
            Self::NoParts { .. } => Some("prepare the corpus with `--split 80/10/10`".to_owned()),
            Self::Seed { .. } => Some("choose their number with `--seeds N`".to_owned()),
            Self::Recipe { source, .. } => {
                let of_some =
                    || "changes can be for some rows alone: `srf-*:training.schedule.warmup.steps=250`".to_owned();
                Some(source.hint().unwrap_or_else(of_some))
            }
            Self::Data(error) => error.hint(),
            Self::Train(TrainError::Changed { .. }) => {
                Some("give the same budget, changes and data to go on, or another `--out` to start anew".to_owned())
            }
            Self::Train(error) => error.hint(),
            Self::Model(error) => error.hint(),
            Self::Speech(error) => error.hint(),
            Self::Prepare(error) => error.hint(),
            _ => None,
        }
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
