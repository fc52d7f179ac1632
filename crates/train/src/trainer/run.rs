//! A run under way: everything around the training loop, from the first checkpoint to the finished model.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use srf_model::config::TrainingConfig;
use srf_model::frames::Frames;

use super::average::mean;
use super::checkpoint::{Checkpoint, Head, State};
use super::data::{Batch, Data, UnreadableError};
use super::publish::{self, Recognized};
use super::run_dir::{RunDir, RunDirError};
use super::training_loop::{Learner, Skipped, Step};
use super::{Figures, Outcome, TrainError, TrainJob, TrainWatcher};
use crate::events::log::Log;
use crate::events::{
    EndReason, EpochEnd, Event, Examples, Health, Measured, Record, RunEnd, SkippedBatch, SkippedUtterance, Speed,
    Steps,
};
use crate::report;
use crate::tensorboard::TensorBoard;

/// Steps are logged in groups of this length.
const GROUP: Duration = Duration::from_secs(5);

/// Time and work of this process.
pub(super) struct Pace {
    group_start: Instant,
    /// The steps since the last record; sums, where the record has means.
    group: Steps,
    n_losses: u64,
    total: Speed,
    epoch: Speed,
    /// Of the last validation.
    error_rate: Option<(String, f64)>,
    validation_s: f64,
}

impl Pace {
    pub(super) fn new() -> Self {
        let (total, epoch) = (Speed::default(), Speed::default());
        let group = Steps::default();
        Self { group_start: Instant::now(), group, n_losses: 0, total, epoch, error_rate: None, validation_s: 0.0 }
    }

    pub(super) fn add(&mut self, n_frames: u64, duration: Duration, wait: Duration) {
        for speed in [&mut self.group.speed, &mut self.total, &mut self.epoch] {
            speed.n_frames += n_frames;
            speed.duration_s += duration.as_secs_f64();
            speed.wait_s += wait.as_secs_f64();
        }
    }

    /// The steps since the last call.
    fn take_group(&mut self, epoch: usize, learning_rate: f64) -> Steps {
        let mut group = std::mem::take(&mut self.group);
        group.loss /= self.n_losses.max(1) as f64;
        self.group.gradient_norm = group.gradient_norm;
        (self.n_losses, self.group_start) = (0, Instant::now());
        Steps { epoch, learning_rate, ..group }
    }
}

pub(super) struct Run<'a> {
    pub(super) job: &'a TrainJob,
    pub(super) training: &'a TrainingConfig,
    pub(super) data: &'a Data,
    pub(super) dir: RunDir,
    pub(super) log: Log,
    /// Event files of TensorBoard, while they can be written.
    pub(super) board: Option<TensorBoard>,
    pub(super) watcher: &'a dyn TrainWatcher,
    pub(super) stop: &'a AtomicBool,
    pub(super) learner: Learner,
    pub(super) state: State,
    /// The parameters after the last epochs.
    pub(super) kept: VecDeque<Vec<f32>>,
    /// The head of every checkpoint, except for its state.
    pub(super) head: Head,
    pub(super) pace: Pace,
    pub(super) last_save: Instant,
}

impl Run<'_> {
    /// Writes an event to the log and passes it on.
    pub(super) fn report(&mut self, event: Event) -> Result<(), TrainError> {
        let record = Record::now(self.state.n_updates, event);
        self.log.append(&record)?;
        self.watcher.record(&record);
        // TensorBoard's files only repeat the log: no reason to end training.
        if let Err(problem) = self.board.as_mut().map_or(Ok(()), |board| board.add(&record)) {
            self.watcher.remark(&problem.to_string());
            self.board = None;
        }
        Ok(())
    }

    /// What a new run does before its first step.
    pub(super) fn begin(&mut self) -> Result<(), TrainError> {
        self.dir.write("recipe.toml", &self.head.recipe)?;
        self.dir.write("run.json", &publish::run_json(self.job, self.training, self.head.n_values))?;
        let skipped = self.data.train.skipped.iter().chain(&self.data.dev.skipped);
        for utterance in skipped.cloned().collect::<Vec<_>>() {
            self.report(Event::SkippedUtterance(utterance))?;
        }
        self.rehearse()?;
        self.save().map(drop)
    }

    /// Runs the largest batch once before training, so that running out of memory fails early.
    fn rehearse(&mut self) -> Result<(), TrainError> {
        let train = &self.data.train;
        let n_frames = |batch: &[usize]| batch.iter().map(|&n| train.examples[n].n_frames).sum::<usize>();
        let plan = self.data.plan(self.training, 1);
        if let Some(largest) = plan.iter().max_by_key(|batch| n_frames(batch)) {
            let x = Frames::new(train.front_end.n_dims(), self.learner.net.margin());
            let batch = train.batch(largest, Some((&self.data.augmenter, 1)), &mut train.front_end.extractor(), x)?;
            self.learner.rehearse(train, &batch);
        }
        Ok(())
    }

    /// Trains to the end, or until it is interrupted.
    pub(super) fn train(&mut self) -> Result<Outcome, TrainError> {
        while !self.state.is_finished {
            if !self.train_epoch()? {
                let checkpoint = self.save()?;
                self.report_end(EndReason::Interrupted, checkpoint.display().to_string())?;
                return Ok(Outcome::Interrupted { checkpoint });
            }
            self.end_epoch()?;
        }
        self.finish()
    }

    pub(super) fn begin_epoch(&mut self, n_batches: usize) {
        self.pace.epoch = Speed::default();
        self.watcher.begin("training", n_batches);
        (0..self.state.n_batches.min(n_batches)).for_each(|_| self.watcher.advance());
    }

    /// Saves and ends: without the recording, the same command could not end in the same bytes.
    pub(super) fn stop_unreadable(&mut self, error: UnreadableError) -> Result<Batch, TrainError> {
        self.save()?;
        self.report_end(EndReason::Failed, error.to_string())?;
        Err(error.into())
    }

    /// Counts a step that was taken; reports a batch that was skipped, and gives up after too many of them.
    pub(super) fn count_step(&mut self, batch: &Batch, step: Result<Step, Skipped>) -> Result<(), TrainError> {
        self.state.n_steps += 1;
        self.state.n_batches += 1;
        self.pace.group.n_steps += 1;
        self.report_infeasible(batch)?;
        match step {
            Ok(Step { loss_sum, n_losses, norm, rate }) => {
                self.state.loss_sum += loss_sum;
                self.state.n_losses += n_losses;
                self.state.rate = rate;
                self.state.n_updates = self.learner.adam.n_updates;
                self.pace.group.loss += loss_sum;
                self.pace.n_losses += n_losses;
                self.pace.group.gradient_norm = norm;
                Ok(())
            }
            Err(reason) => self.skip(batch, reason),
        }
    }

    /// Played fast, an utterance can become too short for its labels.
    fn report_infeasible(&mut self, batch: &Batch) -> Result<(), TrainError> {
        for place in std::mem::take(&mut self.learner.infeasible) {
            let id = self.data.train.examples[batch.members[place]].id.clone();
            let reason = format!("too short for its labels at the speed of epoch {}", self.state.epoch);
            self.report(Event::SkippedUtterance(SkippedUtterance { id, reason }))?;
        }
        Ok(())
    }

    fn skip(&mut self, batch: &Batch, skipped: Skipped) -> Result<(), TrainError> {
        self.state.n_skipped_in_epoch += 1;
        let utterances = self.data.train.ids(&batch.members);
        let (epoch, at) = (self.state.epoch, self.state.n_batches);
        let event = SkippedBatch { epoch, batch: at, reason: skipped.to_string(), utterances };
        self.report(Event::SkippedBatch(event))?;
        self.state.n_skipped += 1;
        if self.state.n_skipped <= self.training.max_skipped { Ok(()) } else { self.give_up(batch, skipped) }
    }

    fn give_up(&mut self, batch: &Batch, last: Skipped) -> Result<(), TrainError> {
        let saved = self.dir.path().join("failed");
        std::fs::create_dir_all(&saved).map_err(RunDirError::write(&saved))?;
        self.checkpoint().save(&saved.join("state.ckpt"))?;
        self.dir.write("failed/batch.txt", &(self.data.train.ids(&batch.members).join("\n") + "\n"))?;
        let n_skipped = self.state.n_skipped;
        self.report_end(EndReason::Failed, format!("{n_skipped} batches had to be skipped"))?;
        let (step, limit) = (self.state.n_steps, self.training.max_skipped);
        Err(TrainError::TooManySkipped { step, n_skipped, limit, reason: last.to_string(), saved })
    }

    fn report_end(&mut self, reason: EndReason, remark: String) -> Result<(), TrainError> {
        self.report(Event::End(RunEnd { reason, remark, dev: None }))
    }

    pub(super) fn report_progress(&mut self) -> Result<(), TrainError> {
        self.watcher.advance();
        self.watcher.step(&self.figures());
        if self.pace.group_start.elapsed() >= GROUP { self.report_steps() } else { Ok(()) }
    }

    fn report_steps(&mut self) -> Result<(), TrainError> {
        if self.pace.group.n_steps == 0 {
            return Ok(());
        }
        let steps = self.pace.take_group(self.state.epoch, self.state.rate);
        self.report(Event::Steps(steps))
    }

    fn figures(&self) -> Figures {
        let frames_per_s = self.pace.total.frames_per_s();
        let n_epochs_left = (self.training.epochs - self.state.epoch + 1) as f64;
        let n_frames_left = n_epochs_left * self.data.train.n_frames() as f64 - self.pace.epoch.n_frames as f64;
        Figures {
            epoch: self.state.epoch,
            n_epochs: self.training.epochs,
            loss: self.state.loss_sum / self.state.n_losses.max(1) as f64,
            error_rate: self.pace.error_rate.clone(),
            rate: self.state.rate,
            frames_per_s,
            left_s: n_frames_left.max(0.0) / frames_per_s.max(1.0) + n_epochs_left * self.pace.validation_s,
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        let head = Head { state: self.state.clone(), n_kept: self.kept.len(), ..self.head.clone() };
        let (means, squares) = (self.learner.adam.means.clone(), self.learner.adam.squares.clone());
        Checkpoint { head, values: self.learner.params.values.clone(), means, squares, kept: self.kept.clone() }
    }

    pub(super) fn save(&mut self) -> Result<PathBuf, TrainError> {
        self.log.sync()?;
        let path = self.dir.checkpoint(self.state.n_steps);
        self.checkpoint().save(&path)?;
        self.dir.tidy();
        self.last_save = Instant::now();
        Ok(path)
    }

    /// Loss and errors on `dev`, if there is one; `n_utterances` of it are recognised.
    fn validate(&mut self, n_utterances: usize) -> Result<Option<(Measured, Option<Recognized>)>, TrainError> {
        if self.data.dev.examples.is_empty() {
            return Ok(None);
        }
        let (loss, n_losses) = publish::dev_loss(&mut self.learner, self.data)?;
        let parts = publish::parts(self.job, self.learner.params.values.clone(), &self.head, String::new());
        let recognized = publish::recognize(parts, &self.job.data.dev, n_utterances, self.watcher);
        let mut errors =
            recognized.as_ref().map(|recognized| recognized.errors.clone()).unwrap_or_default().into_iter();
        let (errors, other_errors) = (errors.next(), errors.collect());
        let n_recognized = recognized.as_ref().map_or(0, |recognized| recognized.n_utterances);
        Ok(Some((Measured { n_utterances: n_losses, loss, n_recognized, errors, other_errors }, recognized)))
    }

    fn end_epoch(&mut self) -> Result<(), TrainError> {
        self.report_steps()?;
        let start = Instant::now();
        let validation = self.validate(self.training.validation_utterances)?;
        self.kept.push_back(self.learner.params.values.clone());
        while self.kept.len() > self.training.average_epochs {
            self.kept.pop_front();
        }
        let (measured, recognized) = validation.unzip();
        let is_best = self.count_better(measured.as_ref());
        let epoch = self.state.epoch;
        let event = self.epoch_event(measured, is_best, start.elapsed().as_secs_f64());
        self.report(Event::Epoch(Box::new(event)))?;
        if let Some(Recognized { examples, health, .. }) = recognized.flatten() {
            self.report(Event::Examples(Examples { epoch, examples }))?;
            self.report(Event::Health(Health { epoch, layers: health }))?;
        }
        let is_stopped_early = self.training.patience.is_some_and(|patience| self.state.n_worse >= patience);
        self.state = State {
            epoch: epoch + 1,
            n_batches: 0,
            n_skipped_in_epoch: 0,
            loss_sum: 0.0,
            n_losses: 0,
            is_finished: epoch >= self.training.epochs || is_stopped_early,
            ..self.state.clone()
        };
        self.save()?;
        self.write_page();
        self.pace.validation_s = start.elapsed().as_secs_f64();
        Ok(())
    }

    fn write_page(&self) {
        if let Err(problem) = report::write(self.dir.path()) {
            self.watcher.remark(&problem.to_string());
        }
    }

    /// Whether the loss on `dev` is the smallest so far.
    fn count_better(&mut self, measured: Option<&Measured>) -> bool {
        let Some(measured) = measured.filter(|measured| measured.loss.is_finite()) else { return false };
        if let Some(errors) = &measured.errors {
            self.pace.error_rate = errors.rate().map(|rate| (errors.measure.clone(), rate));
        }
        let is_best = self.state.best_loss.is_none_or(|best| measured.loss < best);
        if is_best {
            (self.state.best_loss, self.state.n_worse) = (Some(measured.loss), 0);
        } else {
            self.state.n_worse += 1;
        }
        is_best
    }

    fn epoch_event(&self, validation: Option<Measured>, is_best: bool, validation_s: f64) -> EpochEnd {
        let State { epoch, loss_sum, n_losses, rate, n_skipped_in_epoch, .. } = self.state;
        EpochEnd {
            epoch,
            train: Measured {
                n_utterances: n_losses as usize,
                loss: loss_sum / n_losses.max(1) as f64,
                ..Measured::default()
            },
            validation,
            learning_rate: rate,
            speed: self.pace.epoch,
            validation_s,
            n_skipped_batches: n_skipped_in_epoch,
            is_best,
        }
    }

    /// A model whose weights are not finite is never published.
    fn check_finite(&self) -> Result<(), TrainError> {
        let params = &self.learner.params;
        for tensor in params.layout.tensors() {
            let n = tensor.slot.of(&params.values).iter().filter(|value| !value.is_finite()).count();
            if n > 0 {
                return Err(TrainError::NotFinite { tensor: tensor.name.clone(), n });
            }
        }
        Ok(())
    }

    /// The mean of the last epochs becomes the model.
    fn finish(&mut self) -> Result<Outcome, TrainError> {
        let kept: Vec<&[f32]> = self.kept.iter().map(Vec::as_slice).collect();
        self.learner.params.values = mean(&kept);
        self.check_finite()?;
        // The figure of a model is on all of the part.
        let dev = self.validate(self.job.data.dev.len())?.map(|(measured, _)| measured);
        let model = self.dir.path().join("model");
        let values = self.learner.params.values.clone();
        publish::write(&model, self.job, values, &self.head, &self.state, dev.as_ref(), self.watcher)?;
        let n_epochs = self.state.epoch - 1;
        let reason = if n_epochs < self.training.epochs { EndReason::StoppedEarly } else { EndReason::Completed };
        let remark = format!("the mean of the last {} of {n_epochs} epochs", self.kept.len());
        self.report(Event::End(RunEnd { reason, remark, dev: dev.clone() }))?;
        self.write_page();
        let n_left_out = self.data.train.skipped.len() + self.data.dev.skipped.len() + self.state.n_skipped;
        Ok(Outcome::Finished { model, dev, n_left_out })
    }
}
