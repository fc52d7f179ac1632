//! Squash and length against finite differences, and row against row.

use proptest::prelude::*;

use super::*;
use crate::Kernels;
use crate::check::{dot, gradient_error};
use crate::tests::Random;

fn squashed(s: &[f64], depth: usize) -> Vec<f64> {
    let mut v = vec![f64::NAN; s.len()];
    forward(s, depth, &mut v);
    v
}

fn lengths_of(v: &[f64], depth: usize) -> Vec<f64> {
    let mut lengths = vec![f64::NAN; v.len() / depth];
    length(v, depth, &mut lengths);
    lengths
}

proptest! {
    #[test]
    fn squashed_capsules_are_shorter_than_one_and_keep_their_direction(s in prop::collection::vec(-1e3f64..1e3, 5)) {
        let v = squashed(&s, 5);
        let square: f64 = v.iter().map(|v| v * v).sum();
        prop_assert!(square < 1.0);
        prop_assert!(v.iter().zip(&s).all(|(v, s)| v * s >= 0.0));
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for depth in [1, 3, 8] {
        let mut random = Random::new(depth as u64);
        let s: Vec<f64> = random.numbers(4 * depth, 1.0);
        let d_v: Vec<f64> = random.numbers(s.len(), 1.0);
        let mut grad = d_v.clone();
        backward(&s, depth, &mut grad);
        assert!(gradient_error(&s, &grad, |s| dot(&squashed(s, depth), &d_v)) < 1e-8);
        let d_lengths: Vec<f64> = random.numbers(4, 1.0);
        let mut grad = vec![f64::NAN; s.len()];
        length_backward(&s, depth, &lengths_of(&s, depth), &d_lengths, &mut grad);
        assert!(gradient_error(&s, &grad, |s| dot(&lengths_of(s, depth), &d_lengths)) < 1e-8);
    }
}

#[test]
fn a_capsule_of_zeros_has_a_finite_gradient() {
    let mut grad = [1.0f32, -1.0];
    backward(&[0.0, 0.0], 2, &mut grad);
    assert_eq!(grad, [0.0, 0.0]);
    assert_eq!(squashed(&[0.0, 0.0], 2), [0.0, 0.0]);
}

#[test]
fn every_row_gives_the_bits_of_the_definition() {
    for depth in [1, 7, 8, 20] {
        let mut random = Random::new(depth as u64);
        let (s, dv): (Vec<f32>, Vec<f32>) = (random.numbers(9 * depth, 1.0), random.numbers(9 * depth, 1.0));
        let run = |row: &Kernels<f32>| {
            let (mut v, mut grad, mut lengths) = (vec![f32::NAN; s.len()], dv.clone(), vec![f32::NAN; 9]);
            (row.squash_forward)(&s, depth, &mut v);
            (row.squash_backward)(&s, depth, &mut grad);
            (row.length_forward)(&s, depth, &mut lengths);
            let mut d_v = vec![f32::NAN; s.len()];
            (row.length_backward)(&s, depth, &lengths, &dv[..9], &mut d_v);
            (v, grad, lengths, d_v)
        };
        let expected = run(&f32::rows()[0]);
        for row in f32::rows() {
            assert_eq!(run(row), expected, "{} at depth {depth}", row.name);
        }
    }
}
