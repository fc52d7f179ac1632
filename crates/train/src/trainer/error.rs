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
pub enum TrainError {
    /// A recipe for a model that is not to be trained.
    #[error("the recipe `{name}` has no table `[training]`")]
    NoTraining {
        /// The recipe.
        name: String,
    },
    /// The run was started otherwise.
    #[error("`{run}` was started with {what} {was}, this command has {now}")]
    Changed {
        /// The run directory.
        run: PathBuf,
        /// What is different.
        what: String,
        /// At the start.
        was: String,
        /// Now.
        now: String,
    },
    /// There are checkpoints, but the system would not let us read them.
    #[error("`{run}` has checkpoints that cannot be read: {problem}")]
    Unreadable {
        /// The run directory.
        run: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// All utterances were left out.
    #[error("none of the {n_utterances} utterances of `{part}` can be trained on; the first, `{id}`: {reason}")]
    NothingToTrainOn {
        /// `train`.
        part: &'static str,
        /// How many were listed.
        n_utterances: usize,
        /// The first one.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Loss or gradient is not finite again and again.
    #[error(
        "step {step}: {n_skipped} batches had a loss or gradient that is not finite, `training.max_skipped` is {limit}; state and batch are in `{saved}`"
    )]
    TooManySkipped {
        /// The step that was one too many.
        step: u64,
        /// How many.
        n_skipped: usize,
        /// How many may be.
        limit: usize,
        /// Where to look.
        saved: PathBuf,
    },
    /// The model to start from has another shape.
    #[error("cannot start from `{from}`: {problem}")]
    OtherModel {
        /// The model.
        from: PathBuf,
        /// How they differ.
        problem: String,
    },
    /// The features of the recipe.
    #[error(transparent)]
    Features(#[from] FeaturesConfigError),
    /// The recipe.
    #[error(transparent)]
    Recipe(#[from] InvalidConfig),
    /// The model to start from.
    #[error(transparent)]
    From(#[from] LoadWeightsError),
    /// The run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] WriteCheckpointError),
    /// The model.
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
