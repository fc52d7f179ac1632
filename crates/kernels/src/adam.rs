//! One step of Adam on slices: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, x = x - step m / (sqrt(v) + epsilon).

use rayon::prelude::*;

use crate::{Element, Kernels};

/// Values that one task updates; fixed, though nothing but speed depends on it.
const CHUNK: usize = 1 << 14;

/// The constants of a step.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root.
    pub epsilon: f64,
    /// The learning rate, corrected for the start: rate * sqrt(1 - beta2^k) / (1 - beta1^k) at the k-th step.
    pub step: f64,
}

/// Updates parameters `x` and both means by the gradient, on all threads.
#[track_caller]
pub fn adam<E: Element>(kernels: &Kernels<E>, adam: Adam, gradient: &[E], m: &mut [E], v: &mut [E], x: &mut [E]) {
    let n = x.len();
    assert!(gradient.len() == n && m.len() == n && v.len() == n, "adam: {n} parameters, {} gradients", gradient.len());
    let chunks = x.par_chunks_mut(CHUNK).zip(m.par_chunks_mut(CHUNK)).zip(v.par_chunks_mut(CHUNK));
    chunks.zip(gradient.par_chunks(CHUNK)).for_each(|(((x, m), v), gradient)| (kernels.adam)(adam, gradient, m, v, x));
}

#[inline(always)]
pub(crate) fn update<E: Element>(adam: Adam, gradient: &[E], m: &mut [E], v: &mut [E], x: &mut [E]) {
    let [beta1, beta2, epsilon, step] = [adam.beta1, adam.beta2, adam.epsilon, adam.step].map(E::from_f64);
    let [rest1, rest2] = [1.0 - adam.beta1, 1.0 - adam.beta2].map(E::from_f64);
    let values = x.iter_mut().zip(m.iter_mut().zip(v.iter_mut())).zip(gradient);
    for ((x, (m, v)), &g) in values {
        *m = *m * beta1 + g * rest1;
        *v = *v * beta2 + g * g * rest2;
        *x -= *m * step / (v.sqrt() + epsilon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::with_threads;

    #[test]
    fn every_row_gives_the_bits_of_the_definition_whatever_the_threads() {
        let n = CHUNK + 77;
        let gradient: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
        let constants = Adam { beta1: 0.9, beta2: 0.98, epsilon: 1e-9, step: 1e-3 };
        let run = |kernels: &Kernels<f32>, n_threads: usize| {
            let (mut x, mut m, mut v) = (vec![0.5; n], vec![0.1; n], vec![0.2; n]);
            with_threads(n_threads, || adam(kernels, constants, &gradient, &mut m, &mut v, &mut x));
            (x, m, v)
        };
        let expected = run(&f32::rows()[0], 1);
        for row in f32::rows() {
            assert_eq!(run(row, 2), expected, "{}", row.name);
        }
    }

    #[test]
    fn the_first_step_moves_each_parameter_by_the_rate_against_its_gradient() {
        let (mut x, mut m, mut v) = ([0.0f64; 3], [0.0; 3], [0.0; 3]);
        let rate = 0.01;
        let step = rate * (1.0f64 - 0.98).sqrt() / (1.0 - 0.9);
        let constants = Adam { beta1: 0.9, beta2: 0.98, epsilon: 1e-9, step };
        adam(f64::kernels(), constants, &[3.0, -0.2, 0.0], &mut m, &mut v, &mut x);
        for (x, expected) in x.iter().zip([-rate, rate, 0.0]) {
            assert!((x - expected).abs() < 1e-9, "{x} {expected}");
        }
    }
}
