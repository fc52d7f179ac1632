//! A dense layer with maxout, its layer norm and dropout: slices in, slices out.

use srf_kernels::Element;

use super::{EPSILON, FIRST_DROPOUT};
use crate::config::CnnConfig;
use crate::frames::Frames;
use crate::layers::{Dense, Dropout, LayerNorm, maxout_backward, maxout_forward};
use crate::network::Mode;
use crate::params::MaxoutNormSlots;

/// The layers and their activations.
pub(super) struct DenseBlock<E> {
    dense: Dense<E>,
    /// On both branches of the maxout.
    branch_dropout: Dropout,
    norm: LayerNorm<E>,
    /// On the output; none on the logits.
    dropout: Option<Dropout>,
    branches: Frames<E>,
    largest: Frames<E>,
    normed: Frames<E>,
    grad_branches: Frames<E>,
}

impl<E: Element> DenseBlock<E> {
    pub(super) fn new(config: &CnnConfig, index: usize, [n_in, n_out]: [usize; 2]) -> Self {
        let is_last = index == config.dense_layers;
        let number = FIRST_DROPOUT + 2 * (config.layers + index) as u32;
        let rate = if is_last { config.dropout.between } else { config.dropout.conv };
        Self {
            dense: Dense::new(n_in, 2 * n_out),
            branch_dropout: Dropout::new(rate, number),
            norm: LayerNorm::new(n_out, EPSILON),
            dropout: (!is_last).then(|| Dropout::new(config.dropout.between, number + 1)),
            branches: Frames::new(2 * n_out, [0, 0]),
            largest: Frames::new(n_out, [0, 0]),
            normed: Frames::new(n_out, [0, 0]),
            grad_branches: Frames::new(2 * n_out, [0, 0]),
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
        self.dense.forward(slots.kernel.of(values), None, x, &mut self.branches);
        self.branch_dropout.apply(mode.draw, &mut self.branches);
        maxout_forward(&self.branches, &mut self.largest);
        self.norm.forward(slots.norm.params(values), &self.largest, &mut self.normed);
        if let Some(dropout) = self.dropout {
            dropout.apply(mode.draw, &mut self.normed);
        }
        &self.normed
    }

    /// Uses up `grad_y` and shapes `grad_x` as the input.
    pub(super) fn backward(
        &mut self,
        slots: &MaxoutNormSlots,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad_y: &mut Frames<E>,
        grad_x: &mut Frames<E>,
        gradient: &mut [E],
    ) {
        if let Some(dropout) = self.dropout {
            dropout.apply(mode.draw, grad_y);
        }
        self.norm.backward(slots.norm.params(values), &self.largest, grad_y, slots.norm.gradient(gradient));
        maxout_backward(&self.branches, grad_y, &mut self.grad_branches);
        self.branch_dropout.apply(mode.draw, &mut self.grad_branches);
        grad_x.reshape(x.width(), [0, 0]);
        let kernel = slots.kernel.of(values);
        self.dense.backward(kernel, x, &self.grad_branches, slots.kernel.of_mut(gradient), None, grad_x);
    }
}
