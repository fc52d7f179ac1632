//! The front end of the networks of capsules: feature frames in, primary capsules out.
//!
//! Two strided convolutions with maxout, each behind a batch norm, make one slice of four frames; a dense layer makes
//! a number for each capsule of it, [`Encapsulate`] the capsules, and a layer norm ends it.
//!
//! # Shapes
//! - in: frames of `[features]` with [`FrontEnd::MARGIN`], out: ceil(n / 4) slices of `[height][depth]` for n frames

use kernels::{Branch, Conv, Element};

use crate::config::SrfConfig;
use crate::frames::Frames;
use crate::layers::{
    BatchNorm, BranchGradient, ConvMaxout, Dense, Dropout, Encapsulate, LayerNorm, NormParams, Statistics,
};
use crate::params::{BatchNormSlots, MaxoutSlots, NormSlots, Slot, SrfParams};
use crate::srf::{EPSILON, Mode};

/// The layers and their activations.
pub struct FrontEnd<E> {
    conv1: ConvMaxout<E>,
    bn1: BatchNorm<E>,
    conv2: ConvMaxout<E>,
    bn2: BatchNorm<E>,
    proj: Dense<E>,
    encaps: Encapsulate<E>,
    ln_in: LayerNorm<E>,
    dropout: Dropout,
    activations: Activations<E>,
    /// Gradients, each the size of the activation it belongs to.
    gradients: Gradients<E>,
}

/// What the layers pass on.
pub struct Activations<E> {
    conv1: Frames<E>,
    norm1: Frames<E>,
    conv2: Frames<E>,
    /// After the second batch norm, `[frequency][channel]`.
    pub slices: Frames<E>,
    /// A number for each capsule.
    pub projected: Frames<E>,
    /// After squash.
    pub capsules: Frames<E>,
    /// After the layer norm and dropout.
    pub normed: Frames<E>,
}

struct Gradients<E> {
    norm1: Frames<E>,
    slices: Frames<E>,
    projected: Frames<E>,
}

impl<E: Element> FrontEnd<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = [1, 1];

    /// The front end of the network that `config`, which has been checked, describes.
    ///
    /// Its layers' dropout has the numbers 0 to 3.
    pub fn new(config: &SrfConfig) -> Self {
        let (filters, height, depth) = (config.filters, config.primary_height, config.primary_depth);
        let rate = config.dropout.conv;
        let window = config.capsule_shape(0);
        let conv1 = strided(config.features, 1, filters);
        let conv2 = strided(conv1.n_freq_out(), filters, filters);
        let width = conv2.width_out();
        Self {
            conv1: ConvMaxout::new(conv1, Self::MARGIN, rate, 0),
            bn1: BatchNorm::new(filters),
            conv2: ConvMaxout::new(conv2, Self::MARGIN, rate, 1),
            bn2: BatchNorm::new(filters),
            proj: Dense::new(width, height),
            encaps: Encapsulate::new(height, depth, rate, 2),
            ln_in: LayerNorm::new(height * depth, EPSILON),
            dropout: Dropout::new(config.dropout.input, 3),
            activations: Activations {
                conv1: Frames::new(conv1.width_out(), [0, 0]),
                norm1: Frames::new(conv1.width_out(), Self::MARGIN),
                conv2: Frames::new(width, [0, 0]),
                slices: Frames::new(width, [0, 0]),
                projected: Frames::new(height, Encapsulate::<E>::MARGIN),
                capsules: Frames::new(height * depth, [0, 0]),
                normed: Frames::new(height * depth, [window.window_left, window.window_right]),
            },
            gradients: Gradients {
                norm1: Frames::new(conv1.width_out(), [0, 0]),
                slices: Frames::new(width, [0, 0]),
                projected: Frames::new(height, [0, 0]),
            },
        }
    }

    /// The primary capsules of the last forward pass.
    pub(crate) fn output(&self) -> &Frames<E> {
        &self.activations.normed
    }

    /// What the layers computed in the last forward pass.
    pub fn activations(&self) -> &Activations<E> {
        &self.activations
    }

    /// The capsules before the squash, of the last forward pass.
    pub fn unsquashed(&self) -> &Frames<E> {
        self.encaps.unsquashed()
    }

    /// Computes the capsules of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, slots: &SrfParams, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        let a = &mut self.activations;
        self.conv1.forward(branches(slots.conv1, values), mode.draw, x, &mut a.conv1);
        normalise(&mut self.bn1, slots.bn1, values, mode, &a.conv1, &mut a.norm1);
        self.conv2.forward(branches(slots.conv2, values), mode.draw, &a.norm1, &mut a.conv2);
        normalise(&mut self.bn2, slots.bn2, values, mode, &a.conv2, &mut a.slices);
        self.proj.forward(slots.proj.kernel.of(values), Some(slots.proj.bias.of(values)), &a.slices, &mut a.projected);
        self.encaps.forward(branches(slots.encaps, values), mode.draw, &a.projected, &mut a.capsules);
        self.ln_in.forward(slots.ln_in.params(values), &a.capsules, &mut a.normed);
        self.dropout.apply(mode.draw, &mut a.normed);
        &a.normed
    }

    /// Adds to the gradients of all parameters; uses up `grad`, that of the capsules.
    ///
    /// `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(
        &mut self,
        slots: &SrfParams,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradient: &mut [E],
    ) {
        let (a, g) = (&self.activations, &mut self.gradients);
        self.dropout.apply(mode.draw, grad);
        self.ln_in.backward(slots.ln_in.params(values), &a.capsules, grad, slots.ln_in.gradient(gradient));
        let of_branches = branch_gradients(slots.encaps, gradient);
        let kernels = branches(slots.encaps, values);
        self.encaps.backward(kernels, mode.draw, &a.projected, grad, of_branches, &mut g.projected);
        let [kernel, bias] = Slot::disjoint_mut([slots.proj.kernel, slots.proj.bias], gradient);
        let weights = slots.proj.kernel.of(values);
        self.proj.backward(weights, &a.slices, &g.projected, kernel, Some(bias), &mut g.slices);
        let norm = affine(slots.bn2);
        self.bn2.backward(norm.params(values), &a.conv2, &mut g.slices, norm.gradient(gradient));
        let of_branches = branch_gradients(slots.conv2, gradient);
        let kernels = branches(slots.conv2, values);
        self.conv2.backward(kernels, mode.draw, &a.norm1, &g.slices, of_branches, Some(&mut g.norm1));
        let norm = affine(slots.bn1);
        self.bn1.backward(norm.params(values), &a.conv1, &mut g.norm1, norm.gradient(gradient));
        let of_branches = branch_gradients(slots.conv1, gradient);
        self.conv1.backward(branches(slots.conv1, values), mode.draw, x, &g.norm1, of_branches, None);
    }
}

/// A convolution that halves time and frequency; an even number of frequencies needs no padding before the first.
pub(crate) fn strided(n_freq: usize, n_channels: usize, n_filters: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [2, 2], n_freq, pad_freq: [n_freq % 2, 1], n_channels, n_filters }
}

/// The convolution that gives `height` capsules their `depth`.
pub(crate) fn capsulation(height: usize, depth: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [1, 1], n_freq: height, pad_freq: [1, 1], n_channels: 1, n_filters: depth }
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

fn branch_gradients<E>(slots: MaxoutSlots, gradient: &mut [E]) -> [BranchGradient<'_, E>; 2] {
    let parts = [slots.a.kernel, slots.a.bias, slots.b.kernel, slots.b.bias];
    let [kernel_a, bias_a, kernel_b, bias_b] = Slot::disjoint_mut(parts, gradient);
    [BranchGradient { kernel: kernel_a, bias: bias_a }, BranchGradient { kernel: kernel_b, bias: bias_b }]
}

fn affine(slots: BatchNormSlots) -> NormSlots {
    NormSlots { gamma: slots.gamma, beta: slots.beta }
}

#[cfg(test)]
mod tests;
