//! Gradient checks: how far a gradient is from the central differences of its loss.

use crate::Element;

/// Steps of the differences: over the larger ones there is less rounding, over the smaller ones fewer kinks.
const STEPS: [f64; 4] = [1e-4, 1e-5, 1e-6, 1e-7];

/// An error of the size of rounding: other steps would not show more.
const ROUNDING: f64 = 1e-9;

/// The largest distance between `gradient` and the central differences of `loss` at `x`, relative to the largest
/// gradient.
///
/// Every value is judged by the step that agrees best. A maximum whose sides change places within a step spoils that
/// step's difference, rounding (about 1e-15 of the loss, divided by the step) spoils the smallest; a wrong gradient
/// agrees with none.
pub fn gradient_error(x: &[f64], gradient: &[f64], mut loss: impl FnMut(&[f64]) -> f64) -> f64 {
    assert_eq!(x.len(), gradient.len(), "as many gradients as values");
    let scale = gradient.iter().fold(1e-3, |largest: f64, g| largest.max(g.abs()));
    let mut moved = x.to_vec();
    let mut worst = 0.0f64;
    for i in 0..x.len() {
        let mut error = f64::INFINITY;
        for step in STEPS {
            let slope = slope(&mut moved, i, step, &mut loss);
            // `min` drops a NaN, which so counts as infinitely wrong.
            error = error.min((slope - gradient[i]).abs() / scale);
            if error < ROUNDING {
                break;
            }
        }
        worst = worst.max(error);
    }
    worst
}

/// The slope of `loss` along value `i` of `x`, which is left as it was.
///
/// Differences over one and two steps are combined so that the third derivative cancels, which squash and norms of
/// small numbers make large.
fn slope(x: &mut [f64], i: usize, step: f64, loss: &mut impl FnMut(&[f64]) -> f64) -> f64 {
    let at = x[i];
    let mut difference = |step: f64| {
        x[i] = at + step;
        let above = loss(x);
        x[i] = at - step;
        let below = loss(x);
        x[i] = at;
        above - below
    };
    (8.0 * difference(step) - difference(2.0 * step)) / (12.0 * step)
}

/// The sum of products: a loss whose gradient with respect to `x` is `weights`.
pub fn dot<E: Element>(x: &[E], weights: &[E]) -> E {
    x.iter().zip(weights).map(|(&x, &w)| x * w).sum()
}
