//! Gradients in, better parameters out: Adam and the rate of learning.
//!
//! All buffers are flat and as long as the trainable part of a model.
//! Work is cut into fixed blocks, whatever the number of threads: the update of a number depends on that number alone,
//! and the norm of a gradient is a sum of block sums in their order.

mod schedule;

#[cfg(test)]
mod tests;

use rayon::prelude::*;
use srf_kernels::Element;

use crate::config::AdamConfig;

/// Numbers in a block of work.
const BLOCK: usize = 1 << 14;

/// Adam in TensorFlow's form: with gradient g, update k = 1, 2, ... and rate η,
/// m ← β1 m + (1 - β1) g, v ← β2 v + (1 - β2) g², θ ← θ - η sqrt(1 - β2^k) / (1 - β1^k) · m / (sqrt(v) + ε).
///
/// The state is plain data: saved and put back, training goes on with the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam<E> {
    /// Its constants.
    pub config: AdamConfig,
    /// Means of gradients (m).
    pub means: Vec<E>,
    /// Means of squared gradients (v).
    pub squares: Vec<E>,
    /// Updates done (k).
    pub n_updates: u64,
}

impl<E: Element> Adam<E> {
    /// The state before the first update of `n_trainable` numbers.
    pub fn new(config: AdamConfig, n_trainable: usize) -> Self {
        let zeros = vec![E::ZERO; n_trainable];
        Self { config, means: zeros.clone(), squares: zeros, n_updates: 0 }
    }

    /// Moves `values` against `gradient` at this rate of learning.
    ///
    /// # Shapes
    /// - `values`, `gradient`: as long as the state.
    #[track_caller]
    pub fn update(&mut self, values: &mut [E], gradient: &[E], rate: f64) {
        let n = self.means.len();
        assert!(values.len() == n && gradient.len() == n, "adam: state {n}, {}, {}", values.len(), gradient.len());
        self.n_updates += 1;
        let AdamConfig { beta1, beta2, epsilon } = self.config;
        let correction = (1.0 - power(beta2, self.n_updates)).sqrt() / (1.0 - power(beta1, self.n_updates));
        let constants = srf_kernels::Adam { beta1, beta2, epsilon, step: rate * correction };
        srf_kernels::adam(E::kernels(), constants, gradient, &mut self.means, &mut self.squares, values);
    }
}

/// `base` to the power of `exponent` by repeated squaring: the same bits on every machine, unlike the system's.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

/// The Euclidean norm of a whole gradient, summed in double precision.
pub fn global_norm<E: Element>(gradient: &[E]) -> f64 {
    let block_sum = |block: &[E]| block.iter().map(|g| g.to_f64() * g.to_f64()).sum::<f64>();
    let block_sums: Vec<f64> = gradient.par_chunks(BLOCK).map(block_sum).collect();
    block_sums.iter().sum::<f64>().sqrt()
}

/// Scales a gradient longer than `max_norm` down to it, and gives the norm it had.
///
/// A norm that is not finite is given as it is and nothing is scaled: what to do then is the caller's choice.
pub fn clip_norm<E: Element>(gradient: &mut [E], max_norm: f64) -> f64 {
    let norm = global_norm(gradient);
    if norm.is_finite() && norm > max_norm {
        let factor = E::from_f64(max_norm / norm);
        gradient.par_chunks_mut(BLOCK).for_each(|block| block.iter_mut().for_each(|g| *g *= factor));
    }
    norm
}
