//! The optimizer: Adam, the learning rate, clipping.
//!
//! All buffers are flat and as long as the trainable part of a model.
//! Work is cut into fixed blocks, whatever the number of threads: the update of a number depends on that number alone,
//! and the norm of a gradient is a sum of block sums in their order.

#[cfg(test)]
mod tests;

use rayon::prelude::*;
use srf_kernels::Element;

use crate::config::{AdamConfig, KappaStep, ScheduleConfig};

/// Numbers in a block of work.
const BLOCK: usize = 1 << 14;

/// Adam in TensorFlow's form: with gradient g, update k = 1, 2, ... and rate η,
/// m ← β1 m + (1 - β1) g, v ← β2 v + (1 - β2) g², θ ← θ - η sqrt(1 - β2^k) / (1 - β1^k) · m / (sqrt(v) + ε).
///
/// The state is plain data: saved and restored, training continues with the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam<E> {
    /// Constants.
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

    /// Moves `values` against `gradient` at this learning rate.
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

/// Scales a gradient longer than `max_norm` down to it, and returns the norm it had.
///
/// A norm that is not finite is returned as it is and nothing is scaled: what to do then is up to the caller.
pub fn clip_norm<E: Element>(gradient: &mut [E], max_norm: f64) -> f64 {
    let norm = global_norm(gradient);
    if norm.is_finite() && norm > max_norm {
        let factor = E::from_f64(max_norm / norm);
        gradient.par_chunks_mut(BLOCK).for_each(|block| block.iter_mut().for_each(|g| *g *= factor));
    }
    norm
}

impl ScheduleConfig {
    /// The learning rate of update number `step` in epoch `epoch`, both counted from 1.
    #[track_caller]
    pub fn rate(&self, step: u64, epoch: usize) -> f64 {
        assert!(step >= 1 && epoch >= 1, "schedule: step {step}, epoch {epoch}, expected both from 1");
        match self {
            Self::Constant { rate } => *rate,
            Self::Warmup { steps, dimension, kappa } => {
                let (n, n_w, d) = (step as f64, *steps as f64, *dimension as f64);
                // n^-1/2 and n n_w^-3/2, by roots and divisions alone: the same bits on every machine.
                let rise_or_fall = f64::min(1.0 / n.sqrt(), n / (n_w * n_w.sqrt()));
                kappa_at(kappa, epoch) / d.sqrt() * rise_or_fall
            }
        }
    }
}

/// The factor of the last step that has begun; the first begins at epoch 1.
fn kappa_at(kappa: &[KappaStep], epoch: usize) -> f64 {
    let begun = kappa.iter().take_while(|step| step.from_epoch <= epoch);
    begun.last().expect("a checked schedule starts at epoch 1").value
}
