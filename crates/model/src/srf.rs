//! The network of the paper as a chain of layers: feature frames in, logits out; gradients back.
//!
//! Front end, capsule layers each with a layer norm and dropout, lengths of the class capsules, and a layer norm on
//! them, whose results are the logits.
//!
//! # Shapes
//! - in: frames of `[features]` with [`Srf::MARGIN`], out: ceil(n / 4) slices of `[classes]` for n frames

mod block;

#[cfg(test)]
mod tests;

pub use srf_kernels::CtcLoss;
use srf_kernels::Element;
use srf_kernels::routing::Workspace;

use crate::config::SrfConfig;
use crate::frames::Frames;
use crate::front_end::FrontEnd;
use crate::layers::{Decisions, LayerNorm, Lengths};
use crate::params::{Layout, SrfParams};

use self::block::Block;
pub use self::block::router;
pub use crate::loss::{BatchLoss, Labels};
pub use crate::network::Mode;

/// Added to the variance in every norm of the network.
pub(crate) const EPSILON: f64 = 1e-3;

/// The layers, their activations and their gradients, in memory that is sized by the largest batch and reused.
pub struct Srf<E> {
    slots: SrfParams,
    front_end: FrontEnd<E>,
    blocks: Vec<Block<E>>,
    lengths: Lengths,
    ln_out: LayerNorm<E>,
    length: Frames<E>,
    logits: Frames<E>,
    loss: BatchLoss<E>,
    /// Gradients at the input of each block, and at the output of the last.
    gradients: Vec<Frames<E>>,
    workspace: Workspace<E>,
}

impl<E: Element> Srf<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = FrontEnd::<E>::MARGIN;

    /// The network that `config`, which has been checked, describes, and where its parameters live.
    pub fn new(config: &SrfConfig) -> (Self, Layout) {
        let (slots, layout) = SrfParams::new(config);
        let margins: Vec<[usize; 2]> =
            config.capsule_shapes().map(|shape| [shape.window_left, shape.window_right]).collect();
        let next_margin = |index: usize| margins.get(index + 1).copied().unwrap_or_default();
        let blocks: Vec<Block<E>> = config
            .capsule_shapes()
            .enumerate()
            .map(|(index, shape)| Block::new(config, shape, index, next_margin(index)))
            .collect();
        let mut gradients: Vec<Frames<E>> = blocks.iter().map(Block::new_input).collect();
        gradients.push(Frames::new(config.classes * config.class_depth, [0, 0]));
        let srf = Self {
            slots,
            front_end: FrontEnd::new(config),
            blocks,
            lengths: Lengths::new(config.class_depth),
            ln_out: LayerNorm::new(config.classes, EPSILON),
            length: Frames::new(config.classes, [0, 0]),
            logits: Frames::new(config.classes, [0, 0]),
            loss: BatchLoss::new(config.classes),
            gradients,
            workspace: Workspace::new(),
        };
        (srf, layout)
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        let Self { slots, blocks, workspace, .. } = self;
        let mut capsules = self.front_end.forward(slots, values, mode, x);
        for (index, block) in blocks.iter_mut().enumerate() {
            capsules = block.forward(slots, index, values, mode, capsules, workspace);
        }
        self.lengths.forward(capsules, &mut self.length);
        self.ln_out.forward(self.slots.ln_out.params(values), &self.length, &mut self.logits);
        &self.logits
    }

    /// The loss of the last forward pass, and its gradient for [`Srf::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        self.loss.measure(&self.logits, labels);
        &self.loss
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        let Self { slots, blocks, gradients, workspace, .. } = self;
        let grad = self.loss.gradient_mut();
        self.ln_out.backward(slots.ln_out.params(values), &self.length, grad, slots.ln_out.gradient(gradient));
        let n_blocks = blocks.len();
        self.lengths.backward(blocks[n_blocks - 1].output(), &self.length, grad, &mut gradients[n_blocks]);
        for index in (0..n_blocks).rev() {
            let (below, block) = blocks.split_at_mut(index);
            let input = below.last().map_or(self.front_end.output(), Block::output);
            let (grads_below, grads) = gradients.split_at_mut(index + 1);
            let (grad_x, grad_y) = (&mut grads_below[index], &mut grads[0]);
            block[0].backward(slots, index, values, mode, input, grad_y, grad_x, gradient, workspace);
        }
        self.front_end.backward(slots, values, mode, x, &mut gradients[0], gradient);
    }

    /// The front end, with what it computed in the last forward pass.
    pub fn front_end(&self) -> &FrontEnd<E> {
        &self.front_end
    }

    /// The output of capsule layer `index` in the last forward pass, before and after its layer norm.
    pub fn capsules(&self, index: usize) -> (&Frames<E>, &Frames<E>) {
        (self.blocks[index].routed(), self.blocks[index].output())
    }

    /// Lengths of the class capsules in the last forward pass, before the layer norm.
    pub fn class_lengths(&self) -> &Frames<E> {
        &self.length
    }

    /// What the routing of capsule layer `index` decided for each utterance of the last forward pass, if it was kept.
    pub fn decisions(&self, index: usize) -> &[Decisions<E>] {
        self.blocks[index].decisions()
    }
}
