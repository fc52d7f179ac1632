//! The tensors that several networks have: names and shapes in, slots of a layout out.

use super::{Init, Layout, Slot};
use crate::layers::{NormGradient, NormParams};

/// Weights and biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseSlots {
    /// The weights; of a convolution `[time, frequency, in, out]`.
    pub kernel: Slot,
    /// One for each output.
    pub bias: Slot,
}

/// The two branches of a maxout convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxoutSlots {
    /// First branch.
    pub a: DenseSlots,
    /// Second branch.
    pub b: DenseSlots,
}

/// Scale and shift of a layer norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormSlots {
    /// Scale.
    pub gamma: Slot,
    /// Shift.
    pub beta: Slot,
}

impl NormSlots {
    /// This part of a model's values.
    pub fn params<E>(self, values: &[E]) -> NormParams<'_, E> {
        NormParams { gamma: self.gamma.of(values), beta: self.beta.of(values) }
    }

    /// This part of a gradient, to be written.
    pub fn gradient<E>(self, gradient: &mut [E]) -> NormGradient<'_, E> {
        let [gamma, beta] = Slot::disjoint_mut([self.gamma, self.beta], gradient);
        NormGradient { gamma, beta }
    }
}

/// A batch norm; the two statistics lie beyond the trainable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchNormSlots {
    /// Scale.
    pub gamma: Slot,
    /// Shift.
    pub beta: Slot,
    /// Mean over training.
    pub moving_mean: Slot,
    /// Variance over training.
    pub moving_var: Slot,
}

/// The two strided convolutions that make slices of frames, each behind a batch norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicerSlots {
    /// First strided convolution.
    pub conv1: MaxoutSlots,
    /// Its batch norm.
    pub bn1: BatchNormSlots,
    /// Second strided convolution.
    pub conv2: MaxoutSlots,
    /// Its batch norm.
    pub bn2: BatchNormSlots,
}

impl SlicerSlots {
    /// Lays out what is trained; [`SlicerSlots::add_statistics`] lays out the rest, which comes last in a layout.
    pub(super) fn new(layout: &mut Layout, filters: usize) -> Self {
        let conv1 = maxout(layout, "conv1", 1, filters);
        let bn1 = batch_norm(layout, "bn1", filters);
        let conv2 = maxout(layout, "conv2", filters, filters);
        Self { conv1, bn1, conv2, bn2: batch_norm(layout, "bn2", filters) }
    }

    /// Lays out the moving statistics.
    pub(super) fn add_statistics(&mut self, layout: &mut Layout) {
        for (name, slots) in [("bn1", &mut self.bn1), ("bn2", &mut self.bn2)] {
            slots.moving_mean = layout.statistic(format!("{name}.moving_mean"), &[slots.gamma.len], Init::Zeros);
            slots.moving_var = layout.statistic(format!("{name}.moving_var"), &[slots.gamma.len], Init::Ones);
        }
    }
}

/// A batch norm whose statistics have no place yet.
fn batch_norm(layout: &mut Layout, name: &str, n_channels: usize) -> BatchNormSlots {
    let NormSlots { gamma, beta } = norm(layout, name, n_channels);
    let nowhere = Slot { offset: 0, len: 0 };
    BatchNormSlots { gamma, beta, moving_mean: nowhere, moving_var: nowhere }
}

/// Each branch is a layer of its own: a fan-out counts the filters of one branch.
pub(super) fn maxout(layout: &mut Layout, name: &str, n_in: usize, n_out: usize) -> MaxoutSlots {
    let mut branch = |branch| dense(layout, &format!("{name}.{branch}"), &[3, 3, n_in, n_out]);
    MaxoutSlots { a: branch("a"), b: branch("b") }
}

/// The last two axes are inputs and outputs, those before them the taps of a convolution.
pub(super) fn dense(layout: &mut Layout, name: &str, shape: &[usize]) -> DenseSlots {
    let n_out = shape.last().copied().unwrap_or_default();
    let kernel = kernel(layout, &format!("{name}.kernel"), shape);
    DenseSlots { kernel, bias: layout.trainable(format!("{name}.bias"), &[n_out], Init::Zeros) }
}

/// The weights alone, of this whole name.
pub(super) fn kernel(layout: &mut Layout, name: &str, shape: &[usize]) -> Slot {
    let (&[.., n_in, n_out], n_taps) = (shape, shape[..shape.len() - 2].iter().product::<usize>()) else {
        unreachable!("a kernel has inputs and outputs");
    };
    let init = Init::FanAvg { fan_in: n_taps * n_in, fan_out: n_taps * n_out };
    layout.trainable(name, shape, init)
}

pub(super) fn norm(layout: &mut Layout, name: &str, width: usize) -> NormSlots {
    let gamma = layout.trainable(format!("{name}.gamma"), &[width], Init::Ones);
    NormSlots { gamma, beta: layout.trainable(format!("{name}.beta"), &[width], Init::Zeros) }
}
