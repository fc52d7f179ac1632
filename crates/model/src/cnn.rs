//! Convolutional networks as a chain of layers: feature frames in, logits out; gradients back.
//!
//! The strided convolutions if wanted, convolutions that keep a slice for every slice, dense layers, all with maxout, a
//! layer norm and dropout each; the layer norm behind the last dense layer gives the logits.
//!
//! # Shapes
//! - in: frames of `[features]` with [`CnnNet::margin`], out: slices of `[classes]`, one for each frame, or ceil(n / 4)
//!   for n frames behind the strided convolutions

mod conv_block;
mod dense_block;

use srf_kernels::Element;

use crate::config::CnnConfig;
use crate::frames::Frames;
use crate::layers::{ConvScratch, Dropout, copy};
use crate::loss::{BatchLoss, Labels};
use crate::network::Mode;
use crate::params::{CnnParams, Layout};
use crate::slicer::Slicer;
use crate::summary::FRAMES_PER_SLICE;

use self::conv_block::ConvBlock;
use self::dense_block::DenseBlock;

/// Added to the variance in every layer norm of the network.
const EPSILON: f64 = 1e-6;
/// Zero slices that a convolution needs before and after each utterance.
const MARGIN: [usize; 2] = [2, 2];
/// Of the dropout on the slices.
const INPUT_DROPOUT: u32 = 3;
/// Every block has two dropouts; numbers below this one belong to what comes before.
const FIRST_DROPOUT: u32 = 16;

/// The layers, their activations and their gradients, in memory that is sized by the largest batch and reused.
pub struct CnnNet<E> {
    slots: CnnParams,
    slicer: Option<Slicer<E>>,
    input_dropout: Dropout,
    convs: Vec<ConvBlock<E>>,
    dense: Vec<DenseBlock<E>>,
    loss: BatchLoss<E>,
    /// The gradient at hand and the one being written.
    gradients: [Frames<E>; 2],
    scratch: ConvScratch<E>,
}

impl<E: Element> CnnNet<E> {
    /// The network that `config`, which has been checked, describes, and where its parameters live.
    pub fn new(config: &CnnConfig) -> (Self, Layout) {
        let (slots, layout) = CnnParams::new(config);
        let slicer = || Slicer::new(config.features, config.filters, config.dropout.conv, MARGIN);
        let net = Self {
            slots,
            slicer: config.front_end.then(slicer),
            input_dropout: Dropout::new(config.dropout.input, INPUT_DROPOUT),
            convs: (0..config.layers).map(|index| ConvBlock::new(config, index)).collect(),
            dense: config.dense_shapes().enumerate().map(|(i, shape)| DenseBlock::new(config, i, shape)).collect(),
            loss: BatchLoss::new(config.classes),
            gradients: [Frames::new(1, [0, 0]), Frames::new(1, [0, 0])],
            scratch: ConvScratch::default(),
        };
        (net, layout)
    }

    /// Zero frames that the input needs before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        if self.slicer.is_some() { Slicer::<E>::MARGIN } else { MARGIN }
    }

    /// Feature frames that become one slice of logits.
    pub fn frames_per_slice(&self) -> usize {
        if self.slicer.is_some() { FRAMES_PER_SLICE } else { 1 }
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        let mut input = x;
        if let (Some(slicer), Some(slots)) = (&mut self.slicer, &self.slots.slicer) {
            slicer.forward(slots, values, mode, x);
            self.input_dropout.apply(mode.draw, slicer.output_mut());
            input = slicer.output();
        }
        for (block, slots) in self.convs.iter_mut().zip(&self.slots.convs) {
            input = block.forward(slots, values, mode, input);
        }
        for (block, slots) in self.dense.iter_mut().zip(&self.slots.dense) {
            input = block.forward(slots, values, mode, input);
        }
        self.logits()
    }

    fn logits(&self) -> &Frames<E> {
        self.dense.last().expect("the layer of the classes").output()
    }

    /// The loss of the last forward pass, and its gradient for [`CnnNet::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        let Self { dense, loss, .. } = self;
        loss.measure(dense.last().expect("the layer of the classes").output(), labels);
        &self.loss
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        let Self { slots, slicer, convs, dense, gradients: [grad, next], scratch, .. } = self;
        let of_loss = self.loss.gradient();
        grad.reshape(of_loss.width(), [0, 0]);
        copy(of_loss, grad);
        for index in (0..dense.len()).rev() {
            let (below, block) = dense.split_at_mut(index);
            let input = below.last().map_or_else(|| convs[convs.len() - 1].output(), DenseBlock::output);
            block[0].backward(&slots.dense[index], values, mode, input, grad, next, gradient);
            std::mem::swap(grad, next);
        }
        for index in (0..convs.len()).rev() {
            let (below, block) = convs.split_at_mut(index);
            let first = slicer.as_ref().map_or(x, Slicer::output);
            let input = below.last().map_or(first, ConvBlock::output);
            let wants_input = index > 0 || slicer.is_some();
            block[0].backward(&slots.convs[index], values, mode, input, [grad, next], wants_input, gradient, scratch);
        }
        if let (Some(slicer), Some(slots)) = (slicer, &slots.slicer) {
            self.input_dropout.apply(mode.draw, grad);
            slicer.backward(slots, values, mode, x, grad, gradient);
        }
    }
}
