//! Layer normalisation of each row: y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, mean and variance over
//! the row.
//!
//! Saved for the backward pass: the input x, and mean and inverse standard deviation of each row.

use crate::Element;
use crate::sum::sum;

/// Normalises rows of `gamma.len()` values; `saved` gets mean and inverse standard deviation, row by row.
#[inline(always)]
pub(crate) fn forward<E: Element>(x: &[E], gamma: &[E], beta: &[E], epsilon: E, y: &mut [E], saved: &mut [E]) {
    let width = gamma.len();
    check(x.len(), y.len(), saved.len(), width);
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
pub(crate) fn backward<E: Element>(
    x: &[E],
    gamma: &[E],
    saved: &[E],
    grad: &mut [E],
    grad_gamma: &mut [E],
    grad_beta: &mut [E],
) {
    let width = gamma.len();
    check(x.len(), grad.len(), saved.len(), width);
    let n = E::from_f64(width as f64);
    let (grad_gamma, grad_beta) = (&mut grad_gamma[..width], &mut grad_beta[..width]);
    for ((x, grad), saved) in x.chunks_exact(width).zip(grad.chunks_exact_mut(width)).zip(saved.chunks_exact(2)) {
        let (mean, inverse) = (saved[0], saved[1]);
        for i in 0..width {
            grad_gamma[i] += grad[i] * ((x[i] - mean) * inverse);
            grad_beta[i] += grad[i];
            grad[i] *= gamma[i];
        }
        let of_mean = sum(grad, x, |g, _| g) / n;
        let of_scale = sum(grad, x, |g, x| g * ((x - mean) * inverse)) / n;
        for i in 0..width {
            grad[i] = (grad[i] - of_mean - (x[i] - mean) * inverse * of_scale) * inverse;
        }
    }
}

#[track_caller]
fn check(n_x: usize, n_y: usize, n_saved: usize, width: usize) {
    assert!(
        n_x == n_y && n_x.is_multiple_of(width) && n_saved == 2 * (n_x / width),
        "layer norm: {n_x} values, {n_y} results, {n_saved} saved at width {width}"
    );
}

#[cfg(test)]
mod tests;
