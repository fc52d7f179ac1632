//! Batch normalisation by channel: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.
//!
//! In training, mean and variance are over the real frames and all frequencies of the batch, and the moving averages
//! follow them; in inference they are the moving averages.
//!
//! # Shapes
//! - in and out: frames of `[..][n_channels]`

use rayon::prelude::*;
use srf_kernels::batch_norm::{Factors, Moments, Sums, Used};
use srf_kernels::{Element, Kernels};

use super::{NormGradient, NormParams};
use crate::frames::Frames;

/// How much of the moving averages stays at each step.
const MOMENTUM: f64 = 0.99;
const EPSILON: f64 = 1e-3;

/// Where mean and variance come from.
#[derive(Debug)]
pub enum Statistics<'a, E> {
    /// The batch; the moving averages follow.
    Batch {
        /// Moving average of the means.
        moving_mean: &'a mut [E],
        /// Moving average of the variances.
        moving_variance: &'a mut [E],
    },
    /// The moving averages.
    Moving {
        /// Means.
        mean: &'a [E],
        /// Variances.
        variance: &'a [E],
    },
}

/// The layer; saves mean and inverse standard deviation.
pub struct BatchNorm<E> {
    is_from_batch: bool,
    mean: Vec<E>,
    inverse: Vec<E>,
    scale: Vec<E>,
    shift: Vec<E>,
    constant: Vec<E>,
    moments: Vec<Moments>,
    total: Moments,
    sums: Vec<Sums>,
}

impl<E: Element> BatchNorm<E> {
    /// A layer for rows of `n_channels`.
    pub fn new(n_channels: usize) -> Self {
        let zeros = vec![E::ZERO; n_channels];
        Self {
            is_from_batch: false,
            mean: zeros.clone(),
            inverse: zeros.clone(),
            scale: zeros.clone(),
            shift: zeros.clone(),
            constant: zeros,
            moments: Vec::new(),
            total: Moments::new(n_channels),
            sums: Vec::new(),
        }
    }

    fn n_channels(&self) -> usize {
        self.mean.len()
    }

    /// Computes `y` from `x`.
    pub fn forward(
        &mut self,
        params: NormParams<'_, E>,
        statistics: Statistics<'_, E>,
        x: &Frames<E>,
        y: &mut Frames<E>,
    ) {
        match statistics {
            Statistics::Batch { moving_mean, moving_variance } => {
                self.measure(x);
                self.follow(moving_mean, moving_variance);
            }
            Statistics::Moving { mean, variance } => {
                self.is_from_batch = false;
                self.mean.copy_from_slice(mean);
                for (inverse, &variance) in self.inverse.iter_mut().zip(variance) {
                    *inverse = E::ONE / (variance + E::from_f64(EPSILON)).sqrt();
                }
            }
        }
        for c in 0..self.n_channels() {
            self.scale[c] = params.gamma[c] * self.inverse[c];
            self.shift[c] = params.beta[c] - self.mean[c] * self.scale[c];
        }
        y.resize_for(x.lengths().iter().copied());
        let (scale, shift) = (&self.scale, &self.shift);
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            (E::kernels().affine)(x.real(utterance), scale, shift, y);
        });
    }

    /// Mean and variance of the batch.
    fn measure(&mut self, x: &Frames<E>) {
        self.is_from_batch = true;
        let n_channels = self.n_channels();
        self.moments.resize_with(x.n_utterances(), || Moments::new(n_channels));
        self.moments.par_iter_mut().enumerate().for_each(|(utterance, moments)| {
            moments.clear();
            moments.add_frames(E::kernels(), x.real(utterance), x.width(), &mut vec![E::ZERO; 2 * n_channels]);
        });
        self.total.clear();
        for moments in &self.moments {
            self.total.merge(moments);
        }
        for c in 0..n_channels {
            self.mean[c] = E::from_f64(self.total.mean[c]);
            self.inverse[c] = E::from_f64(1.0 / (self.total.variance(c) + EPSILON).sqrt());
        }
    }

    /// Moves the moving averages towards the batch; a batch without frames has nothing to say.
    fn follow(&self, moving_mean: &mut [E], moving_variance: &mut [E]) {
        if self.total.n == 0.0 {
            return;
        }
        let follow = |old: &mut E, new: f64| {
            *old = E::from_f64(old.to_f64() * MOMENTUM + new * (1.0 - MOMENTUM));
        };
        for c in 0..self.n_channels() {
            follow(&mut moving_mean[c], self.total.mean[c]);
            follow(&mut moving_variance[c], self.total.unbiased_variance(c));
        }
    }

    /// Replaces the gradient of the output by that of the input `x` and adds to those of the parameters.
    pub fn backward(
        &mut self,
        params: NormParams<'_, E>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradient: NormGradient<'_, E>,
    ) {
        self.sum_gradients(x, grad);
        let Some(sums) = self.sums.first() else { return };
        for c in 0..self.mean.len() {
            gradient.beta[c] += E::from_f64(sums.gradient[c]);
            gradient.gamma[c] += E::from_f64(sums.product[c]);
            let n = if self.is_from_batch { self.total.n } else { f64::INFINITY };
            self.scale[c] = params.gamma[c] * self.inverse[c];
            self.shift[c] = -self.scale[c] * self.inverse[c] * E::from_f64(sums.product[c] / n);
            self.constant[c] = -self.scale[c] * E::from_f64(sums.gradient[c] / n);
        }
        let factors = Factors { gradient: &self.scale, distance: &self.shift, constant: &self.constant };
        let mean = &self.mean;
        grad.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, grad)| {
            (E::kernels().batch_norm_backward)(x.real(utterance), mean, factors, grad);
        });
    }

    /// Leaves the sums over all utterances in the first of `sums`.
    fn sum_gradients(&mut self, x: &Frames<E>, grad: &Frames<E>) {
        let n_channels = self.n_channels();
        self.sums.resize_with(x.n_utterances(), || Sums::new(n_channels));
        let kernels: &Kernels<E> = E::kernels();
        let used = Used { mean: &self.mean, inverse: &self.inverse };
        self.sums.par_iter_mut().enumerate().for_each(|(utterance, sums)| {
            sums.clear();
            let scratch = &mut vec![E::ZERO; 2 * n_channels];
            sums.add_frames(kernels, used, x.real(utterance), grad.real(utterance), x.width(), scratch);
        });
        if let Some((first, rest)) = self.sums.split_first_mut() {
            for sums in rest {
                first.merge(sums);
            }
        }
    }
}
