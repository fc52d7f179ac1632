//! A run under way: batches in, checkpoints, events and at last a model out.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use srf_model::config::TrainingConfig;
use srf_model::frames::Frames;

use super::average::mean;
use super::batches::Buckets;
use super::checkpoint::{Checkpoint, Head, State};
use super::data::{Batch, Dataset};
use super::error::TrainError;
use super::learner::{Learner, Step, Taken};
use super::loader::{Loader, Order};
use super::publish;
use super::run_dir::{RunDir, RunDirError};
use super::validation::{self, Heard};
use super::{Figures, Outcome, TrainJob, TrainWatcher};
use crate::augment::Augmenter;
use crate::events::log::Log;
use crate::events::{
    EndReason, EpochEnd, Event, Examples, Health, Measured, Record, RunEnd, SkippedBatch, SkippedUtterance, Speed,
    Steps,
};
use crate::report;
use crate::tensorboard::TensorBoard;

/// Steps are told of in groups of this length.
const GROUP: Duration = Duration::from_secs(5);

/// What is trained on.
pub(super) struct Data {
    pub(super) train: Dataset,
    pub(super) dev: Dataset,
    pub(super) augmenter: Augmenter,
    pub(super) buckets: Buckets,
}

impl Data {
    /// The batches of an epoch, in their order.
    pub(super) fn plan(&self, training: &TrainingConfig, epoch: usize) -> Vec<Vec<usize>> {
        // The budget must hold however slowly an utterance is played.
        let stretch = self.augmenter.max_stretch();
        let lengths: Vec<usize> =
            self.train.lengths().into_iter().map(|n_frames| (n_frames as f64 * stretch).ceil() as usize).collect();
        self.buckets.shuffled(&lengths, training.seed, epoch)
    }
}

/// Time and work since the last record.
pub(super) struct Pace {
    since: Instant,
    speed: Speed,
    n_steps: usize,
    loss_sum: f64,
    n_losses: u64,
    norm: f64,
    /// All of this process.
    total: Speed,
    /// Of this epoch, in this process.
    epoch: Speed,
    errors: Option<(String, f64)>,
    validation_s: f64,
}

impl Pace {
    pub(super) fn new() -> Self {
        let none = Speed::default();
        Self {
            since: Instant::now(),
            speed: none,
            n_steps: 0,
            loss_sum: 0.0,
            n_losses: 0,
            norm: 0.0,
            total: none,
            epoch: none,
            errors: None,
            validation_s: 0.0,
        }
    }

    fn add(&mut self, n_frames: u64, duration: Duration, wait: Duration) {
        for speed in [&mut self.speed, &mut self.total, &mut self.epoch] {
            speed.n_frames += n_frames;
            speed.duration_s += duration.as_secs_f64();
            speed.wait_s += wait.as_secs_f64();
        }
    }

    /// The steps since the last call.
    fn take_group(&mut self, epoch: usize, learning_rate: f64) -> Steps {
        let steps = Steps {
            epoch,
            n_steps: self.n_steps,
            loss: self.loss_sum / self.n_losses.max(1) as f64,
            gradient_norm: self.norm,
            learning_rate,
            speed: self.speed,
        };
        (self.n_steps, self.loss_sum, self.n_losses, self.speed) = (0, 0.0, 0, Speed::default());
        self.since = Instant::now();
        steps
    }
}

/// The run.
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
    /// The head of every checkpoint, but for its state.
    pub(super) head: Head,
    pub(super) pace: Pace,
    pub(super) last_save: Instant,
}

impl Run<'_> {
    /// Writes an event to the log and tells of it.
    pub(super) fn tell(&mut self, event: Event) -> Result<(), TrainError> {
        let record = Record::now(self.state.n_updates, event);
        self.log.append(&record)?;
        self.watcher.record(&record);
        // Only a view of the log: not worth a training.
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
            self.tell(Event::SkippedUtterance(utterance))?;
        }
        self.rehearse();
        self.save().map(drop)
    }

    /// The batch with the most frames goes first, for nothing: if memory does not suffice, it shows now.
    fn rehearse(&mut self) {
        let train = &self.data.train;
        let n_frames = |batch: &[usize]| batch.iter().map(|&n| train.examples[n].n_frames).sum::<usize>();
        let plan = self.data.plan(self.training, 1);
        if let Some(largest) = plan.iter().max_by_key(|batch| n_frames(batch)) {
            let x = Frames::new(train.front_end.n_dims(), self.learner.net.margin());
            let batch = train.batch(largest, Some((&self.data.augmenter, 1)), &mut train.front_end.extractor(), x);
            self.learner.rehearse(train, &batch);
        }
    }

    /// Trains to the end, or until it is stopped.
    pub(super) fn go(&mut self) -> Result<Outcome, TrainError> {
        while !self.state.is_finished {
            if !self.epoch()? {
                let checkpoint = self.save()?;
                let end = RunEnd { reason: EndReason::Interrupted, remark: checkpoint.display().to_string() };
                self.tell(Event::End(end))?;
                return Ok(Outcome::Interrupted { checkpoint });
            }
            self.end_epoch()?;
        }
        self.finish()
    }

    /// Whether the rest of the epoch was trained on; not if somebody stopped it.
    fn epoch(&mut self) -> Result<bool, TrainError> {
        let (data, epoch) = (self.data, self.state.epoch);
        let plan = data.plan(self.training, epoch);
        let rest = &plan[self.state.n_batches.min(plan.len())..];
        let margin = self.learner.net.margin();
        let order = Order { data: &data.train, plan: rest, epoch, augmenter: &data.augmenter, margin };
        self.pace.epoch = Speed::default();
        self.watcher.begin("training", plan.len());
        (0..self.state.n_batches).for_each(|_| self.watcher.advance());
        thread::scope(|scope| {
            let loader = Loader::start(scope, order);
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let start = Instant::now();
                let Some((batch, wait)) = loader.next() else { return Ok(true) };
                self.take(&batch)?;
                self.pace.add(batch.x.n_frames() as u64, start.elapsed(), wait);
                loader.give_back(batch);
                self.after_step()?;
            }
        })
    }

    fn take(&mut self, batch: &Batch) -> Result<(), TrainError> {
        let outcome = self.learner.step(&self.data.train, batch, self.state.n_steps + 1, self.state.epoch);
        self.state.n_steps += 1;
        self.state.n_batches += 1;
        self.pace.n_steps += 1;
        self.tell_infeasible(batch)?;
        match outcome {
            Step::Taken(Taken { loss_sum, n_losses, norm, rate }) => {
                self.state.loss_sum += loss_sum;
                self.state.n_losses += n_losses;
                self.state.rate = rate;
                self.state.n_updates = self.learner.adam.n_updates;
                self.pace.loss_sum += loss_sum;
                self.pace.n_losses += n_losses;
                self.pace.norm = norm;
                Ok(())
            }
            Step::Empty => self.skip(batch, "no utterance is long enough for its labels".to_owned()),
            Step::NotFinite { what, value } => {
                self.state.n_skipped += 1;
                self.skip(batch, format!("its {what} is {value}"))?;
                self.give_up_if_hopeless(batch)
            }
        }
    }

    /// Played fast, an utterance can become too short for its labels.
    fn tell_infeasible(&mut self, batch: &Batch) -> Result<(), TrainError> {
        for place in std::mem::take(&mut self.learner.infeasible) {
            let id = self.data.train.examples[batch.members[place]].id.clone();
            let reason = format!("too short for its labels at the speed of epoch {}", self.state.epoch);
            self.tell(Event::SkippedUtterance(SkippedUtterance { id, reason }))?;
        }
        Ok(())
    }

    fn skip(&mut self, batch: &Batch, reason: String) -> Result<(), TrainError> {
        self.state.n_skipped_in_epoch += 1;
        let utterances = self.data.train.ids(&batch.members);
        let (epoch, batch) = (self.state.epoch, self.state.n_batches);
        self.tell(Event::SkippedBatch(SkippedBatch { epoch, batch, reason, utterances }))
    }

    fn give_up_if_hopeless(&mut self, batch: &Batch) -> Result<(), TrainError> {
        let (n_skipped, limit) = (self.state.n_skipped, self.training.max_skipped);
        if n_skipped <= limit {
            return Ok(());
        }
        let saved = self.dir.path().join("failed");
        std::fs::create_dir_all(&saved).map_err(RunDirError::write(&saved))?;
        self.checkpoint().save(&saved.join("state.ckpt"))?;
        let lines: Vec<String> = self.data.train.ids(&batch.members);
        self.dir.write("failed/batch.txt", &(lines.join("\n") + "\n"))?;
        let remark = format!("{n_skipped} batches were not finite");
        self.tell(Event::End(RunEnd { reason: EndReason::Failed, remark }))?;
        Err(TrainError::TooManySkipped { step: self.state.n_steps, n_skipped, limit, saved })
    }

    fn after_step(&mut self) -> Result<(), TrainError> {
        self.watcher.advance();
        self.watcher.step(&self.figures());
        if self.pace.since.elapsed() >= GROUP {
            self.tell_steps()?;
        }
        if self.last_save.elapsed() >= self.job.save_every {
            self.save()?;
        }
        Ok(())
    }

    fn tell_steps(&mut self) -> Result<(), TrainError> {
        if self.pace.n_steps == 0 {
            return Ok(());
        }
        let steps = self.pace.take_group(self.state.epoch, self.state.rate);
        self.tell(Event::Steps(steps))
    }

    fn figures(&self) -> Figures {
        let frames_per_s = self.pace.total.frames_per_s();
        let n_epochs_left = self.training.epochs - self.state.epoch;
        let n_frames_left = (n_epochs_left + 1) as f64 * self.data.train.n_frames() as f64;
        let n_frames_left = (n_frames_left - self.pace.epoch.n_frames as f64).max(0.0);
        Figures {
            epoch: self.state.epoch,
            n_epochs: self.training.epochs,
            loss: self.state.loss_sum / self.state.n_losses.max(1) as f64,
            error_rate: self.pace.errors.clone(),
            rate: self.state.rate,
            frames_per_s,
            left_s: n_frames_left / frames_per_s.max(1.0) + (n_epochs_left + 1) as f64 * self.pace.validation_s,
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        let head = Head { state: self.state.clone(), n_kept: self.kept.len(), ..self.head.clone() };
        let adam = &self.learner.adam;
        Checkpoint {
            head,
            values: self.learner.params.values.clone(),
            means: adam.means.clone(),
            squares: adam.squares.clone(),
            kept: self.kept.clone(),
        }
    }

    pub(super) fn save(&mut self) -> Result<PathBuf, TrainError> {
        self.log.sync()?;
        let path = self.dir.checkpoint(self.state.n_steps);
        self.checkpoint().save(&path)?;
        self.dir.tidy();
        self.last_save = Instant::now();
        Ok(path)
    }

    /// Loss and errors on `dev`, if there is one.
    fn validate(&mut self) -> Option<(Measured, Option<Heard>)> {
        let Data { dev, buckets, .. } = self.data;
        if dev.examples.is_empty() {
            return None;
        }
        let (loss, n_utterances) = validation::loss(&mut self.learner, dev, buckets);
        let parts = publish::parts(self.job, self.learner.params.values.clone(), &self.head, String::new());
        let n = self.training.validation_utterances;
        let heard = validation::hear(parts, &self.job.data.dev, n, self.watcher);
        let errors = heard.as_ref().map(|heard| heard.errors.clone());
        Some((Measured { n_utterances, loss, errors }, heard))
    }

    fn end_epoch(&mut self) -> Result<(), TrainError> {
        self.tell_steps()?;
        let start = Instant::now();
        let validation = self.validate();
        self.kept.push_back(self.learner.params.values.clone());
        while self.kept.len() > self.training.average_epochs {
            self.kept.pop_front();
        }
        let (measured, heard) = validation.unzip();
        let is_best = self.count_better(measured.as_ref());
        let epoch = self.state.epoch;
        let event = self.epoch_event(measured, is_best, start.elapsed().as_secs_f64());
        self.tell(Event::Epoch(Box::new(event)))?;
        if let Some(Heard { examples, health, .. }) = heard.flatten() {
            self.tell(Event::Examples(Examples { epoch, examples }))?;
            self.tell(Event::Health(Health { epoch, layers: health }))?;
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
            self.pace.errors = errors.rate().map(|rate| (errors.measure.clone(), rate));
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
            train: Measured { n_utterances: n_losses as usize, loss: loss_sum / n_losses.max(1) as f64, errors: None },
            validation,
            learning_rate: rate,
            speed: self.pace.epoch,
            validation_s,
            n_skipped_batches: n_skipped_in_epoch,
            is_best,
        }
    }

    /// The mean of the last epochs becomes the model.
    fn finish(&mut self) -> Result<Outcome, TrainError> {
        let kept: Vec<&[f32]> = self.kept.iter().map(Vec::as_slice).collect();
        self.learner.params.values = mean(&kept);
        let dev = self.validate().map(|(measured, _)| measured);
        let model = self.dir.path().join("model");
        let values = self.learner.params.values.clone();
        publish::write(&model, self.job, values, &self.head, &self.state, dev.as_ref(), self.watcher)?;
        let n_epochs = self.state.epoch - 1;
        let reason = if n_epochs < self.training.epochs { EndReason::StoppedEarly } else { EndReason::Completed };
        let remark = format!("the mean of the last {} of {n_epochs} epochs", self.kept.len());
        self.tell(Event::End(RunEnd { reason, remark }))?;
        self.write_page();
        let n_left_out = self.data.train.skipped.len() + self.data.dev.skipped.len() + self.state.n_skipped;
        Ok(Outcome::Finished { model, dev, n_left_out })
    }
}
