//! What tests of gradients share: a loss and a gradient in, how far the gradient is from central differences out.

use crate::Element;

/// The largest distance between `gradient` and the central differences of `loss` at `x`, relative to the largest
/// gradient.
///
/// Differences over one and two steps are combined so that the third derivative cancels, which squash and norms of
/// small numbers make large. With steps of 1e-5 in double precision, what is left is rounding: about 1e-10 for a loss
/// near 10.
pub fn gradient_error(x: &[f64], gradient: &[f64], mut loss: impl FnMut(&[f64]) -> f64) -> f64 {
    const STEP: f64 = 1e-5;
    assert_eq!(x.len(), gradient.len(), "as many gradients as values");
    let scale = gradient.iter().fold(1e-3, |largest: f64, g| largest.max(g.abs()));
    let mut moved = x.to_vec();
    let mut worst = 0.0f64;
    for i in 0..x.len() {
        let mut difference = |step: f64| {
            moved[i] = x[i] + step;
            let above = loss(&moved);
            moved[i] = x[i] - step;
            let below = loss(&moved);
            moved[i] = x[i];
            above - below
        };
        let slope = (8.0 * difference(STEP) - difference(2.0 * STEP)) / (12.0 * STEP);
        let error = (slope - gradient[i]).abs() / scale;
        // A NaN counts as the worst error, where `max` would drop it.
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    worst
}

/// The sum of products: a loss whose gradient with respect to `x` is `weights`.
pub fn dot<E: Element>(x: &[E], weights: &[E]) -> E {
    x.iter().zip(weights).map(|(&x, &w)| x * w).sum()
}
