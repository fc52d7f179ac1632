//! Moments and gradients against their definitions.

use super::*;
use crate::check::{dot, gradient_error};
use crate::tests::Random;

const EPSILON: f64 = 1e-3;

/// Normalised rows, and what the backward pass needs.
fn normalize(x: &[f64], gamma: &[f64], beta: &[f64], width: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let kernels = f64::kernels();
    let mut moments = Moments::new(gamma.len());
    moments.add_frames(kernels, x, width, &mut vec![0.0; 2 * gamma.len()]);
    let inverse: Vec<f64> = (0..gamma.len()).map(|c| 1.0 / (moments.variance(c) + EPSILON).sqrt()).collect();
    let scale: Vec<f64> = gamma.iter().zip(&inverse).map(|(g, i)| g * i).collect();
    let shift: Vec<f64> = (0..gamma.len()).map(|c| beta[c] - moments.mean[c] * scale[c]).collect();
    let mut y = vec![0.0; x.len()];
    (kernels.affine)(x, &scale, &shift, &mut y);
    (y, moments.mean, inverse)
}

#[test]
fn moments_are_mean_and_variance_whatever_the_grouping() {
    let (n_channels, width, n_frames) = (3, 12, 7);
    let mut x: Vec<f64> = Random::new(1).numbers(width * n_frames, 1.0);
    // A mean far from 0 shows cancellation.
    for x in &mut x {
        *x += 1e4;
    }
    let mut parts = [0..2, 2..2, 2..7].map(|frames| {
        let mut moments = Moments::new(n_channels);
        moments.add_frames(f64::kernels(), &x[frames.start * width..frames.end * width], width, &mut [0.0; 6]);
        moments
    });
    let [first, rest @ ..] = &mut parts;
    for part in rest {
        first.merge(part);
    }
    let n = (x.len() / n_channels) as f64;
    for c in 0..n_channels {
        let values = || x.iter().skip(c).step_by(n_channels);
        let mean = values().sum::<f64>() / n;
        let deviation: f64 = values().map(|x| (x - mean).powi(2)).sum();
        assert!((first.mean[c] - mean).abs() < 1e-10);
        assert!((first.variance(c) - deviation / n).abs() < 1e-9);
        assert!((first.unbiased_variance(c) - deviation / (n - 1.0)).abs() < 1e-9);
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let (n_channels, width, n_frames) = (3, 6, 5);
    let mut random = Random::new(2);
    let x: Vec<f64> = random.numbers(width * n_frames, 1.0);
    let (gamma, beta): (Vec<f64>, Vec<f64>) = (random.numbers(n_channels, 1.0), random.numbers(n_channels, 1.0));
    let (y, mean, inverse) = normalize(&x, &gamma, &beta, width);
    let d_y: Vec<f64> = random.numbers(y.len(), 1.0);
    let used = Used { mean: &mean, inverse: &inverse };
    let mut sums = Sums::new(n_channels);
    sums.add_frames(f64::kernels(), used, &x, &d_y, width, &mut [0.0; 6]);
    let n = (x.len() / n_channels) as f64;
    let mut factors = [vec![0.0; n_channels], vec![0.0; n_channels], vec![0.0; n_channels]];
    for c in 0..n_channels {
        factors[0][c] = gamma[c] * inverse[c];
        factors[1][c] = -gamma[c] * inverse[c] * inverse[c] * sums.product[c] / n;
        factors[2][c] = -gamma[c] * inverse[c] * sums.gradient[c] / n;
    }
    let [gradient, distance, constant] = &factors;
    let mut d_x = d_y.clone();
    (f64::kernels().batch_norm_backward)(&x, &mean, Factors { gradient, distance, constant }, &mut d_x);
    let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| dot(&normalize(x, gamma, beta, width).0, &d_y);
    assert!(gradient_error(&x, &d_x, |x| loss(x, &gamma, &beta)) < 1e-8);
    assert!(gradient_error(&gamma, &sums.product, |gamma| loss(&x, gamma, &beta)) < 1e-8);
    assert!(gradient_error(&beta, &sums.gradient, |beta| loss(&x, &gamma, beta)) < 1e-8);
}

#[test]
fn every_row_gives_the_bits_of_the_definition() {
    let (n_channels, n_rows) = (37, 11);
    let mut random = Random::new(3);
    let mut slices = || random.numbers::<f32>(n_channels * n_rows, 1.0);
    let (x, d_y) = (slices(), slices());
    let (a, b, c, d) = (slices(), slices(), slices(), slices());
    let [a, b, c, d] = [&a, &b, &c, &d].map(|slice| &slice[..n_channels]);
    let run = |row: &Kernels<f32>| {
        let mut sums = [0; 4].map(|_| vec![f32::NAN; n_channels]);
        let [mean, deviation, gradient, product] = &mut sums;
        (row.row_moments)(&x, mean, deviation);
        (row.gradient_moments)(&x, &d_y, a, gradient, product);
        let (mut y, mut grad) = (vec![f32::NAN; x.len()], d_y.clone());
        (row.affine)(&x, a, b, &mut y);
        (row.batch_norm_backward)(&x, a, Factors { gradient: b, distance: c, constant: d }, &mut grad);
        (sums, y, grad)
    };
    let expected = run(&f32::rows()[0]);
    for row in f32::rows() {
        assert_eq!(run(row), expected, "{}", row.name);
    }
}
