//! What tests of gradients share: seeded random values, and central differences to hold a gradient against.

use crate::Element;

/// A small generator of reproducible values.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// A number from -1 to 1.
    pub fn value(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as f64 / f64::from(1u32 << 31) - 1.0
    }

    /// `n` numbers from -1 to 1.
    pub fn values<E: Element>(&mut self, n: usize) -> Vec<E> {
        (0..n).map(|_| E::from_f64(self.value())).collect()
    }
}

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
