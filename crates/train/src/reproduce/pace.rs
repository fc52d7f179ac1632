//! How fast a row trains: some steps of it in, frames a second and the epochs for a time out.
//!
//! Rows are compared after the same time, but the schedule of a training must know its end beforehand. So a few steps
//! are timed, once for each row: the speed is written down, and every seed and every resumption has the same epochs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use srf_model::config::Recipe;

use super::error::ReproduceError;
use super::place::{read_json, write_json};
use super::runner::Job;
use super::settings::{Budget, Length};
use super::table::Row;
use crate::corpus::Utterance;
use crate::events::log::{self, History};
use crate::runs::Run;
use crate::trainer::prepared::Prepared;
use crate::trainer::{TrainJob, TrainWatcher, train};

/// Batches that are timed.
const N_BATCHES: usize = 4;
/// Of features.
const FRAMES_PER_S: f64 = 100.0;

/// The speed of a row, and what it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pace {
    /// The network and the frames of a batch.
    of: String,
    frames_per_s: f64,
}

impl Job {
    /// How long a row is trained; it is timed first where that is needed. None if somebody stopped the timing.
    pub(super) fn length(
        &self,
        row: &Row,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<Length>, ReproduceError> {
        if let Some(length) = self.known_length(row)? {
            return Ok(Some(length));
        }
        let recipe = self.settings.recipe(row, Length::OfRecipe, 1)?;
        let of = subject(&recipe);
        if let Some(frames_per_s) = self.time(row, recipe, watcher, stop)? {
            let path = self.place.pace(row);
            write_json(&path, &Pace { of, frames_per_s }).map_err(ReproduceError::write(&path))?;
        }
        self.known_length(row)
    }

    /// The same where it is known without timing anything.
    pub(super) fn known_length(&self, row: &Row) -> Result<Option<Length>, ReproduceError> {
        let minutes = match self.budget {
            Budget::Recipe => return Ok(Some(Length::OfRecipe)),
            Budget::Epochs(n_epochs) => return Ok(Some(Length::Epochs(n_epochs))),
            Budget::Minutes(minutes) => minutes,
        };
        let recipe = self.settings.recipe(row, Length::OfRecipe, 1)?;
        let most = recipe.training.as_ref().map_or(1, |training| training.epochs);
        let pace = read_json::<Pace>(&self.place.pace(row)).filter(|pace| pace.of == subject(&recipe));
        let n_frames = n_frames(&self.data.train);
        Ok(pace.map(|pace| Length::Epochs(epochs_in(minutes, pace.frames_per_s, n_frames, most))))
    }

    /// Trains on a little of the corpus in a directory that goes away; none if somebody stopped it.
    fn time(
        &self,
        row: &Row,
        mut recipe: Recipe,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<f64>, ReproduceError> {
        let run = self.place.row(row).join("pace");
        let _ = fs::remove_dir_all(&run);
        let mut n_wanted = 0.0;
        if let Some(training) = &mut recipe.training {
            n_wanted = (N_BATCHES * training.batch_frames) as f64;
            (training.epochs, training.average_epochs) = (1, 1);
        }
        watcher.remark(&format!("{}: timing some batches", row.name()));
        let data = Prepared {
            paths: self.data.paths.clone(),
            labels: self.data.labels.clone(),
            train: first(&self.data.train, n_wanted),
            dev: Vec::new(),
            fingerprint: String::new(),
            problems: Vec::new(),
        };
        let job = TrainJob { data: Arc::new(data), run, ..self.train_job(row, recipe, 1) };
        train(&job, watcher, stop)?;
        let history = History::load(&job.run.join(log::FILE_NAME)).unwrap_or_default();
        let _ = fs::remove_dir_all(&job.run);
        Ok(history.is_finished().then(|| Run::of(&history).frames_per_s))
    }
}

fn subject(recipe: &Recipe) -> String {
    let batch_frames = recipe.training.as_ref().map_or(0, |training| training.batch_frames);
    format!("{:?}, {batch_frames} frames a batch", recipe.model)
}

/// The first utterances that have `n_wanted` frames together.
fn first(utterances: &[Utterance], n_wanted: f64) -> Vec<Utterance> {
    let mut n_taken = 0.0;
    let few = utterances.iter().take_while(|utterance| {
        let is_taken = n_taken < n_wanted;
        n_taken += n_frames(std::slice::from_ref(utterance));
        is_taken
    });
    few.cloned().collect()
}

fn n_frames(utterances: &[Utterance]) -> f64 {
    utterances.iter().filter_map(|utterance| utterance.audio.duration_s).sum::<f64>() * FRAMES_PER_S
}

/// Epochs of `n_frames` that fit into `minutes`: one at least, and no more than the recipe has.
fn epochs_in(minutes: f64, frames_per_s: f64, n_frames: f64, most: usize) -> usize {
    let n_epochs = (60.0 * minutes * frames_per_s / n_frames.max(1.0)).round();
    (n_epochs as usize).clamp(1, most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_fill_the_time_within_bounds() {
        // 10 minutes at 2,000 frames/s are 1.2 million frames.
        assert_eq!(epochs_in(10.0, 2000.0, 100_000.0, 200), 12);
        assert_eq!(epochs_in(0.01, 2000.0, 100_000.0, 200), 1);
        assert_eq!(epochs_in(1e9, 2000.0, 100_000.0, 200), 200);
        assert_eq!(epochs_in(10.0, f64::NAN, 0.0, 200), 1);
    }
}
