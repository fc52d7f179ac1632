//! Batch and layer normalization: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.
//!
//! Layer norm takes mean and variance over each row; it saves them for the backward pass, which also needs x.
//! Batch norm takes them by channel. In training they are those of the batch's real frames: each utterance gives its
//! [`Moments`] and gradient [`Sums`], merged in the order of the utterances, so threads do not matter.
//! In inference they are the moving averages, and constants in the backward pass.

use crate::element::{accumulate, sum};
use crate::{Element, Kernels};

/// Count, mean and squared deviations from it, by channel, in double precision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Rows counted.
    pub n: f64,
    /// Means.
    pub mean: Vec<f64>,
    /// Sums of squared deviations from the mean.
    pub deviation: Vec<f64>,
}

impl Moments {
    /// Of no rows.
    pub fn new(n_channels: usize) -> Self {
        Self { n: 0.0, mean: vec![0.0; n_channels], deviation: vec![0.0; n_channels] }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.n = 0.0;
        self.mean.fill(0.0);
        self.deviation.fill(0.0);
    }

    /// Counts `frames` of `width` values in, each frame being whole rows of channels.
    ///
    /// `scratch` holds twice the channels.
    pub fn add_frames<E: Element>(&mut self, kernels: &Kernels<E>, frames: &[E], width: usize, scratch: &mut [E]) {
        let n_channels = self.mean.len();
        let (mean, deviation) = scratch.split_at_mut(n_channels);
        for frame in frames.chunks_exact(width) {
            (kernels.row_moments)(frame, mean, deviation);
            self.add((width / n_channels) as f64, |c| (mean[c].to_f64(), deviation[c].to_f64()));
        }
    }

    /// Counts the rows of `other` in.
    pub fn merge(&mut self, other: &Self) {
        self.add(other.n, |c| (other.mean[c], other.deviation[c]));
    }

    /// Two groups have a common mean, and deviations from it that grow by the distance of their means.
    fn add(&mut self, n: f64, moments: impl Fn(usize) -> (f64, f64)) {
        if n == 0.0 {
            return;
        }
        let total = self.n + n;
        for (c, (mean, deviation)) in self.mean.iter_mut().zip(&mut self.deviation).enumerate() {
            let (other_mean, other_deviation) = moments(c);
            let distance = other_mean - *mean;
            *mean += distance * n / total;
            *deviation += other_deviation + distance * distance * self.n * n / total;
        }
        self.n = total;
    }

    /// The variance that normalises (divided by the count).
    pub fn variance(&self, channel: usize) -> f64 {
        if self.n == 0.0 { 0.0 } else { self.deviation[channel] / self.n }
    }

    /// The variance that the moving average follows (divided by the count less one).
    pub fn unbiased_variance(&self, channel: usize) -> f64 {
        self.deviation[channel] / (self.n - 1.0).max(1.0)
    }
}

/// Sums over rows that the gradient needs, by channel, in double precision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of dy: the gradient of beta.
    pub gradient: Vec<f64>,
    /// Of dy times the normalised input: the gradient of gamma.
    pub product: Vec<f64>,
}

impl Sums {
    /// Over no rows.
    pub fn new(n_channels: usize) -> Self {
        Self { gradient: vec![0.0; n_channels], product: vec![0.0; n_channels] }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.gradient.fill(0.0);
        self.product.fill(0.0);
    }

    /// Adds the rows of an utterance; `scratch` holds twice the channels.
    pub fn add_frames<E: Element>(
        &mut self,
        kernels: &Kernels<E>,
        used: Used<'_, E>,
        x: &[E],
        d_y: &[E],
        width: usize,
        scratch: &mut [E],
    ) {
        let (gradient, product) = scratch.split_at_mut(self.gradient.len());
        for (x, d_y) in x.chunks_exact(width).zip(d_y.chunks_exact(width)) {
            (kernels.gradient_moments)(x, d_y, used.mean, gradient, product);
            for c in 0..gradient.len() {
                self.gradient[c] += gradient[c].to_f64();
                self.product[c] += (product[c] * used.inverse[c]).to_f64();
            }
        }
    }

    /// Adds the sums of other rows.
    pub fn merge(&mut self, other: &Self) {
        accumulate(&other.gradient, &mut self.gradient);
        accumulate(&other.product, &mut self.product);
    }
}

/// The mean and 1 / sqrt(variance + epsilon) that the forward pass used.
#[derive(Clone, Copy, Debug)]
pub struct Used<'a, E> {
    /// Mean by channel.
    pub mean: &'a [E],
    /// Inverse standard deviation by channel.
    pub inverse: &'a [E],
}

/// Means and squared deviations of rows of channels.
#[inline(always)]
pub(crate) fn row_moments<E: Element>(rows: &[E], mean: &mut [E], deviation: &mut [E]) {
    let n_channels = mean.len();
    let deviation = &mut deviation[..n_channels];
    mean.fill(E::ZERO);
    deviation.fill(E::ZERO);
    for row in rows.chunks_exact(n_channels) {
        for (sum, &x) in mean.iter_mut().zip(row) {
            *sum += x;
        }
    }
    let n = E::from_f64((rows.len() / n_channels) as f64);
    for sum in mean.iter_mut() {
        *sum = *sum / n;
    }
    for row in rows.chunks_exact(n_channels) {
        for ((sum, &mean), &x) in deviation.iter_mut().zip(mean.iter()).zip(row) {
            *sum += (x - mean) * (x - mean);
        }
    }
}

/// Sums of dy and of dy * (x - mean) over rows of channels.
#[inline(always)]
pub(crate) fn gradient_moments<E: Element>(x: &[E], d_y: &[E], mean: &[E], gradient: &mut [E], product: &mut [E]) {
    let n_channels = mean.len();
    let (gradient, product) = (&mut gradient[..n_channels], &mut product[..n_channels]);
    gradient.fill(E::ZERO);
    product.fill(E::ZERO);
    for (x, d_y) in x.chunks_exact(n_channels).zip(d_y.chunks_exact(n_channels)) {
        for c in 0..n_channels {
            gradient[c] += d_y[c];
            product[c] += d_y[c] * (x[c] - mean[c]);
        }
    }
}

/// y = x * scale + shift, by channel.
#[inline(always)]
pub(crate) fn affine<E: Element>(x: &[E], scale: &[E], shift: &[E], y: &mut [E]) {
    let n_channels = scale.len();
    let shift = &shift[..n_channels];
    for (x, y) in x.chunks_exact(n_channels).zip(y.chunks_exact_mut(n_channels)) {
        for c in 0..n_channels {
            y[c] = x[c] * scale[c] + shift[c];
        }
    }
}

/// The gradient of the input is a sum of three terms by channel: `factors.0` * dy + `factors.1` * (x - mean) +
/// `factors.2`; replaces dy by it.
#[derive(Clone, Copy, Debug)]
pub struct Factors<'a, E> {
    /// Of dy.
    pub gradient: &'a [E],
    /// Of x - mean.
    pub distance: &'a [E],
    /// Added.
    pub constant: &'a [E],
}

/// Replaces dy by dx, see [`Factors`].
#[inline(always)]
pub(crate) fn batch_norm_backward<E: Element>(x: &[E], mean: &[E], factors: Factors<'_, E>, d_y: &mut [E]) {
    let n_channels = mean.len();
    let [gradient, distance, constant] =
        [factors.gradient, factors.distance, factors.constant].map(|factor| &factor[..n_channels]);
    for (x, d_y) in x.chunks_exact(n_channels).zip(d_y.chunks_exact_mut(n_channels)) {
        for c in 0..n_channels {
            d_y[c] = d_y[c] * gradient[c] + ((x[c] - mean[c]) * distance[c] + constant[c]);
        }
    }
}

/// Normalises rows of `gamma.len()` values; `saved` gets mean and inverse standard deviation, row by row.
#[inline(always)]
pub(crate) fn layer_norm_forward<E: Element>(
    x: &[E],
    gamma: &[E],
    beta: &[E],
    epsilon: E,
    y: &mut [E],
    saved: &mut [E],
) {
    let width = gamma.len();
    check_layer_norm(x.len(), y.len(), saved.len(), width);
    let n = E::from_f64(width as f64);
    let beta = &beta[..width];
    for ((x, y), saved) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(saved.chunks_exact_mut(2)) {
        let mean = sum(x, x, |x, _| x) / n;
        let variance = sum(x, x, |x, _| (x - mean) * (x - mean)) / n;
        let inverse = E::ONE / (variance + epsilon).sqrt();
        for i in 0..width {
            y[i] = (x[i] - mean) * inverse * gamma[i] + beta[i];
        }
        saved[0] = mean;
        saved[1] = inverse;
    }
}

/// Replaces dy by dx and adds to the gradients of gamma and beta.
#[inline(always)]
pub(crate) fn layer_norm_backward<E: Element>(
    x: &[E],
    gamma: &[E],
    saved: &[E],
    d_y: &mut [E],
    d_gamma: &mut [E],
    d_beta: &mut [E],
) {
    let width = gamma.len();
    check_layer_norm(x.len(), d_y.len(), saved.len(), width);
    let n = E::from_f64(width as f64);
    let (d_gamma, d_beta) = (&mut d_gamma[..width], &mut d_beta[..width]);
    for ((x, d_y), saved) in x.chunks_exact(width).zip(d_y.chunks_exact_mut(width)).zip(saved.chunks_exact(2)) {
        let (mean, inverse) = (saved[0], saved[1]);
        for i in 0..width {
            d_gamma[i] += d_y[i] * ((x[i] - mean) * inverse);
            d_beta[i] += d_y[i];
            d_y[i] *= gamma[i];
        }
        let of_mean = sum(d_y, x, |g, _| g) / n;
        let of_scale = sum(d_y, x, |g, x| g * ((x - mean) * inverse)) / n;
        for i in 0..width {
            d_y[i] = (d_y[i] - of_mean - (x[i] - mean) * inverse * of_scale) * inverse;
        }
    }
}

#[track_caller]
fn check_layer_norm(n_x: usize, n_y: usize, n_saved: usize, width: usize) {
    assert!(
        n_x == n_y && n_x.is_multiple_of(width) && n_saved == 2 * (n_x / width),
        "layer norm: {n_x} values, {n_y} results, {n_saved} saved at width {width}"
    );
}

#[cfg(test)]
mod tests;
