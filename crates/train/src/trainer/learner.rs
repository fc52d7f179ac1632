//! One step of training: a batch in, better parameters out, or the reason why it was left out.

use std::sync::Arc;

use srf_model::config::{ModelConfig, TrainingConfig};
use srf_model::init::initialise;
use srf_model::layers::Draw;
use srf_model::network::Network;
use srf_model::optim::{Adam, clip_norm, global_norm};
use srf_model::params::Params;
use srf_model::srf::{CtcLoss, Mode};

use super::data::{Batch, Dataset};
use crate::seed::generator;

/// Which generator.
const DROPOUT: u64 = 6;

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

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// The parameters moved.
    Taken(Taken),
    /// Nothing changed: the loss or the gradient is not finite.
    NotFinite { what: &'static str, value: f64 },
    /// Nothing changed: no utterance of the batch has a loss.
    Empty,
}

/// A step that was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Taken {
    pub(crate) loss_sum: f64,
    pub(crate) n_losses: u64,
    pub(crate) norm: f64,
    pub(crate) rate: f64,
}

impl Learner {
    pub(crate) fn new(model: &ModelConfig, training: &TrainingConfig) -> Self {
        let (net, layout) = Network::new(model);
        let params = initialise(Arc::new(layout), training.seed);
        let n_trainable = params.layout.n_trainable();
        Self {
            net,
            params,
            adam: Adam::new(training.adam, n_trainable),
            infeasible: Vec::new(),
            gradient: vec![0.0; n_trainable],
            training: training.clone(),
        }
    }

    /// Trains on `batch`, the step number `step` of the run, in `epoch`.
    pub(crate) fn step(&mut self, data: &Dataset, batch: &Batch, step: u64, epoch: usize) -> Step {
        let n_trainable = self.params.layout.n_trainable();
        // A batch that is left out must not leave its statistics behind either.
        let statistics = self.params.values[n_trainable..].to_vec();
        let outcome = self.try_step(data, batch, step, epoch);
        if !matches!(outcome, Step::Taken(_)) {
            self.params.values[n_trainable..].copy_from_slice(&statistics);
        }
        outcome
    }

    fn try_step(&mut self, data: &Dataset, batch: &Batch, step: u64, epoch: usize) -> Step {
        let seed = generator(self.training.seed, &[DROPOUT, step]).u64(..);
        let draw = Some(Draw { seed, utterances: &batch.numbers });
        let mode = Mode { uses_batch_statistics: true, draw, keeps_decisions: false };
        let (loss_sum, n_losses) = self.measure(data, batch, mode);
        if n_losses == 0 {
            return Step::Empty;
        }
        if !loss_sum.is_finite() {
            return Step::NotFinite { what: "loss", value: loss_sum };
        }
        self.gradient.fill(0.0);
        self.net.backward(&self.params.values, mode, &batch.x, &mut self.gradient);
        let norm = match self.training.clip_norm {
            Some(max_norm) => clip_norm(&mut self.gradient, max_norm),
            None => global_norm(&self.gradient),
        };
        if !norm.is_finite() {
            return Step::NotFinite { what: "gradient", value: norm };
        }
        let rate = self.training.schedule.rate(self.adam.n_updates + 1, epoch);
        self.adam.update(self.params.trainable_mut(), &self.gradient, rate);
        Step::Taken(Taken { loss_sum, n_losses, norm, rate })
    }

    /// The sum of the losses of a batch, and how many utterances have one.
    pub(crate) fn measure(&mut self, data: &Dataset, batch: &Batch, mode: Mode<'_>) -> (f64, u64) {
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

    /// A step whose result is thrown away: what it needs of memory is then there, or known not to be.
    pub(crate) fn rehearse(&mut self, data: &Dataset, batch: &Batch) {
        let (params, adam) = (self.params.values.clone(), self.adam.clone());
        self.step(data, batch, 0, 1);
        self.params.values = params;
        self.adam = adam;
    }
}
