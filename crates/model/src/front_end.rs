//! The front end of the networks of capsules: feature frames in, primary capsules out.
//!
//! The [`Slicer`] makes one slice of four frames; a dense layer makes a number for each capsule of it, [`Encapsulate`]
//! the capsules, and a layer norm ends it.
//!
//! # Shapes
//! - in: frames of `[features]` with [`FrontEnd::MARGIN`], out: ceil(n / 4) slices of `[height][depth]` for n frames

use srf_kernels::{Conv, Element};

use crate::config::SrfConfig;
use crate::frames::Frames;
use crate::layers::{Dense, Dropout, Encapsulate, LayerNorm};
use crate::network::Mode;
use crate::params::{Slot, SrfParams};
use crate::slicer::{Slicer, branch_gradients, branches};
use crate::srf::EPSILON;

/// The layers and their activations.
pub struct FrontEnd<E> {
    slicer: Slicer<E>,
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
    /// A number for each capsule.
    pub projected: Frames<E>,
    /// After squash.
    pub capsules: Frames<E>,
    /// After the layer norm and dropout.
    pub normed: Frames<E>,
}

struct Gradients<E> {
    slices: Frames<E>,
    projected: Frames<E>,
}

impl<E: Element> FrontEnd<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = Slicer::<E>::MARGIN;

    /// The front end of the network that `config`, which has been checked, describes.
    ///
    /// Its layers' dropout has the numbers 0 to 3.
    pub fn new(config: &SrfConfig) -> Self {
        let (height, depth, width) = (config.primary_height, config.primary_depth, config.flat_width());
        let rate = config.dropout.conv;
        let window = config.capsule_shape(0);
        Self {
            slicer: Slicer::new(config.features, config.filters, rate, [0, 0]),
            proj: Dense::new(width, height),
            encaps: Encapsulate::new(height, depth, rate, 2),
            ln_in: LayerNorm::new(height * depth, EPSILON),
            dropout: Dropout::new(config.dropout.input, 3),
            activations: Activations {
                projected: Frames::new(height, Encapsulate::<E>::MARGIN),
                capsules: Frames::new(height * depth, [0, 0]),
                normed: Frames::new(height * depth, [window.window_left, window.window_right]),
            },
            gradients: Gradients { slices: Frames::new(width, [0, 0]), projected: Frames::new(height, [0, 0]) },
        }
    }

    /// The primary capsules of the last forward pass.
    pub(crate) fn output(&self) -> &Frames<E> {
        &self.activations.normed
    }

    /// The slices of the last forward pass, `[frequency][channel]`.
    pub fn slices(&self) -> &Frames<E> {
        self.slicer.output()
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
        let slices = self.slicer.forward(&slots.slicer, values, mode, x);
        self.proj.forward(slots.proj.kernel.of(values), Some(slots.proj.bias.of(values)), slices, &mut a.projected);
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
        self.proj.backward(weights, self.slicer.output(), &g.projected, kernel, Some(bias), &mut g.slices);
        self.slicer.backward(&slots.slicer, values, mode, x, &mut g.slices, gradient);
    }
}

/// The convolution that gives `height` capsules their `depth`.
pub(crate) fn capsulation(height: usize, depth: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [1, 1], n_freq: height, pad_freq: [1, 1], n_channels: 1, n_filters: depth }
}

#[cfg(test)]
mod tests;
