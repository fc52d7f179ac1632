//! Lengths of capsules: sqrt(sum of squares + epsilon) over the depth.
//!
//! # Shapes
//! - in: slices of `[height][depth]`, out: slices of `[height]`

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::Frames;

/// The layer; saves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    depth: usize,
}

impl Lengths {
    /// A layer for capsules of `depth` values.
    pub fn new(depth: usize) -> Self {
        Self { depth }
    }

    /// Computes the lengths `y` of the capsules `x`.
    pub fn forward<E: Element>(self, x: &Frames<E>, y: &mut Frames<E>) {
        y.resize_for(x.lengths().iter().copied());
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            (E::kernels().length_forward)(x.real(utterance), self.depth, y);
        });
    }

    /// Writes the gradient of the capsules `x` from that of their lengths `y`.
    pub fn backward<E: Element>(self, x: &Frames<E>, y: &Frames<E>, grad_y: &Frames<E>, grad_x: &mut Frames<E>) {
        grad_x.resize_for(x.lengths().iter().copied());
        grad_x.each_real_mut().into_par_iter().enumerate().for_each(|(n, grad_x)| {
            (E::kernels().length_backward)(x.real(n), self.depth, y.real(n), grad_y.real(n), grad_x);
        });
    }
}
