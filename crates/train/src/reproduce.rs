//! The paper's tables made again: runs, evaluations, and each table with the paper's figures next to ours.
//!
//! [`paper`] holds the tables as data, [`settings`] makes the recipe of a run, [`Job::run`] trains and measures what is
//! missing, and [`Report`] is computed from the files alone, as are the [`verdicts`] on the paper's claims.

pub mod paper;
pub mod results;
pub mod settings;
pub mod verdicts;

mod job;
mod measure;
mod report;
mod statistics;

pub use self::job::{Job, Outcome, Part, cut_for_smoke, load_parts, smoke_corpus};
pub use self::paper::{Table, TableRow};
pub use self::report::Report;

use std::io;
use std::path::{Path, PathBuf};

use srf::directory::ReadModelError;
use srf_model::config::OverrideError;

use crate::builtin::layout::WriteCorpusError;
use crate::corpus::prepare::PrepareError;
use crate::evaluate::files::WriteFilesError;
use crate::trainer::TrainError;
use crate::trainer::prepared::LoadPreparedError;

/// Why a table cannot be made; what was trained and measured before is kept.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    #[error("table `{table}` is about {expected}, but the labels of `{corpus}` are {found}")]
    Units { table: String, expected: &'static str, corpus: String, found: String },
    #[error("`{corpus}` has neither `dev.jsonl` nor `test.jsonl` to measure on")]
    NoParts { corpus: String },
    #[error("table `{table}` has no row `{found}`, expected {expected}")]
    UnknownRow { table: String, found: String, expected: String, nearest: Option<String> },
    #[error("`training.seed` cannot be changed: the seeds are 1 to {n_seeds}")]
    Seed { n_seeds: u64 },
    #[error("could not write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("row `{row}`: {source}")]
    Recipe { row: String, source: Box<OverrideError> },
    #[error(transparent)]
    Data(#[from] LoadPreparedError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Model(#[from] ReadModelError),
    #[error(transparent)]
    Evaluation(#[from] WriteFilesError),
    #[error(transparent)]
    Speech(#[from] WriteCorpusError),
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
            Self::UnknownRow { nearest, .. } => nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?")),
            Self::NoParts { .. } => Some("prepare the corpus with `--split 80/10/10`".to_owned()),
            Self::Seed { .. } => Some("choose their number with `--seeds N`".to_owned()),
            Self::Recipe { source, .. } => {
                let for_some_rows =
                    || "changes can be limited to some rows: `srf-*:training.schedule.warmup.steps=250`".to_owned();
                Some(source.hint().unwrap_or_else(for_some_rows))
            }
            Self::Data(error) => error.hint(),
            Self::Train(TrainError::Changed { .. }) => {
                Some("give the same budget, changes and data to continue, or another `--out` to start again".to_owned())
            }
            Self::Train(error) => error.hint(),
            Self::Model(error) => error.hint(),
            Self::Speech(error) => error.hint(),
            Self::Prepare(error) => error.hint(),
            _ => None,
        }
    }

    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
