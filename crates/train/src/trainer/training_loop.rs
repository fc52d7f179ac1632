//! The training loop: the steps of an epoch, and what one step does to the parameters.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use srf_model::config::{ModelConfig, TrainingConfig};
use srf_model::network::{CtcLoss, DropoutSeed, Mode, Network};
use srf_model::optim::{Adam, clip_norm, global_norm};
use srf_model::params::Params;

use super::TrainError;
use super::data::{Batch, Dataset, Loader};
use super::run::Run;
use crate::seed::generator;

/// Keeps the random numbers of dropout apart from those of other purposes.
const DROPOUT: u64 = 6;

impl Run<'_> {
    /// Trains the rest of the epoch. Returns `false` if interrupted.
    pub(super) fn train_epoch(&mut self) -> Result<bool, TrainError> {
        let (data, epoch) = (self.data, self.state.epoch);
        let plan = data.plan(self.training, epoch);
        let rest = &plan[self.state.n_batches.min(plan.len())..];
        self.begin_epoch(plan.len());
        thread::scope(|scope| {
            let loader = Loader::start(scope, data, rest, epoch, self.learner.net.margin());
            while !self.stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let Some((batch, wait)) = loader.next() else { return Ok(true) };
                let batch = batch.or_else(|error| self.stop_unreadable(error))?;
                let rate = self.training.schedule.rate(self.learner.adam.n_updates + 1, epoch);
                let step = self.learner.step(&data.train, &batch, self.state.n_steps + 1, rate);
                self.count_step(&batch, step)?;
                self.pace.add(batch.x.n_frames() as u64, start.elapsed(), wait);
                loader.give_back(batch);
                self.report_progress()?;
                if self.last_save.elapsed() >= self.job.save_every {
                    self.save()?;
                }
            }
            Ok(false)
        })
    }
}

/// The network with everything that a step changes.
pub(crate) struct Learner {
    pub(crate) net: Network<f32>,
    pub(crate) params: Params<f32>,
    pub(crate) adam: Adam<f32>,
    /// Places in the last batch whose utterances are too short for their labels.
    pub(crate) infeasible: Vec<usize>,
    gradient: Vec<f32>,
    training: TrainingConfig,
}

/// What a step that changed the parameters measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) loss_sum: f64,
    pub(crate) n_losses: u64,
    pub(crate) norm: f64,
    pub(crate) rate: f64,
}

/// Why a batch was skipped; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Skipped {
    #[error("its {what} is {value}")]
    NotFinite { what: &'static str, value: f64 },
    #[error("no utterance is long enough for its labels")]
    Empty,
}

impl Learner {
    pub(crate) fn new(model: &ModelConfig, training: &TrainingConfig) -> Self {
        let (net, layout) = Network::new(model);
        let params = Params::initialize(Arc::new(layout), training.seed);
        let n_trainable = params.layout.n_trainable();
        let adam = Adam::new(training.adam, n_trainable);
        let gradient = vec![0.0; n_trainable];
        Self { net, params, adam, infeasible: Vec::new(), gradient, training: training.clone() }
    }

    /// Trains on `batch`, which is step number `step` of the run.
    pub(crate) fn step(&mut self, data: &Dataset, batch: &Batch, step: u64, rate: f64) -> Result<Step, Skipped> {
        let n_trainable = self.params.layout.n_trainable();
        // A skipped batch must not leave its moving statistics behind either.
        let statistics = self.params.values[n_trainable..].to_vec();
        let outcome = self.try_step(data, batch, step, rate);
        if outcome.is_err() {
            self.params.values[n_trainable..].copy_from_slice(&statistics);
        }
        outcome
    }

    fn try_step(&mut self, data: &Dataset, batch: &Batch, step: u64, rate: f64) -> Result<Step, Skipped> {
        let seed = generator(self.training.seed, &[DROPOUT, step]).u64(..);
        let dropout = Some(DropoutSeed { seed, utterances: &batch.numbers });
        let mode = Mode { uses_batch_statistics: true, dropout, keeps_decisions: false };
        let (loss_sum, n_losses) = self.loss(data, batch, mode);
        if n_losses == 0 {
            return Err(Skipped::Empty);
        }
        check_finite("loss", loss_sum)?;
        self.gradient.fill(0.0);
        self.net.backward(&self.params.values, mode, &batch.x, &mut self.gradient);
        let norm = match self.training.clip_norm {
            Some(max_norm) => clip_norm(&mut self.gradient, max_norm),
            None => global_norm(&self.gradient),
        };
        check_finite("gradient", norm)?;
        self.adam.update(self.params.trainable_mut(), &self.gradient, rate);
        Ok(Step { loss_sum, n_losses, norm, rate })
    }

    /// Runs the network forward. Returns the sum of the losses of the batch and how many utterances have one.
    pub(crate) fn loss(&mut self, data: &Dataset, batch: &Batch, mode: Mode<'_>) -> (f64, u64) {
        self.net.forward(&mut self.params.values, mode, &batch.x);
        let loss = self.net.loss(&data.labels(&batch.members));
        self.infeasible.clear();
        let (mut sum, mut n) = (0.0, 0);
        for (place, loss) in loss.losses.iter().enumerate() {
            match loss {
                CtcLoss::Value(value) => (sum, n) = (sum + value, n + 1),
                _ => self.infeasible.push(place),
            }
        }
        (sum, n)
    }

    /// Takes a step and undoes it, so that running out of memory fails before the training begins.
    pub(crate) fn rehearse(&mut self, data: &Dataset, batch: &Batch) {
        let (params, adam) = (self.params.values.clone(), self.adam.clone());
        // Only the memory it takes matters here.
        let _ = self.step(data, batch, 0, 0.0);
        self.params.values = params;
        self.adam = adam;
    }
}

fn check_finite(what: &'static str, value: f64) -> Result<(), Skipped> {
    if value.is_finite() { Ok(()) } else { Err(Skipped::NotFinite { what, value }) }
}
