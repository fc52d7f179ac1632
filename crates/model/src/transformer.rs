//! Networks of self-attention as a chain of layers: feature frames in, logits out; gradients back.
//!
//! The strided convolutions, a dense layer with positions written onto it and dropout, blocks of self-attention, a
//! layer norm and a dense layer, whose results are the logits.
//!
//! # Shapes
//! - in: frames of `[features]` with [`TransformerNet::MARGIN`], out: ceil(n / 4) slices of `[classes]` for n frames

mod block;

use srf_kernels::Element;

use crate::config::TransformerConfig;
use crate::frames::Frames;
use crate::layers::{Dense, Dropout, LayerNorm, Positions};
use crate::loss::{BatchLoss, Labels};
use crate::network::Mode;
use crate::params::{Layout, Slot, TransformerParams};
use crate::slicer::Slicer;

use self::block::Block;

/// Added to the variance in every layer norm of the network.
const EPSILON: f64 = 1e-6;
/// Of the dropout on the input of the first block.
const INPUT_DROPOUT: u32 = 3;

/// The layers, their activations and their gradients, in memory that is sized by the largest batch and reused.
pub struct TransformerNet<E> {
    slots: TransformerParams,
    /// Whether the convolutions run as the rest of the network in training.
    has_statistics: bool,
    slicer: Slicer<E>,
    proj: Dense<E>,
    positions: Positions<E>,
    dropout: Dropout,
    projected: Frames<E>,
    blocks: Vec<Block<E>>,
    ln_out: LayerNorm<E>,
    normed: Frames<E>,
    out: Dense<E>,
    logits: Frames<E>,
    loss: BatchLoss<E>,
    /// Of a slice between blocks, and of one of the convolutions.
    grad: Frames<E>,
    grad_slices: Frames<E>,
}

impl<E: Element> TransformerNet<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = Slicer::<E>::MARGIN;

    /// The network that `config`, which has been checked, describes, and where its parameters live.
    pub fn new(config: &TransformerConfig) -> (Self, Layout) {
        let (slots, layout) = TransformerParams::new(config);
        let (flat, width, classes) = (config.flat_width(), config.width, config.classes);
        let net = Self {
            slots,
            has_statistics: config.front_end_statistics,
            slicer: Slicer::new(config.features, config.filters, config.dropout.conv, [0, 0]),
            proj: Dense::new(flat, width),
            positions: Positions::new(width),
            dropout: Dropout::new(config.dropout.input, INPUT_DROPOUT),
            projected: Frames::new(width, [0, 0]),
            blocks: (0..config.layers).map(|index| Block::new(config, index)).collect(),
            ln_out: LayerNorm::new(width, EPSILON),
            normed: Frames::new(width, [0, 0]),
            out: Dense::new(width, classes),
            logits: Frames::new(classes, [0, 0]),
            loss: BatchLoss::new(classes),
            grad: Frames::new(width, [0, 0]),
            grad_slices: Frames::new(flat, [0, 0]),
        };
        (net, layout)
    }

    /// How the convolutions run when the network runs in `mode`.
    fn slicer_mode<'a>(&self, mode: Mode<'a>) -> Mode<'a> {
        if self.has_statistics { mode } else { Mode { uses_batch_statistics: false, draw: None, ..mode } }
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        let slicer_mode = self.slicer_mode(mode);
        let slices = self.slicer.forward(&self.slots.slicer, values, slicer_mode, x);
        let proj = self.slots.proj;
        self.proj.forward(proj.kernel.of(values), Some(proj.bias.of(values)), slices, &mut self.projected);
        self.positions.forward(&mut self.projected);
        self.dropout.apply(mode.draw, &mut self.projected);
        let mut input = &self.projected;
        for (block, slots) in self.blocks.iter_mut().zip(&self.slots.blocks) {
            input = block.forward(slots, values, mode, input);
        }
        self.ln_out.forward(self.slots.ln_out.params(values), input, &mut self.normed);
        let out = self.slots.out;
        self.out.forward(out.kernel.of(values), Some(out.bias.of(values)), &self.normed, &mut self.logits);
        &self.logits
    }

    /// The loss of the last forward pass, and its gradient for [`TransformerNet::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        self.loss.measure(&self.logits, labels);
        &self.loss
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        let slicer_mode = self.slicer_mode(mode);
        let Self { slots, blocks, grad, .. } = self;
        let [kernel, bias] = Slot::disjoint_mut([slots.out.kernel, slots.out.bias], gradient);
        let weights = slots.out.kernel.of(values);
        self.out.backward(weights, &self.normed, self.loss.gradient(), kernel, Some(bias), grad);
        let last = blocks[blocks.len() - 1].output();
        self.ln_out.backward(slots.ln_out.params(values), last, grad, slots.ln_out.gradient(gradient));
        for index in (0..blocks.len()).rev() {
            let (below, block) = blocks.split_at_mut(index);
            let input = below.last().map_or(&self.projected, Block::output);
            block[0].backward(&slots.blocks[index], values, mode, input, grad, gradient);
        }
        self.dropout.apply(mode.draw, grad);
        self.positions.backward(grad);
        let [kernel, bias] = Slot::disjoint_mut([slots.proj.kernel, slots.proj.bias], gradient);
        let (weights, slices) = (slots.proj.kernel.of(values), self.slicer.output());
        self.proj.backward(weights, slices, grad, kernel, Some(bias), &mut self.grad_slices);
        self.slicer.backward(&slots.slicer, values, slicer_mode, x, &mut self.grad_slices, gradient);
    }
}
