//! Batch normalisation over rows of channels: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.
//!
//! In training, mean and variance are those of the batch's real frames; each utterance gives its own [`Moments`] and
//! gradient [`Sums`], merged in the order of the utterances, so threads do not matter.
//! In inference they are the moving averages, and constants to the backward pass.
//! Saved for the backward pass: the input x, and the mean and variance used.

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
        grad_y: &[E],
        width: usize,
        scratch: &mut [E],
    ) {
        let (gradient, product) = scratch.split_at_mut(self.gradient.len());
        for (x, grad_y) in x.chunks_exact(width).zip(grad_y.chunks_exact(width)) {
            (kernels.gradient_moments)(x, grad_y, used.mean, gradient, product);
            for c in 0..gradient.len() {
                self.gradient[c] += gradient[c].to_f64();
                self.product[c] += (product[c] * used.inverse[c]).to_f64();
            }
        }
    }

    /// Adds the sums of other rows.
    pub fn merge(&mut self, other: &Self) {
        crate::sum::accumulate(&other.gradient, &mut self.gradient);
        crate::sum::accumulate(&other.product, &mut self.product);
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
pub(crate) fn gradient_moments<E: Element>(x: &[E], grad_y: &[E], mean: &[E], gradient: &mut [E], product: &mut [E]) {
    let n_channels = mean.len();
    let (gradient, product) = (&mut gradient[..n_channels], &mut product[..n_channels]);
    gradient.fill(E::ZERO);
    product.fill(E::ZERO);
    for (x, grad_y) in x.chunks_exact(n_channels).zip(grad_y.chunks_exact(n_channels)) {
        for c in 0..n_channels {
            gradient[c] += grad_y[c];
            product[c] += grad_y[c] * (x[c] - mean[c]);
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
pub(crate) fn backward<E: Element>(x: &[E], mean: &[E], factors: Factors<'_, E>, grad: &mut [E]) {
    let n_channels = mean.len();
    let [gradient, distance, constant] =
        [factors.gradient, factors.distance, factors.constant].map(|factor| &factor[..n_channels]);
    for (x, grad) in x.chunks_exact(n_channels).zip(grad.chunks_exact_mut(n_channels)) {
        for c in 0..n_channels {
            grad[c] = grad[c] * gradient[c] + ((x[c] - mean[c]) * distance[c] + constant[c]);
        }
    }
}

#[cfg(test)]
mod tests;
