//! A convolution with maxout, its pooling, layer norm and dropout: slices in, slices out.

use srf_kernels::{Conv, Element};

use super::{EPSILON, FIRST_DROPOUT, MARGIN};
use crate::config::{CnnConfig, ConvShape};
use crate::frames::Frames;
use crate::layers::{ConvHalves, ConvScratch, Dropout, LayerNorm, MaxPool};
use crate::network::Mode;
use crate::params::MaxoutNormSlots;

/// The layers and their activations.
pub(super) struct ConvBlock<E> {
    shape: ConvShape,
    conv: ConvHalves<E>,
    pool: Option<MaxPool>,
    norm: LayerNorm<E>,
    dropout: Dropout,
    convolved: Frames<E>,
    /// Empty without pooling.
    pooled: Frames<E>,
    normed: Frames<E>,
}

impl<E: Element> ConvBlock<E> {
    pub(super) fn new(config: &CnnConfig, index: usize) -> Self {
        let shape = config.conv_shape(index);
        let conv = Conv {
            kernel: [5, 3],
            stride: [1, 1],
            n_freq: shape.n_freq,
            pad_freq: [1, 1],
            n_channels: shape.n_in,
            n_filters: shape.n_out,
        };
        let number = FIRST_DROPOUT + 2 * index as u32;
        let width = shape.n_freq_out() * shape.n_out;
        let is_last = index + 1 == config.layers;
        Self {
            shape,
            conv: ConvHalves::new(conv, MARGIN, config.dropout.conv, number),
            pool: (shape.pool > 1).then(|| MaxPool::new(shape.n_out, shape.pool)),
            norm: LayerNorm::new(shape.n_out, EPSILON),
            dropout: Dropout::new(config.dropout.between, number + 1),
            convolved: Frames::new(shape.n_freq * shape.n_out, [0, 0]),
            pooled: Frames::new(width, [0, 0]),
            normed: Frames::new(width, if is_last { [0, 0] } else { MARGIN }),
        }
    }

    pub(super) fn output(&self) -> &Frames<E> {
        &self.normed
    }

    pub(super) fn forward(
        &mut self,
        slots: &MaxoutNormSlots,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
    ) -> &Frames<E> {
        self.conv.forward(slots.kernel.of(values), mode.draw, x, &mut self.convolved);
        let mut input = &self.convolved;
        if let Some(pool) = &mut self.pool {
            pool.forward(&self.convolved, &mut self.pooled);
            input = &self.pooled;
        }
        self.norm.forward(slots.norm.params(values), input, &mut self.normed);
        self.dropout.apply(mode.draw, &mut self.normed);
        &self.normed
    }

    /// Replaces the first of `grads`, that of the output, by that of the input, if that is wanted; the second is room.
    pub(super) fn backward(
        &mut self,
        slots: &MaxoutNormSlots,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        [grad, room]: [&mut Frames<E>; 2],
        wants_input: bool,
        gradient: &mut [E],
        scratch: &mut ConvScratch<E>,
    ) {
        self.dropout.apply(mode.draw, grad);
        let input = if self.pool.is_some() { &self.pooled } else { &self.convolved };
        self.norm.backward(slots.norm.params(values), input, grad, slots.norm.gradient(gradient));
        if let Some(pool) = &mut self.pool {
            room.reshape(self.shape.n_freq * self.shape.n_out, [0, 0]);
            pool.backward(grad, room);
            std::mem::swap(grad, room);
        }
        room.reshape(x.width(), [0, 0]);
        self.conv.swap_scratch(scratch);
        let grad_x = wants_input.then_some(&mut *room);
        self.conv.backward(mode.draw, x, grad, slots.kernel.of_mut(gradient), grad_x);
        self.conv.swap_scratch(scratch);
        std::mem::swap(grad, room);
    }
}
