//! Layer norm against its definition, finite differences, and row against row.

use super::*;
use crate::Kernels;
use crate::check::{dot, gradient_error};
use crate::tests::Random;

fn forward(x: &[f64], gamma: &[f64], beta: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut y, mut saved) = (vec![f64::NAN; x.len()], vec![f64::NAN; 2 * x.len() / gamma.len()]);
    (f64::kernels().layer_norm_forward)(x, gamma, beta, 1e-3, &mut y, &mut saved);
    (y, saved)
}

#[test]
fn rows_come_out_with_mean_zero_and_variance_one() {
    let x: Vec<f64> = Random::new(1).numbers(3 * 19, 1.0);
    let (y, _) = forward(&x, &[1.0; 19], &[0.0; 19]);
    for (x, y) in x.chunks(19).zip(y.chunks(19)) {
        let mean = x.iter().sum::<f64>() / 19.0;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0;
        for (x, y) in x.iter().zip(y) {
            assert!((y - (x - mean) / (variance + 1e-3).sqrt()).abs() < 1e-12);
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let width = 21;
    let mut random = Random::new(2);
    let x: Vec<f64> = random.numbers(3 * width, 1.0);
    let (gamma, beta): (Vec<f64>, Vec<f64>) = (random.numbers(width, 1.0), random.numbers(width, 1.0));
    let d_y: Vec<f64> = random.numbers(x.len(), 1.0);
    let (_, saved) = forward(&x, &gamma, &beta);
    let (mut grad, mut d_gamma, mut d_beta) = (d_y.clone(), vec![0.0; width], vec![0.0; width]);
    (f64::kernels().layer_norm_backward)(&x, &gamma, &saved, &mut grad, &mut d_gamma, &mut d_beta);
    let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| dot(&forward(x, gamma, beta).0, &d_y);
    assert!(gradient_error(&x, &grad, |x| loss(x, &gamma, &beta)) < 1e-8);
    assert!(gradient_error(&gamma, &d_gamma, |gamma| loss(&x, gamma, &beta)) < 1e-8);
    assert!(gradient_error(&beta, &d_beta, |beta| loss(&x, &gamma, beta)) < 1e-8);
}

#[test]
fn every_row_gives_the_bits_of_the_definition() {
    for width in [1, 15, 16, 63, 480] {
        let mut random = Random::new(width as u64);
        let x: Vec<f32> = random.numbers(4 * width, 1.0);
        let (gamma, beta): (Vec<f32>, Vec<f32>) = (random.numbers(width, 1.0), random.numbers(width, 1.0));
        let run = |row: &Kernels<f32>| {
            let (mut y, mut saved) = (vec![f32::NAN; x.len()], vec![f32::NAN; 8]);
            (row.layer_norm_forward)(&x, &gamma, &beta, 1e-3, &mut y, &mut saved);
            let (mut grad, mut d_gamma, mut d_beta) = (x.clone(), vec![0.5; width], vec![0.5; width]);
            (row.layer_norm_backward)(&x, &gamma, &saved, &mut grad, &mut d_gamma, &mut d_beta);
            (y, saved, grad, d_gamma, d_beta)
        };
        let expected = run(&f32::rows()[0]);
        for row in f32::rows() {
            assert_eq!(run(row), expected, "{} at width {width}", row.name);
        }
    }
}
