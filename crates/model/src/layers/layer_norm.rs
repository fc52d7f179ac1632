//! Layer normalisation of every row: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, mean and variance
//! over the row.
//!
//! # Shapes
//! - in and out: frames of one row, or of `[..][width]`

use rayon::prelude::*;
use srf_kernels::{Buffer, Element};

use super::{NormGradient, NormParams, sum_in_order};
use crate::frames::{Frames, split};

/// The layer; saves mean and inverse standard deviation of every row.
pub struct LayerNorm<E> {
    width: usize,
    epsilon: f64,
    saved: Buffer<E>,
    gradients: Buffer<E>,
}

impl<E: Element> LayerNorm<E> {
    /// A layer for rows of `width` values, of which a frame may have several.
    pub fn new(width: usize, epsilon: f64) -> Self {
        Self { width, epsilon, saved: Buffer::new(), gradients: Buffer::new() }
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, params: NormParams<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        let fits = x.width() == y.width() && x.width().is_multiple_of(self.width);
        assert!(fits, "layer norm: frames of {} and {} in rows of {}", x.width(), y.width(), self.width);
        y.resize_for(x.lengths().iter().copied());
        let n_saved = 2 * (x.width() / self.width);
        self.saved.resize(n_saved * x.n_frames());
        let saved = split(&mut self.saved, x.lengths().iter().map(|n| n_saved * n));
        let epsilon = E::from_f64(self.epsilon);
        y.each_real_mut().into_par_iter().zip(saved).enumerate().for_each(|(utterance, (y, saved))| {
            (E::kernels().layer_norm_forward)(x.real(utterance), params.gamma, params.beta, epsilon, y, saved);
        });
    }

    /// Replaces the gradient of the output by that of the input `x` and adds to those of the parameters.
    pub fn backward(
        &mut self,
        params: NormParams<'_, E>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradient: NormGradient<'_, E>,
    ) {
        let width = self.width;
        self.gradients.resize(x.n_utterances() * 2 * width);
        let n_saved = 2 * (x.width() / width);
        let saved = split(&mut self.saved, x.lengths().iter().map(|n| n_saved * n));
        let sums = self.gradients.par_chunks_mut(2 * width).zip(saved);
        grad.each_real_mut().into_par_iter().zip(sums).enumerate().for_each(|(utterance, (grad, (sums, saved)))| {
            sums.fill(E::ZERO);
            let (gamma, beta) = sums.split_at_mut(width);
            (E::kernels().layer_norm_backward)(x.real(utterance), params.gamma, saved, grad, gamma, beta);
        });
        sum_in_order(&mut self.gradients, 2 * width);
        if let Some(sums) = self.gradients.get(..2 * width) {
            (E::kernels().accumulate)(&sums[..width], gradient.gamma);
            (E::kernels().accumulate)(&sums[width..], gradient.beta);
        }
    }
}
