//! The network of any architecture: a chain of blocks from feature frames to logits, its loss and its gradients.
//!
//! An architecture is a function that builds the chain (`network/`); everything else is the same for all of them.
//! Blocks run one after another, each over all utterances; a block's gradients are complete when its backward pass
//! returns, so that they can be exchanged between machines while the next one runs.
//!
//! # Shapes
//! - in: frames of `[features]` with [`Network::margin`], out: ceil(n / [`Network::frames_per_slice`]) slices of
//!   `[classes]` for n frames
//!
//! ```
//! use std::sync::Arc;
//! use srf_model::config::{AdamConfig, ModelConfig, SrfConfig};
//! use srf_model::frames::Frames;
//! use srf_model::network::{BatchLoss, CtcLoss, DropoutSeed, Mode, Network};
//! use srf_model::optim::{Adam, clip_norm, global_norm};
//! use srf_model::params::Params;
//!
//! let srf = SrfConfig { features: 8, filters: 2, layers: 1, primary_height: 2, ..SrfConfig::new(4) };
//! let (mut net, layout) = Network::<f32>::new(&ModelConfig::Srf(srf));
//! let mut params = Params::initialize(Arc::new(layout), 1);
//! let mut adam = Adam::new(AdamConfig::default(), params.layout.n_trainable());
//!
//! // Two utterances of 24 and 16 frames, with their labels.
//! let mut x = Frames::new(8, net.margin());
//! x.resize_for([24, 16]);
//! x.each_real_mut().into_iter().for_each(|frames| frames.iter_mut().enumerate().for_each(|(n, v)| *v = (n as f32).sin()));
//! let labels: [&[u32]; 2] = [&[1, 2], &[2]];
//! for step in 0..3 {
//!     let dropout = Some(DropoutSeed { seed: step, utterances: &[0, 1] });
//!     let mode = Mode { uses_batch_statistics: true, dropout, keeps_decisions: true };
//!     net.forward(&mut params.values, mode, &x);
//!     let loss: &BatchLoss<f32> = net.loss(&labels);
//!     assert!(loss.losses.iter().all(|loss| matches!(loss, CtcLoss::Value(_))));
//!     println!("step {step}: loss {:?}", loss.mean());
//!     let mut gradient = vec![0.0; params.layout.n_trainable()];
//!     net.backward(&params.values, mode, &x, &mut gradient);
//!     clip_norm(&mut gradient, 5.0);
//!     assert!(global_norm(&gradient) <= 5.0 + 1e-3);
//!     adam.update(params.trainable_mut(), &gradient, 1e-3);
//! }
//! assert_eq!(net.logits().lengths(), [24, 16].map(|n: usize| n.div_ceil(net.frames_per_slice())));
//! assert_eq!(net.decisions(0).len(), 2);
//! assert!(net.activation("caps1").is_some());
//! ```

mod cnn;
mod conv_stack;
mod lstm;
mod srf;
mod transformer;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;

use rayon::prelude::*;
pub use srf_kernels::CtcLoss;
use srf_kernels::{CtcScratch, Element, ctc};

pub use self::conv_stack::ConvStack;
pub(crate) use self::srf::{CapsuleBlock, EPSILON, SrfBlocks};
use crate::config::ModelConfig;
use crate::frames::Frames;
use crate::layers::{Backward, Decisions, Forward, Wanted, Workspace, copy};
pub use crate::layers::{DropoutSeed, Mode};
use crate::params::{Layout, Plan};

/// Layers that belong together, with their activations.
///
/// Memory is sized by the largest batch and reused.
pub trait Block<E>: Send {
    /// Computes the output for `x`, which has the margin that the block was built for.
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>);

    /// The output of the last forward pass.
    fn output(&self) -> &Frames<E>;

    /// Adds to the gradients of the parameters, and replaces `d_x`, if wanted, by the gradient of `x`.
    ///
    /// Uses up `d_y`, the gradient of the output; `x` is that of the forward pass.
    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>);

    /// Whether anything here is trained; below the first such block no gradients are needed.
    fn has_parameters(&self) -> bool {
        true
    }

    /// What the layer of this name computed in the last forward pass, if it is one of this block's.
    fn activation(&self, _layer: &str) -> Option<&Frames<E>> {
        None
    }

    /// The decisions of the routing in the last forward pass; `None` if the block has no routing.
    fn decisions(&self) -> Option<&[Decisions<E>]> {
        None
    }
}

/// A chain of blocks with its loss.
pub struct Network<E> {
    blocks: Vec<Box<dyn Block<E>>>,
    margin: [usize; 2],
    frames_per_slice: usize,
    loss: BatchLoss<E>,
    /// The gradient at hand and the one being written.
    gradients: [Frames<E>; 2],
    workspace: Workspace<E>,
    n_trainable: usize,
}

impl<E: Element> Network<E> {
    /// The network that `config` describes, and where its parameters live.
    ///
    /// Allocates nothing of a tensor's size before the first pass.
    pub fn new(config: &ModelConfig) -> (Self, Layout) {
        let mut plan = Plan::new(config.n_features());
        let (margin, blocks) = match config {
            ModelConfig::Srf(config) => srf::blocks(&mut plan, config),
            ModelConfig::Lstm(config) => lstm::blocks(&mut plan, config),
            ModelConfig::Cnn(config) => cnn::blocks(&mut plan, config),
            ModelConfig::Transformer(config) => transformer::blocks(&mut plan, config),
        };
        Self::from_blocks(plan, margin, blocks)
    }

    /// A chain of blocks built on `plan`, the first of which needs `margin` zero frames around its input.
    pub fn from_blocks(plan: Plan, margin: [usize; 2], blocks: Vec<Box<dyn Block<E>>>) -> (Self, Layout) {
        assert!(!blocks.is_empty(), "a network has blocks");
        let layout = plan.finish();
        let net = Self {
            blocks,
            margin,
            frames_per_slice: layout.frames_per_slice(),
            loss: BatchLoss::default(),
            gradients: Default::default(),
            workspace: Workspace::default(),
            n_trainable: layout.n_trainable(),
        };
        (net, layout)
    }

    /// Zero frames that the input needs before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        self.margin
    }

    /// Feature frames that become one slice of logits.
    pub fn frames_per_slice(&self) -> usize {
        self.frames_per_slice
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        let (params, statistics) = values.split_at_mut(self.n_trainable);
        let mut pass = Forward { params, statistics, mode, workspace: &mut self.workspace };
        let mut input = x;
        for block in &mut self.blocks {
            block.forward(&mut pass, input);
            input = block.output();
        }
        self.logits()
    }

    /// The logits of the last forward pass.
    pub fn logits(&self) -> &Frames<E> {
        self.blocks[self.blocks.len() - 1].output()
    }

    /// The loss of the last forward pass, and its gradient for [`Network::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        self.loss.measure(self.blocks[self.blocks.len() - 1].output(), labels);
        &self.loss
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        let d_logits = std::mem::take(&mut self.loss.gradient);
        self.backward_from(values, mode, (x, &d_logits), gradient);
        self.loss.gradient = d_logits;
    }

    /// Like [`Network::backward`], from the gradient of the output for the input `x`.
    pub fn backward_from(
        &mut self,
        values: &[E],
        mode: Mode<'_>,
        (x, d_output): (&Frames<E>, &Frames<E>),
        gradient: &mut [E],
    ) {
        let (params, workspace) = (&values[..self.n_trainable], &mut self.workspace);
        let mut pass = Backward { params, gradient, mode, workspace };
        let [d_y, d_x] = &mut self.gradients;
        d_y.reshape(d_output.width(), [0, 0]);
        copy(d_output, d_y);
        let first_trained = self.blocks.iter().position(|block| block.has_parameters()).unwrap_or(0);
        for index in (first_trained..self.blocks.len()).rev() {
            let (below, block) = self.blocks.split_at_mut(index);
            let input = below.last().map_or(x, |below| below.output());
            block[0].backward(&mut pass, input, d_y, (index > first_trained).then_some(&mut *d_x));
            std::mem::swap(d_y, d_x);
        }
    }

    /// What the layer of this name computed in the last forward pass, for those that keep it.
    pub fn activation(&self, layer: &str) -> Option<&Frames<E>> {
        self.blocks.iter().find_map(|block| block.activation(layer))
    }

    /// The decisions of the routing of capsule layer `index` for each utterance of the last forward pass, if its mode
    /// kept them.
    pub fn decisions(&self, index: usize) -> &[Decisions<E>] {
        self.blocks.iter().filter_map(|block| block.decisions()).nth(index).unwrap_or_default()
    }
}

/// The classes of an utterance's labels.
pub type Labels<'a> = &'a [u32];

/// The CTC losses of a batch and the gradient of their mean.
pub struct BatchLoss<E> {
    /// Of each utterance; those without a value take no part in the mean and have no gradient.
    pub losses: Vec<CtcLoss>,
    gradient: Frames<E>,
    scratch: Vec<CtcScratch>,
}

impl<E: Element> Default for BatchLoss<E> {
    fn default() -> Self {
        Self { losses: Vec::new(), gradient: Frames::default(), scratch: Vec::new() }
    }
}

impl<E: Element> BatchLoss<E> {
    /// The mean over the utterances that have a loss; `None` if none has.
    pub fn mean(&self) -> Option<f64> {
        let values = self.losses.iter().filter_map(|loss| match loss {
            CtcLoss::Value(value) => Some(*value),
            _ => None,
        });
        let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
        (n > 0).then(|| sum / f64::from(n))
    }

    /// The gradient of the mean with respect to the logits.
    pub fn gradient(&self) -> &Frames<E> {
        &self.gradient
    }

    /// Measures `logits`, whose last class is the blank, against the labels.
    fn measure(&mut self, logits: &Frames<E>, labels: &[Labels<'_>]) {
        assert_eq!(labels.len(), logits.n_utterances(), "labels of every utterance");
        let n_classes = logits.width();
        self.gradient.reshape(n_classes, [0, 0]);
        self.gradient.resize_like(logits);
        self.losses.resize(labels.len(), CtcLoss::Value(0.0));
        self.scratch.resize_with(labels.len(), CtcScratch::default);
        let outputs = self.gradient.each_real_mut().into_par_iter().zip(&mut self.losses).zip(&mut self.scratch);
        outputs.enumerate().for_each(|(n, ((gradient, loss), scratch))| {
            *loss = ctc(logits.real(n), n_classes, n_classes - 1, labels[n], scratch, gradient);
        });
        let n_values = self.losses.iter().filter(|loss| matches!(loss, CtcLoss::Value(_))).count();
        let scale = E::from_f64(1.0 / n_values.max(1) as f64);
        self.gradient.each_block(|_, gradient| gradient.iter_mut().for_each(|g| *g *= scale));
    }
}
