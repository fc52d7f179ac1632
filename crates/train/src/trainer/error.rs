//! Why a training cannot start or go on.

use std::path::PathBuf;

use srf::directory::WriteModelError;
use srf_audio::features::FeaturesConfigError;
use srf_model::config::InvalidConfig;
use srf_model::weights::LoadWeightsError;

use super::checkpoint::WriteCheckpointError;
use super::run_dir::RunDirError;
use crate::events::log::LogError;

/// Why a training cannot start or go on; what was saved before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum TrainError {
    #[error("the recipe `{name}` has no table `[training]`")]
    NoTraining { name: String },
    #[error("`{run}` was started with {what} {was}, this command has {now}")]
    Changed { run: PathBuf, what: String, was: String, now: String },
    #[error("`{run}` has checkpoints that cannot be read: {problem}")]
    Unreadable { run: PathBuf, problem: String },
    #[error("none of the {n_utterances} utterances of `{part}` can be trained on; the first, `{id}`: {reason}")]
    NothingToTrainOn { part: &'static str, n_utterances: usize, id: String, reason: String },
    #[error(
        "step {step}: {n_skipped} batches had a loss or gradient that is not finite, `training.max_skipped` is {limit}; state and batch are in `{saved}`"
    )]
    TooManySkipped { step: u64, n_skipped: usize, limit: usize, saved: PathBuf },
    #[error("cannot start from `{from}`: {problem}")]
    OtherModel { from: PathBuf, problem: String },
    #[error(transparent)]
    Features(#[from] FeaturesConfigError),
    #[error(transparent)]
    Recipe(#[from] InvalidConfig),
    #[error(transparent)]
    From(#[from] LoadWeightsError),
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Checkpoint(#[from] WriteCheckpointError),
    #[error(transparent)]
    Model(#[from] WriteModelError),
}

impl TrainError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Changed { .. } => {
                "give the same recipe, changes and data to go on, or another `--out` to start anew".to_owned()
            }
            Self::Unreadable { run, .. } => {
                format!("make `{}` readable, or give another `--out`", run.join("checkpoints").display())
            }
            Self::NothingToTrainOn { .. } => "`srf validate` checks a manifest against its recordings".to_owned(),
            Self::TooManySkipped { .. } => {
                "a smaller learning rate (`kappa`) or `training.clip_norm=5` often helps; then start anew".to_owned()
            }
            Self::OtherModel { .. } => {
                "the table `[model]` must be that of the model to start from, `classes` aside".to_owned()
            }
            Self::Checkpoint(_) | Self::RunDir(RunDirError::Write { .. }) | Self::Log(_) => {
                "make room on the disk and give the same command again: it goes on from the last checkpoint".to_owned()
            }
            _ => return None,
        })
    }
}
