//! What tests of gradients share: a loss and a gradient in, how far the gradient is from central differences out.

use crate::Element;

/// The largest distance between `gradient` and the central differences of `loss` at `x`, relative to the largest
/// gradient.
///
/// With steps of 1e-5 in double precision, differences of a smooth loss near 1 are good to about 1e-9.
pub fn gradient_error(x: &[f64], gradient: &[f64], mut loss: impl FnMut(&[f64]) -> f64) -> f64 {
    const STEP: f64 = 1e-5;
    assert_eq!(x.len(), gradient.len(), "as many gradients as values");
    let scale = gradient.iter().fold(1e-3, |largest: f64, g| largest.max(g.abs()));
    let mut moved = x.to_vec();
    let mut worst = 0.0f64;
    for i in 0..x.len() {
        moved[i] = x[i] + STEP;
        let above = loss(&moved);
        moved[i] = x[i] - STEP;
        let below = loss(&moved);
        moved[i] = x[i];
        let error = ((above - below) / (2.0 * STEP) - gradient[i]).abs() / scale;
        // A NaN counts as the worst error, where `max` would drop it.
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    worst
}

/// The sum of products: a loss whose gradient with respect to `x` is `weights`.
pub fn dot<E: Element>(x: &[E], weights: &[E]) -> E {
    x.iter().zip(weights).map(|(&x, &w)| x * w).sum()
}
