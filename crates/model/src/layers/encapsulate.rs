//! Encapsulation: a number for each capsule in, primary capsules out.
//!
//! A 3x3 convolution over time and height with as many filters as a capsule is deep, in two branches with dropout and
//! maximum, then squash over the depth.
//!
//! # Shapes
//! - in: frames of `[height]` with one zero frame before and after, out: frames of `[height][depth]`

use rayon::prelude::*;
use srf_kernels::{Branch, Element};

use super::{BranchGradient, ConvMaxout, Draw};
use crate::frames::Frames;
use crate::front_end::capsulation;

/// The layer; saves the capsules before the squash.
pub struct Encapsulate<E> {
    depth: usize,
    conv: ConvMaxout<E>,
    long: Frames<E>,
}

impl<E: Element> Encapsulate<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = [1, 1];

    /// A layer for `height` capsules of `depth`; dropout as in [`ConvMaxout::new`].
    pub fn new(height: usize, depth: usize, rate: f64, number: u32) -> Self {
        let conv = capsulation(height, depth);
        Self {
            depth,
            conv: ConvMaxout::new(conv, Self::MARGIN, rate, number),
            long: Frames::new(height * depth, [0, 0]),
        }
    }

    /// The capsules before the squash, of the last forward pass.
    pub fn unsquashed(&self) -> &Frames<E> {
        &self.long
    }

    /// Computes the capsules `y` from `x`; `draw` is none in inference.
    #[track_caller]
    pub fn forward(&mut self, branches: [Branch<'_, E>; 2], draw: Option<Draw<'_>>, x: &Frames<E>, y: &mut Frames<E>) {
        self.conv.forward(branches, draw, x, &mut self.long);
        y.resize_for(x.lengths().iter().copied());
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            (E::kernels().squash_forward)(self.long.real(utterance), self.depth, y);
        });
    }

    /// Adds to the gradients of the parameters and writes that of the input; uses up `grad`, that of the capsules.
    ///
    /// `draw` and `x` are those of the forward pass.
    #[track_caller]
    pub fn backward(
        &mut self,
        branches: [Branch<'_, E>; 2],
        draw: Option<Draw<'_>>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradients: [BranchGradient<'_, E>; 2],
        grad_x: &mut Frames<E>,
    ) {
        grad.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, grad)| {
            (E::kernels().squash_backward)(self.long.real(utterance), self.depth, grad);
        });
        self.conv.backward(branches, draw, x, grad, gradients, Some(grad_x));
    }
}
