//! Training: turns a prepared corpus and a recipe into a run directory with a model.
//!
//! The same recipe, data and seed give the same bytes, in one go or killed and resumed any number of times, with any
//! number of threads.
//! Everything random follows from the seed and a place in the run (epoch, step, utterance); everything else that a
//! restart needs is in a [`checkpoint`].

pub mod average;
pub mod batches;
pub mod checkpoint;
pub mod prepared;

mod data;
mod front_end;
mod publish;
mod run;
mod run_dir;
mod start;
mod training_loop;

pub use data::UnreadableError;
pub use run_dir::{RunDirError, is_run_or_empty, set_run_aside};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use srf::directory::WriteModelError;
use srf_audio::features::FeaturesConfigError;
use srf_model::config::{InvalidConfig, Recipe, ScheduleConfig, TrainingConfig};
use srf_model::weights::LoadWeightsError;

use crate::corpus::Watcher;
use crate::events::log::{self, LogError};
use crate::events::{Machine, Measured, Record};

use self::checkpoint::WriteCheckpointError;
use self::prepared::Prepared;

/// What to train, on what, and where to.
pub struct TrainJob {
    /// The recipe with all changes; it has a `[training]` table.
    pub recipe: Recipe,
    /// What it is called.
    pub recipe_name: String,
    /// The corpus; many runs can share it.
    pub data: Arc<Prepared>,
    /// The run directory.
    pub run: PathBuf,
    /// A model directory to start from.
    pub from: Option<PathBuf>,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Where it runs, for the record.
    pub machine: Machine,
    /// From one checkpoint to the next; one is written after each epoch besides.
    pub save_every: Duration,
    /// The most memory that features (or samples) may take; beyond it they are computed again in each epoch.
    pub max_cache_bytes: u64,
}

/// How a run that could start ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// There is a model.
    Finished {
        /// Its directory.
        model: PathBuf,
        /// How good it is on `dev`.
        dev: Option<Measured>,
        /// How many utterances and batches were left out.
        n_left_out: usize,
    },
    /// Somebody stopped it; the same command goes on from here.
    Interrupted {
        /// The state it will go on from.
        checkpoint: PathBuf,
    },
}

/// Figures of a step, for a person who watches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The epoch under way, counted from 1.
    pub epoch: usize,
    /// Epochs in all.
    pub n_epochs: usize,
    /// Mean loss of an utterance in this epoch.
    pub loss: f64,
    /// Error rate after the last epoch, and what kind it is.
    pub error_rate: Option<(String, f64)>,
    /// Learning rate.
    pub rate: f64,
    /// Speed since the start of this process, validation left out.
    pub frames_per_s: f64,
    /// How long the rest will take.
    pub left_s: f64,
}

/// Follows a run.
pub trait TrainWatcher: Watcher {
    /// Something happened that is also in the log.
    fn record(&self, record: &Record);
    /// Something that a person should know.
    fn remark(&self, text: &str);
    /// A step was taken.
    fn step(&self, figures: &Figures);
}

/// Why a run cannot start or go on; what was saved before stays.
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
    #[error("all checkpoints of `{run}` are damaged; the newest: {problem}")]
    AllDamaged { run: PathBuf, problem: String },
    #[error("the weights are not finite: `{tensor}` has {n} such numbers; they are not published")]
    NotFinite { tensor: String, n: usize },
    #[error("none of the {n_utterances} utterances of `{part}` can be trained on; the first, `{id}`: {reason}")]
    NothingToTrainOn { part: &'static str, n_utterances: usize, id: String, reason: String },
    #[error(
        "step {step}: {n_skipped} batches had to be skipped, `training.max_skipped` is {limit}; the last one because {reason}; state and batch are in `{saved}`"
    )]
    TooManySkipped { step: u64, n_skipped: usize, limit: usize, reason: String, saved: PathBuf },
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
    Recording(#[from] UnreadableError),
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
            Self::Recording(_) => {
                "bring the recordings back and give the same command again: it goes on from the last checkpoint"
                    .to_owned()
            }
            Self::AllDamaged { .. } => {
                "`--restart` starts from the beginning and moves what is there to `old-1`".to_owned()
            }
            Self::NothingToTrainOn { .. } => "`srf validate` checks a manifest against its recordings".to_owned(),
            Self::NotFinite { .. } | Self::TooManySkipped { .. } => {
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

/// The same training in another number of epochs: the curve of the learning rate keeps its height and form, and its
/// time is compressed or stretched.
///
/// With n steps for every N of the recipe, s = n / N, warm-up takes s n_w steps, and κ √s keeps the rate where it was,
/// for κ √s (s N)^-1/2 = κ N^-1/2.
pub fn in_epochs(training: &TrainingConfig, n_epochs: usize) -> TrainingConfig {
    let share = n_epochs as f64 / training.epochs as f64;
    let mut changed = training.clone();
    changed.epochs = n_epochs;
    changed.average_epochs = ((training.average_epochs as f64 * share).ceil() as usize).clamp(1, n_epochs.max(1));
    if let ScheduleConfig::Warmup { steps, kappa, .. } = &mut changed.schedule {
        *steps = ((*steps as f64 * share).round() as u64).max(1);
        for step in kappa.iter_mut() {
            step.value *= share.sqrt();
            step.from_epoch = 1 + ((step.from_epoch - 1) as f64 * share).round() as usize;
        }
        // Of factors that now begin in the same epoch, the last one counts.
        let firsts: Vec<usize> = kappa.iter().map(|step| step.from_epoch).collect();
        let mut at = 0;
        kappa.retain(|_| {
            at += 1;
            firsts.get(at) != firsts.get(at - 1)
        });
    }
    changed
}

/// Trains until the end or until `stop` is set, from the start or from the last checkpoint of the run.
pub fn train(job: &TrainJob, watcher: &dyn TrainWatcher, stop: &AtomicBool) -> Result<Outcome, TrainError> {
    let start = start::Start::new(job, watcher)?;
    let data = start.load_data(watcher)?;
    let mut run = start.into_run(&data, watcher, stop)?;
    run.train()
}

/// Whether the run has this very training at its end; one that was started otherwise is refused, as [`train`] does.
pub fn is_finished(job: &TrainJob, watcher: &dyn TrainWatcher) -> Result<bool, TrainError> {
    let has_log = job.run.join(log::FILE_NAME).is_file();
    Ok(has_log && start::Start::new(job, watcher)?.is_at_end())
}

#[cfg(test)]
mod tests;
