//! The events of a training run, one per line of `RUN/log.jsonl`.
//!
//! The trainer reports everything as an [`Event`]; the page, the TensorBoard files and the comparison of runs are
//! made of nothing else. [`log`] writes and reads the file; a run that was killed and resumed, however often, reads
//! as one that never stopped.

pub mod log;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize};

/// An event, and when it happened: a line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since 1970.
    pub time_s: f64,
    /// Optimiser steps taken before it.
    pub step: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    /// `event` as of now.
    pub fn now(step: u64, event: Event) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self { time_s: since.map_or(0.0, |since| since.as_secs_f64()), step, event }
    }
}

/// What can happen in a run. The key `event` of a line says which one it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run starts from nothing.
    Start(Box<RunStart>),
    /// A run goes on from the checkpoint of this record's step; later records before this line did not happen.
    Resume(Resume),
    /// Some steps were taken.
    Steps(Steps),
    /// An epoch ended.
    Epoch(Box<EpochEnd>),
    /// What the recogniser wrote for a few utterances at the end of an epoch.
    Examples(Examples),
    /// How the capsules are at the end of an epoch.
    Health(Health),
    /// A batch was left out.
    SkippedBatch(SkippedBatch),
    /// An utterance was left out of the whole run.
    SkippedUtterance(SkippedUtterance),
    /// The run ended, or was stopped in order.
    End(RunEnd),
    /// An event of a later version, which this one cannot read.
    #[serde(other)]
    Unknown,
}

/// What a run is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// Name of the recipe: the stem of its file.
    pub recipe_name: String,
    /// The recipe with all overrides, as TOML.
    pub recipe: String,
    /// The command line.
    pub command: Vec<String>,
    /// What every random choice was made from.
    pub seed: u64,
    /// The value of `model.architecture`.
    pub architecture: String,
    /// Numbers in the model.
    pub n_parameters: u64,
    /// Outputs of the network.
    pub n_classes: usize,
    /// `phones`, `chars` or `words`.
    pub units: String,
    /// The model that this one started from.
    pub from: Option<String>,
    /// Parts of the data.
    pub data: Vec<DataPart>,
    /// A number that changes when any utterance does.
    pub data_fingerprint: String,
    /// Epochs to be run.
    pub n_epochs: usize,
    /// Optimiser steps an epoch.
    pub n_steps_per_epoch: usize,
    /// Version of the program.
    pub version: String,
    /// Where it ran.
    pub machine: Machine,
}

/// A part of the data of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataPart {
    /// `train` or `dev`.
    pub name: String,
    /// Its manifest.
    pub path: String,
    /// Utterances in it.
    pub n_utterances: usize,
    /// Feature frames in it.
    pub n_frames: u64,
    /// Its length.
    pub duration_s: f64,
}

/// Where a run ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The processor.
    pub processor: String,
    /// Threads that were used.
    pub n_threads: usize,
    /// Memory, in units of 2^30 bytes.
    pub memory_gib: f64,
    /// The operating system.
    pub system: String,
    /// The instruction set of the kernels, as `SRF_ISA` names it.
    pub kernels: String,
}

impl Machine {
    /// This one; `kernels` is the instruction set in use.
    pub fn this(kernels: &str) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let memory = read("/proc/meminfo");
        let memory_kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        Self {
            processor: processor.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
            n_threads: rayon::current_num_threads(),
            memory_gib: memory_kib.and_then(|kib| kib.parse().ok()).unwrap_or(0.0) / f64::from(1 << 20),
            system: std::env::consts::OS.to_owned(),
            kernels: kernels.to_owned(),
        }
    }
}

/// A run goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resume {
    /// Whole epochs in the checkpoint.
    pub epoch: usize,
    /// The checkpoint.
    pub checkpoint: String,
    /// What was found on the way to it, such as a damaged checkpoint, one line each.
    pub remarks: Vec<String>,
}

/// Steps since the last record of this kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    /// The epoch under way, counted from 1.
    pub epoch: usize,
    /// How many steps.
    pub n_steps: usize,
    /// Mean loss of an utterance.
    #[serde(deserialize_with = "number")]
    pub loss: f64,
    /// Norm of the gradient of the last step, before clipping.
    #[serde(deserialize_with = "number")]
    pub gradient_norm: f64,
    /// Learning rate of the last step.
    #[serde(deserialize_with = "number")]
    pub learning_rate: f64,
    /// Speed of these steps.
    pub speed: Speed,
}

/// How fast some steps were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Speed {
    /// Feature frames trained on, without padding.
    pub n_frames: u64,
    /// How long it took, with all waiting.
    #[serde(deserialize_with = "number")]
    pub duration_s: f64,
    /// How much of it was spent waiting for data.
    #[serde(deserialize_with = "number")]
    pub wait_s: f64,
}

impl Speed {
    /// Frames per second.
    pub fn frames_per_s(&self) -> f64 {
        if self.duration_s > 0.0 { self.n_frames as f64 / self.duration_s } else { 0.0 }
    }

    /// Share of the time spent waiting for data.
    pub fn wait_share(&self) -> f64 {
        if self.duration_s > 0.0 { self.wait_s / self.duration_s } else { 0.0 }
    }
}

/// An epoch and what it came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochEnd {
    /// Counted from 1.
    pub epoch: usize,
    /// What the network made of the training data.
    pub train: Measured,
    /// What it made of data it was not trained on; absent where there is none or it was not looked at.
    pub validation: Option<Measured>,
    /// Learning rate of the last step.
    #[serde(deserialize_with = "number")]
    pub learning_rate: f64,
    /// Speed of training, without validation.
    pub speed: Speed,
    /// How long validation, saving and reporting took.
    #[serde(deserialize_with = "number")]
    pub validation_s: f64,
    /// Batches of the epoch that were left out.
    pub n_skipped_batches: usize,
    /// Whether this is the best epoch so far, by validation.
    pub is_best: bool,
}

/// Loss and errors on a part of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Utterances it was taken over.
    pub n_utterances: usize,
    /// Mean loss of an utterance.
    #[serde(deserialize_with = "number")]
    pub loss: f64,
    /// Utterances that were recognised to count errors; 0 in logs of versions that did not write it.
    #[serde(skip_serializing_if = "is_zero")]
    pub n_recognized: usize,
    /// Errors of the recogniser, where it was run.
    pub errors: Option<ErrorCounts>,
    /// The same by other measures: the CER of a model of characters, whose first measure is the WER.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_errors: Vec<ErrorCounts>,
}

impl Measured {
    /// How many utterances of how many the errors were counted on; `None` if on all.
    pub fn part(&self) -> Option<[usize; 2]> {
        let is_part = 0 < self.n_recognized && self.n_recognized < self.n_utterances;
        is_part.then_some([self.n_recognized, self.n_utterances])
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Labels of the reference and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorCounts {
    /// `PER`, `CER` or `WER`.
    pub measure: String,
    /// Labels of the reference.
    pub n_reference: usize,
    /// Others in their place.
    pub substitutions: usize,
    /// Missing ones.
    pub deletions: usize,
    /// Extra ones.
    pub insertions: usize,
}

impl ErrorCounts {
    /// All errors.
    pub fn n_errors(&self) -> usize {
        self.substitutions + self.deletions + self.insertions
    }

    /// Errors for each label of the reference; absent without any.
    pub fn rate(&self) -> Option<f64> {
        (self.n_reference > 0).then(|| self.n_errors() as f64 / self.n_reference as f64)
    }
}

/// What the recogniser wrote for the same few utterances, epoch by epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Examples {
    /// The epoch that ended.
    pub epoch: usize,
    /// The utterances.
    pub examples: Vec<Example>,
}

/// A reference and its hypothesis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Example {
    /// The utterance.
    pub id: String,
    /// What was said.
    pub reference: String,
    /// What was recognised.
    pub hypothesis: String,
}

/// How the capsules are, measured on a few utterances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// The epoch that ended.
    pub epoch: usize,
    /// Capsule layers, the first one first.
    pub layers: Vec<LayerHealth>,
}

/// Figures of one capsule layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerHealth {
    /// Its name, as in the names of its tensors: `caps1`.
    pub name: String,
    /// Mean entropy of an input capsule's couplings, over that of equal ones: 1 shares evenly, 0 has decided.
    #[serde(deserialize_with = "number")]
    pub entropy: f64,
    /// Output capsules that get less than a tenth of an equal share of the couplings.
    pub n_dead: usize,
    /// Output capsules.
    pub n_capsules: usize,
    /// Of the last layer: share of slices in which the class with the largest sum of couplings is the most probable.
    pub agreement: Option<f64>,
}

impl From<&srf_model::stream::LayerHealth> for LayerHealth {
    fn from(health: &srf_model::stream::LayerHealth) -> Self {
        let srf_model::stream::LayerHealth { name, n_slices: _, n_capsules, entropy, n_dead, agreement } = health;
        let agreement = agreement.filter(|agreement| agreement.is_finite());
        Self { name: name.clone(), entropy: *entropy, n_dead: *n_dead, n_capsules: *n_capsules, agreement }
    }
}

/// A batch that was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkippedBatch {
    /// The epoch under way, counted from 1.
    pub epoch: usize,
    /// Its place in the epoch, counted from 1.
    pub batch: usize,
    /// Why, in one line.
    pub reason: String,
    /// Ids of its utterances.
    pub utterances: Vec<String>,
}

/// An utterance that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkippedUtterance {
    /// Its id.
    pub id: String,
    /// Why, in one line.
    pub reason: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// What else there is to say, in one line.
    pub remark: String,
    /// The finished model on all of `dev`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<Measured>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// All epochs were run.
    #[default]
    Completed,
    /// Validation had stopped getting better.
    StoppedEarly,
    /// Somebody stopped it; it can go on.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// A number; JSON has none that is not finite, so those are written as `null` and read back as not a number.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
