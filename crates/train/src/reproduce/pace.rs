//! How fast a row trains: some steps of it in, frames a second and the epochs for a time out.
//!
//! Rows are compared after the same time, but the schedule of a training must know its end beforehand. So a few steps
//! are timed, once for each row: the speed is written down, and every seed and every resumption has the same epochs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use model::config::Recipe;
use serde::{Deserialize, Serialize};

use super::error::ReproduceError;
use super::place::{read_json, write_json};
use super::runner::Job;
use super::settings::Budget;
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
    /// Epochs that a row is trained for where that is not as its recipe says; none if somebody stopped the timing.
    pub(super) fn n_epochs(
        &self,
        row: &Row,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<Option<usize>>, ReproduceError> {
        let minutes = match self.budget {
            Budget::Recipe => return Ok(Some(None)),
            Budget::Epochs(n_epochs) => return Ok(Some(Some(n_epochs))),
            Budget::Minutes(minutes) => minutes,
        };
        let recipe = self.settings.recipe(row, None, 1)?;
        let path = self.place.pace(row);
        let known = self.known_pace(row, &recipe);
        let frames_per_s = match known {
            Some(pace) => pace,
            None => match self.time(row, recipe.clone(), watcher, stop)? {
                None => return Ok(None),
                Some(frames_per_s) => {
                    let pace = Pace { of: subject(&recipe), frames_per_s };
                    write_json(&path, &pace).map_err(ReproduceError::write(&path))?;
                    frames_per_s
                }
            },
        };
        Ok(Some(Some(epochs_in(minutes, frames_per_s, n_frames(&self.data.train), n_epochs_of(&recipe)))))
    }

    /// The epochs of a row where they are known without timing anything.
    pub(super) fn known_epochs(&self, row: &Row) -> Result<Option<Option<usize>>, ReproduceError> {
        let Budget::Minutes(minutes) = self.budget else {
            return Ok(Some(if let Budget::Epochs(n_epochs) = self.budget { Some(n_epochs) } else { None }));
        };
        let recipe = self.settings.recipe(row, None, 1)?;
        let pace = self.known_pace(row, &recipe);
        Ok(pace.map(|pace| Some(epochs_in(minutes, pace, n_frames(&self.data.train), n_epochs_of(&recipe)))))
    }

    fn known_pace(&self, row: &Row, recipe: &Recipe) -> Option<f64> {
        let pace: Pace = read_json(&self.place.pace(row))?;
        (pace.of == subject(recipe)).then_some(pace.frames_per_s)
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
        let mut n_taken = 0.0;
        let few = self.data.train.iter().take_while(|utterance| {
            let is_taken = n_taken < n_wanted;
            n_taken += n_frames(std::slice::from_ref(utterance));
            is_taken
        });
        let data = Prepared {
            path: self.data.path.clone(),
            labels: self.data.labels.clone(),
            train: few.cloned().collect(),
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

fn n_epochs_of(recipe: &Recipe) -> usize {
    recipe.training.as_ref().map_or(1, |training| training.epochs)
}

fn subject(recipe: &Recipe) -> String {
    let batch_frames = recipe.training.as_ref().map_or(0, |training| training.batch_frames);
    format!("{:?}, {batch_frames} frames a batch", recipe.model)
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
        // 10 minutes at 2,000 frames/s are 1.2 million frames: 12 epochs of an hour less a bit.
        assert_eq!(epochs_in(10.0, 2000.0, 100_000.0, 200), 12);
        assert_eq!(epochs_in(0.01, 2000.0, 100_000.0, 200), 1);
        assert_eq!(epochs_in(1e9, 2000.0, 100_000.0, 200), 200);
        assert_eq!(epochs_in(10.0, f64::NAN, 0.0, 200), 1);
    }
}
