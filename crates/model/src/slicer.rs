//! The strided convolutions in front of most networks: feature frames in, slices of four frames out.
//!
//! Two convolutions with maxout that each halve time and frequency, each behind a batch norm.
//!
//! # Shapes
//! - in: frames of `[features]` with [`Slicer::MARGIN`], out: ceil(n / 4) slices of `[frequency][filters]` for n frames

use srf_kernels::{Branch, Conv, Element};

use crate::frames::Frames;
use crate::layers::{BatchNorm, BranchGradient, ConvMaxout, NormParams, Statistics};
use crate::network::Mode;
use crate::params::{BatchNormSlots, MaxoutSlots, NormSlots, SlicerSlots, Slot};

/// The layers, their activations and their gradients.
pub struct Slicer<E> {
    conv1: ConvMaxout<E>,
    bn1: BatchNorm<E>,
    conv2: ConvMaxout<E>,
    bn2: BatchNorm<E>,
    convolved1: Frames<E>,
    normed1: Frames<E>,
    convolved2: Frames<E>,
    slices: Frames<E>,
    /// Of `normed1`.
    gradient: Frames<E>,
}

impl<E: Element> Slicer<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = [1, 1];

    /// Layers of `filters` that drop `rate` of each branch; `margin` is what the layer behind them needs around slices.
    ///
    /// Their dropout has the numbers 0 and 1.
    pub fn new(features: usize, filters: usize, rate: f64, margin: [usize; 2]) -> Self {
        let conv1 = strided(features, 1, filters);
        let conv2 = strided(conv1.n_freq_out(), filters, filters);
        Self {
            conv1: ConvMaxout::new(conv1, Self::MARGIN, rate, 0),
            bn1: BatchNorm::new(filters),
            conv2: ConvMaxout::new(conv2, Self::MARGIN, rate, 1),
            bn2: BatchNorm::new(filters),
            convolved1: Frames::new(conv1.width_out(), [0, 0]),
            normed1: Frames::new(conv1.width_out(), Self::MARGIN),
            convolved2: Frames::new(conv2.width_out(), [0, 0]),
            slices: Frames::new(conv2.width_out(), margin),
            gradient: Frames::new(conv1.width_out(), [0, 0]),
        }
    }

    /// The slices of the last forward pass.
    pub fn output(&self) -> &Frames<E> {
        &self.slices
    }

    /// The slices of the last forward pass, to be dropped from: the way back does not need them as they were.
    pub fn output_mut(&mut self) -> &mut Frames<E> {
        &mut self.slices
    }

    /// Computes the slices of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, slots: &SlicerSlots, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        self.conv1.forward(branches(slots.conv1, values), mode.draw, x, &mut self.convolved1);
        normalise(&mut self.bn1, slots.bn1, values, mode, &self.convolved1, &mut self.normed1);
        self.conv2.forward(branches(slots.conv2, values), mode.draw, &self.normed1, &mut self.convolved2);
        normalise(&mut self.bn2, slots.bn2, values, mode, &self.convolved2, &mut self.slices);
        &self.slices
    }

    /// Adds to the gradients of all parameters; uses up `grad`, that of the slices.
    ///
    /// `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(
        &mut self,
        slots: &SlicerSlots,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradient: &mut [E],
    ) {
        let norm = affine(slots.bn2);
        self.bn2.backward(norm.params(values), &self.convolved2, grad, norm.gradient(gradient));
        let of_branches = branch_gradients(slots.conv2, gradient);
        let (kernels, grad1) = (branches(slots.conv2, values), &mut self.gradient);
        self.conv2.backward(kernels, mode.draw, &self.normed1, grad, of_branches, Some(grad1));
        let norm = affine(slots.bn1);
        self.bn1.backward(norm.params(values), &self.convolved1, grad1, norm.gradient(gradient));
        let of_branches = branch_gradients(slots.conv1, gradient);
        self.conv1.backward(branches(slots.conv1, values), mode.draw, x, grad1, of_branches, None);
    }
}

/// A convolution that halves time and frequency; an even number of frequencies needs no padding before the first.
pub(crate) fn strided(n_freq: usize, n_channels: usize, n_filters: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [2, 2], n_freq, pad_freq: [n_freq % 2, 1], n_channels, n_filters }
}

fn normalise<E: Element>(
    layer: &mut BatchNorm<E>,
    slots: BatchNormSlots,
    values: &mut [E],
    mode: Mode<'_>,
    x: &Frames<E>,
    y: &mut Frames<E>,
) {
    let parts = [slots.gamma, slots.beta, slots.moving_mean, slots.moving_var];
    let [gamma, beta, moving_mean, moving_variance] = Slot::disjoint_mut(parts, values);
    let statistics = if mode.uses_batch_statistics {
        Statistics::Batch { moving_mean, moving_variance }
    } else {
        Statistics::Moving { mean: moving_mean, variance: moving_variance }
    };
    layer.forward(NormParams { gamma, beta }, statistics, x, y);
}

pub(crate) fn branches<E>(slots: MaxoutSlots, values: &[E]) -> [Branch<'_, E>; 2] {
    [slots.a, slots.b].map(|branch| Branch { kernel: branch.kernel.of(values), bias: Some(branch.bias.of(values)) })
}

pub(crate) fn branch_gradients<E>(slots: MaxoutSlots, gradient: &mut [E]) -> [BranchGradient<'_, E>; 2] {
    let parts = [slots.a.kernel, slots.a.bias, slots.b.kernel, slots.b.bias];
    let [kernel_a, bias_a, kernel_b, bias_b] = Slot::disjoint_mut(parts, gradient);
    [BranchGradient { kernel: kernel_a, bias: Some(bias_a) }, BranchGradient { kernel: kernel_b, bias: Some(bias_b) }]
}

fn affine(slots: BatchNormSlots) -> NormSlots {
    NormSlots { gamma: slots.gamma, beta: slots.beta }
}
