//! The weights of self-attention for one query: p = softmax(scale s + penalty) over the keys.
//!
//! Saved for the backward pass: p.

use crate::Element;
use crate::element::sum;
use crate::simd::{Vector, load_or, store};

/// Replaces the scores of a row by their weights.
pub(crate) fn forward<E: Element>(row: &mut [E], scale: E, penalty: &[E]) {
    assert_eq!(row.len(), penalty.len(), "attention: a penalty for every score");
    let mut largest = E::NEG_INFINITY;
    for (score, &penalty) in row.iter_mut().zip(penalty) {
        *score = *score * scale + penalty;
        largest = largest.max(*score);
    }
    let mut total = E::ZERO;
    for score in row.iter_mut() {
        *score = (*score - largest).exp();
        total += *score;
    }
    for weight in row {
        *weight = *weight / total;
    }
}

/// As [`forward`], in vectors.
#[inline(always)]
pub(crate) fn forward_lanes<V: Vector>(row: &mut [f32], scale: f32, penalty: &[f32]) {
    /// Far below every score, so that its exponential vanishes next to theirs.
    const NOTHING: f32 = -1e30;
    assert_eq!(row.len(), penalty.len(), "attention: a penalty for every score");
    let mut largest = V::splat(NOTHING);
    for k in (0..row.len()).step_by(V::LANES) {
        let score = load_or::<V>(row, k, NOTHING).mul_add(V::splat(scale), load_or(penalty, k, NOTHING));
        largest = largest.max(score);
        store(score, row, k);
    }
    let (largest, mut total) = (V::splat(largest.largest()), V::zero());
    for k in (0..row.len()).step_by(V::LANES) {
        let score = load_or::<V>(row, k, NOTHING);
        // The difference is 0, or NaN for what is not finite, which `exp` alone would hide.
        let weight = score.sub(largest).exp().add(score.sub(score));
        total = total.add(weight);
        store(weight, row, k);
    }
    let share = 1.0 / total.sum();
    for weight in row {
        *weight *= share;
    }
}

/// Replaces dp by ds, for the weights p.
#[inline(always)]
pub(crate) fn backward<E: Element>(weights: &[E], scale: E, d_row: &mut [E]) {
    assert_eq!(weights.len(), d_row.len(), "attention: a gradient for every weight");
    let common = sum(weights, d_row, |p, g| p * g);
    for (d_row, &weight) in d_row.iter_mut().zip(weights) {
        *d_row = (*d_row - common) * weight * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{dot, gradient_error};
    use crate::tests::Random;

    #[test]
    fn gradients_equal_finite_differences() {
        let n = 7;
        let mut random = Random::new(1);
        let [scores, penalty, slopes] = [0; 3].map(|_| random.numbers::<f64>(n, 2.0));
        let mut weights = scores.clone();
        forward(&mut weights, 0.7, &penalty);
        let mut d_row = slopes.clone();
        backward(&weights, 0.7, &mut d_row);
        let error = gradient_error(&scores, &d_row, |moved| {
            let mut weights = moved.to_vec();
            forward(&mut weights, 0.7, &penalty);
            dot(&weights, &slopes)
        });
        // Differences of a loss near 1 are good to 1e-11 of gradients near 0.1.
        assert!(error < 1e-9, "{error}");
    }

    #[test]
    fn every_row_of_the_table_gives_weights_that_sum_to_one_as_the_definition_does() {
        for n in [1, 2, 15, 16, 17, 33, 75, 400] {
            let mut random = Random::new(n as u64);
            let [scores, penalty, slopes] = [0; 3].map(|_| random.numbers::<f32>(n, 8.0));
            let run = |row: &crate::Kernels<f32>| {
                let (mut weights, mut d_row) = (scores.clone(), slopes.clone());
                (row.attention_forward)(&mut weights, 0.5, &penalty);
                (row.attention_backward)(&weights, 0.5, &mut d_row);
                (weights, d_row)
            };
            let expected = run(&f32::rows()[0]);
            for row in f32::rows() {
                let (weights, d_row) = run(row);
                // Up to 400 weights that are each good to a few units in the last place of at most 1.
                let total: f32 = weights.iter().sum();
                assert!((total - 1.0).abs() < 1e-5, "{} at {n}: {total}", row.name);
                let pairs = weights.iter().zip(&expected.0).chain(d_row.iter().zip(&expected.1));
                let worst = pairs.fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
                assert!(worst < 4e-6, "{} at {n}: {worst}", row.name);
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for row in f32::rows() {
            let mut weights = [0.5, f32::NAN, 1.0];
            (row.attention_forward)(&mut weights, 1.0, &[0.0; 3]);
            assert!(weights.iter().all(|weight| weight.is_nan()), "{}", row.name);
        }
    }
}
