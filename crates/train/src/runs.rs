//! Runs side by side: the result of each run, and where their recipes differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::evaluate::summary::{self, LoadSummaryError, Summary};
use crate::events::log::{self, History, LogError};
use crate::events::{EndReason, EpochEnd, Measured, RunStart};
use crate::report;

/// The result of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Run {
    pub path: PathBuf,
    pub recipe_name: String,
    /// Its state: `under way`, `completed`, `stopped early`, `interrupted` or `failed`.
    pub state: &'static str,
    pub seed: u64,
    pub n_parameters: u64,
    pub n_epochs: usize,
    pub n_epochs_planned: usize,
    /// `PER`, `CER` or `WER`.
    pub measure: Option<String>,
    pub best_rate: Option<f64>,
    pub best_epoch: Option<usize>,
    /// How many utterances of how many of dev were recognised after an epoch; `None` if all.
    pub best_part: Option<[usize; 2]>,
    /// Of the finished model on all of dev; of the last epoch while there is none.
    pub last_rate: Option<f64>,
    /// Like `best_part`, for `last_rate`.
    pub last_part: Option<[usize; 2]>,
    /// Time over all resumptions.
    pub time_s: f64,
    pub frames_per_s: f64,
    pub n_skipped_batches: usize,
    pub evaluations: Vec<Evaluated>,
    #[serde(skip)]
    pub recipe: BTreeMap<String, String>,
}

/// An evaluation of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Evaluated {
    /// The name of its directory, such as `test`.
    pub name: String,
    pub manifest: String,
    /// `PER`, `CER` or `WER`.
    pub measure: String,
    pub rate: Option<f64>,
    /// The ends of its 95 % interval.
    pub interval: [f64; 2],
    pub real_time_factor: Option<f64>,
}

/// Why a run could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadRunError {
    #[error("`{path}` is not a run: it has no {}", log::FILE_NAME)]
    NoLog { path: PathBuf },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Evaluation(#[from] LoadSummaryError),
}

impl LoadRunError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let Self::NoLog { path } = self else { return None };
        let is_run = |path: &Path| path.join(log::FILE_NAME).is_file();
        let below = path.read_dir().ok()?.flatten().map(|entry| entry.path()).find(|path| is_run(path))?;
        Some(format!("name the runs in it, such as `{}`", below.display()))
    }
}

impl Run {
    /// Reads the run in `dir`.
    pub fn load(dir: &Path) -> Result<Self, LoadRunError> {
        let path = dir.join(log::FILE_NAME);
        if !path.is_file() {
            return Err(LoadRunError::NoLog { path: dir.to_owned() });
        }
        let history = History::load(&path)?;
        Ok(Self { path: dir.to_owned(), evaluations: evaluations(dir)?, ..Self::of(&history) })
    }

    /// The run of a history.
    pub fn of(history: &History) -> Self {
        let nothing = RunStart::default();
        let start = history.start().unwrap_or(&nothing);
        let best = report::best_epoch(history);
        let last = history.epochs().last();
        // The finished model was measured on all of dev, epochs perhaps on a part of it.
        let of_model = history.end().and_then(|end| end.dev.as_ref()).filter(|dev| dev.errors.is_some());
        let last_measured = of_model.or_else(|| last.and_then(|epoch| epoch.validation.as_ref()));
        let of_epoch = last.and_then(|epoch| epoch.validation.as_ref());
        let sum = |value: fn(&EpochEnd) -> f64| history.epochs().map(value).sum::<f64>();
        let (n_frames, train_s) = (sum(|epoch| epoch.speed.n_frames as f64), sum(|epoch| epoch.speed.duration_s));
        Self {
            path: PathBuf::new(),
            recipe_name: start.recipe_name.clone(),
            state: state(history),
            seed: start.seed,
            n_parameters: start.n_parameters,
            n_epochs: last.map_or(0, |epoch| epoch.epoch),
            n_epochs_planned: start.n_epochs,
            measure: best.map(|(_, errors)| errors.measure.clone()),
            best_rate: best.and_then(|(_, errors)| errors.rate()),
            best_epoch: best.map(|(epoch, _)| epoch),
            best_part: of_epoch.and_then(Measured::part),
            last_rate: last_measured.and_then(|measured| measured.errors.as_ref()?.rate()),
            last_part: last_measured.and_then(Measured::part),
            time_s: history.epochs().map(report::epoch_s).sum(),
            frames_per_s: if train_s > 0.0 { n_frames / train_s } else { 0.0 },
            n_skipped_batches: history.skipped_batches().count(),
            evaluations: Vec::new(),
            recipe: keys(&start.recipe),
        }
    }
}

fn state(history: &History) -> &'static str {
    match history.end().map(|end| end.reason) {
        None => "under way",
        Some(EndReason::Completed) => "completed",
        Some(EndReason::StoppedEarly) => "stopped early",
        Some(EndReason::Interrupted) => "interrupted",
        Some(EndReason::Failed) => "failed",
    }
}

/// The evaluations in the directories below `dir`, by name.
fn evaluations(dir: &Path) -> Result<Vec<Evaluated>, LoadSummaryError> {
    let entries = fs::read_dir(dir).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut found: Vec<PathBuf> = entries.unwrap_or_default();
    found.retain(|path| path.join(summary::FILE_NAME).is_file());
    found.sort();
    found.iter().filter_map(|path| evaluated(path).transpose()).collect()
}

fn evaluated(dir: &Path) -> Result<Option<Evaluated>, LoadSummaryError> {
    let Summary { manifest, rates, real_time_factor, .. } = Summary::load(&dir.join(summary::FILE_NAME))?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(rates.into_iter().next().map(|rate| {
        let interval = [rate.low, rate.high];
        Evaluated { name, manifest, measure: rate.measure, rate: rate.rate, interval, real_time_factor }
    }))
}

/// Every key of a recipe with its value; empty if the recipe is not TOML.
fn keys(recipe: &str) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    if let Ok(table) = recipe.parse::<toml::Table>() {
        flatten("", &table, &mut keys);
    }
    keys
}

fn flatten(prefix: &str, table: &toml::Table, keys: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(table) => flatten(&key, table, keys),
            value => drop(keys.insert(key, value.to_string())),
        }
    }
}

/// A key whose value is not the same in all recipes, with its value in each; `None` where a recipe lacks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Difference {
    pub key: String,
    pub values: Vec<Option<String>>,
}

/// Where the recipes of `runs` differ.
pub fn differences(runs: &[Run]) -> Vec<Difference> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.recipe.keys()).collect();
    let differences = keys.into_iter().map(|key| Difference {
        key: key.clone(),
        values: runs.iter().map(|run| run.recipe.get(key).cloned()).collect(),
    });
    differences.filter(|difference| difference.values.windows(2).any(|pair| pair[0] != pair[1])).collect()
}

#[cfg(test)]
mod tests;
