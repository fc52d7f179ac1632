//! Batch and layer normalization: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.

use rayon::prelude::*;
use srf_kernels::norm::{Factors, Moments, Sums, Used};
use srf_kernels::{Buffer, Element};

use super::{Backward, Forward, sum_in_order};
use crate::frames::{Frames, Span, split};
use crate::params::{Init, Scope, Slot};

/// How much of the moving averages stays at each step.
const MOMENTUM: f64 = 0.99;
/// Added to variances in batch norms.
const EPSILON: f64 = 1e-3;
/// Frames whose statistics one task of a batch norm sums.
const STATISTICS_FRAMES: usize = 64;

fn affine(scope: &mut Scope<'_>, width: usize) -> [Slot; 2] {
    [scope.trainable("gamma", &[width], Init::Ones), scope.trainable("beta", &[width], Init::Zeros)]
}

/// Layer norm: mean and variance over every row.
///
/// # Shapes
/// - in and out: frames of one row, or of `[..][width]`
///
/// Saves mean and inverse standard deviation of every row.
pub struct LayerNorm<E> {
    width: usize,
    epsilon: f64,
    gamma: Slot,
    beta: Slot,
    saved: Buffer<E>,
    gradients: Buffer<E>,
}

impl<E: Element> LayerNorm<E> {
    /// A layer for rows of `width` values, of which a frame may have several.
    pub fn new(mut scope: Scope<'_>, width: usize, epsilon: f64) -> Self {
        let [gamma, beta] = affine(&mut scope, width);
        Self { width, epsilon, gamma, beta, saved: Buffer::new(), gradients: Buffer::new() }
    }

    /// Scale and shift.
    pub fn params<'a>(&self, params: &'a [E]) -> [&'a [E]; 2] {
        [self.gamma.of(params), self.beta.of(params)]
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, pass: &Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        let fits = x.width() == y.width() && x.width().is_multiple_of(self.width);
        assert!(fits, "layer norm: frames of {} and {} in rows of {}", x.width(), y.width(), self.width);
        y.resize_like(x);
        let n_saved = 2 * (x.width() / self.width);
        self.saved.resize(n_saved * x.n_frames());
        let [gamma, beta] = self.params(pass.params);
        let epsilon = E::from_f64(self.epsilon);
        let blocks = y.blocks_mut(y.n_block());
        let saved = split(&mut self.saved, blocks.iter().map(|(span, _)| n_saved * span.n));
        blocks.into_par_iter().zip(saved).for_each(|((span, y), saved)| {
            (E::kernels().layer_norm_forward)(x.part(span), gamma, beta, epsilon, y, saved);
        });
    }

    /// Replaces the gradient of the output by that of the input `x` and adds to those of the parameters.
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d: &mut Frames<E>) {
        let width = self.width;
        let n_saved = 2 * (x.width() / width);
        let gamma = self.gamma.of(pass.params);
        let blocks = d.blocks_mut(d.n_block());
        self.gradients.resize(blocks.len() * 2 * width);
        let saved = split(&mut self.saved, blocks.iter().map(|(span, _)| n_saved * span.n));
        let sums = self.gradients.par_chunks_mut(2 * width).zip(saved);
        blocks.into_par_iter().zip(sums).for_each(|((span, d), (sums, saved))| {
            sums.fill(E::ZERO);
            let (d_gamma, d_beta) = sums.split_at_mut(width);
            (E::kernels().layer_norm_backward)(x.part(span), gamma, saved, d, d_gamma, d_beta);
        });
        sum_in_order(&mut self.gradients, 2 * width);
        if let Some(sums) = self.gradients.get(..2 * width) {
            let [d_gamma, d_beta] = pass.gradients([self.gamma, self.beta]);
            (E::kernels().accumulate)(&sums[..width], d_gamma);
            (E::kernels().accumulate)(&sums[width..], d_beta);
        }
    }
}

/// Batch norm by channel: mean and variance over the real frames and all frequencies of the batch in training, when
/// the moving averages follow them; in inference the moving averages themselves.
///
/// # Shapes
/// - in and out: frames of `[..][n_channels]`
///
/// Saves mean and inverse standard deviation.
pub struct BatchNorm<E> {
    gamma: Slot,
    beta: Slot,
    moving_mean: Slot,
    moving_variance: Slot,
    is_from_batch: bool,
    mean: Vec<E>,
    inverse: Vec<E>,
    moments: Moments,
}

impl<E: Element> BatchNorm<E> {
    /// A layer for rows of `n_channels`.
    pub fn new(mut scope: Scope<'_>, n_channels: usize) -> Self {
        let [gamma, beta] = affine(&mut scope, n_channels);
        Self {
            gamma,
            beta,
            moving_mean: scope.statistic("moving_mean", &[n_channels], Init::Zeros),
            moving_variance: scope.statistic("moving_var", &[n_channels], Init::Ones),
            is_from_batch: false,
            mean: vec![E::ZERO; n_channels],
            inverse: vec![E::ZERO; n_channels],
            moments: Moments::new(n_channels),
        }
    }

    /// Scale and shift that inference applies to every channel.
    pub fn scale_and_shift(&mut self, params: &[E], statistics: &[E]) -> [Vec<E>; 2] {
        self.recall(statistics);
        self.folded(params)
    }

    fn folded(&self, params: &[E]) -> [Vec<E>; 2] {
        let [gamma, beta] = [self.gamma.of(params), self.beta.of(params)];
        let scale: Vec<E> = gamma.iter().zip(&self.inverse).map(|(&gamma, &inverse)| gamma * inverse).collect();
        let shift = (0..scale.len()).map(|c| beta[c] - self.mean[c] * scale[c]).collect();
        [scale, shift]
    }

    /// Computes `y` from `x`.
    pub fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        self.is_from_batch = pass.mode.uses_batch_statistics;
        if self.is_from_batch {
            self.measure(x);
            self.follow(pass.statistics);
        } else {
            self.recall(pass.statistics);
        }
        let [scale, shift] = self.folded(pass.params);
        y.resize_like(x);
        y.each_block(|span, y| (E::kernels().affine)(x.part(span), &scale, &shift, y));
    }

    /// Takes mean and variance from the moving averages.
    fn recall(&mut self, statistics: &[E]) {
        self.mean.copy_from_slice(self.moving_mean.of(statistics));
        for (inverse, &variance) in self.inverse.iter_mut().zip(self.moving_variance.of(statistics)) {
            *inverse = E::ONE / (variance + E::from_f64(EPSILON)).sqrt();
        }
    }

    /// Takes mean and variance from the batch.
    fn measure(&mut self, x: &Frames<E>) {
        let n_channels = self.mean.len();
        let of_block = |moments: &mut Moments, span: Span| {
            moments.add_frames(E::kernels(), x.part(span), x.width(), &mut vec![E::ZERO; 2 * n_channels]);
        };
        self.moments = sum_over_batch(x, || Moments::new(n_channels), of_block, Moments::merge);
        for c in 0..n_channels {
            self.mean[c] = E::from_f64(self.moments.mean[c]);
            self.inverse[c] = E::from_f64(1.0 / (self.moments.variance(c) + EPSILON).sqrt());
        }
    }

    /// Moves the moving averages towards the batch; a batch without frames leaves them alone.
    fn follow(&self, statistics: &mut [E]) {
        if self.moments.n == 0.0 {
            return;
        }
        let follow = |old: &mut E, new: f64| {
            *old = E::from_f64(old.to_f64() * MOMENTUM + new * (1.0 - MOMENTUM));
        };
        let [mean, variance] = Slot::disjoint_mut([self.moving_mean, self.moving_variance], statistics);
        for c in 0..self.mean.len() {
            follow(&mut mean[c], self.moments.mean[c]);
            follow(&mut variance[c], self.moments.unbiased_variance(c));
        }
    }

    /// Replaces the gradient of the output by that of the input `x` and adds to those of the parameters.
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d: &mut Frames<E>) {
        let n_channels = self.mean.len();
        let used = Used { mean: &self.mean, inverse: &self.inverse };
        let of_block = |sums: &mut Sums, span: Span| {
            let scratch = &mut vec![E::ZERO; 2 * n_channels];
            sums.add_frames(E::kernels(), used, x.part(span), d.part(span), x.width(), scratch);
        };
        let sums = sum_over_batch(x, || Sums::new(n_channels), of_block, Sums::merge);
        let n = if self.is_from_batch { self.moments.n } else { f64::INFINITY };
        if x.n_utterances() == 0 {
            return;
        }
        let gamma = self.gamma.of(pass.params);
        let [d_gamma, d_beta] = Slot::disjoint_mut([self.gamma, self.beta], pass.gradient);
        let [mut scale, mut distance, mut constant] = [const { Vec::new() }; 3];
        for c in 0..n_channels {
            d_beta[c] += E::from_f64(sums.gradient[c]);
            d_gamma[c] += E::from_f64(sums.product[c]);
            scale.push(gamma[c] * self.inverse[c]);
            distance.push(-scale[c] * self.inverse[c] * E::from_f64(sums.product[c] / n));
            constant.push(-scale[c] * E::from_f64(sums.gradient[c] / n));
        }
        let factors = Factors { gradient: &scale, distance: &distance, constant: &constant };
        let mean = &self.mean;
        d.each_block(|span, d| (E::kernels().batch_norm_backward)(x.part(span), mean, factors, d));
    }
}

/// Sums a statistic over all frames of a batch: the one place where utterances meet, so that the sum can later cross
/// machines too.
///
/// Blocks of time are fixed and merged in their order, whatever the number of threads.
fn sum_over_batch<E: Element, T: Send>(
    x: &Frames<E>,
    zero: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, Span) + Sync,
    merge: impl Fn(&mut T, &T),
) -> T {
    let of_block = |span: Span| {
        let mut part = zero();
        add(&mut part, span);
        part
    };
    let parts: Vec<T> = x.spans(STATISTICS_FRAMES).into_par_iter().map(of_block).collect();
    let mut total = zero();
    parts.iter().for_each(|part| merge(&mut total, part));
    total
}
