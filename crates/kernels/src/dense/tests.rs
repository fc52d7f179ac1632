//! The dense layer against finite differences, rows against the definition, one frame against many.

use super::*;
use crate::Kernels;
use crate::check::{dot, gradient_error};
use crate::tests::Random;

fn weights<E: Element>(kernel: &[E], bias: &[E]) -> DenseWeights<E> {
    let mut weights = DenseWeights::new(kernel.len() / bias.len(), bias.len());
    weights.pack(kernel, Some(bias));
    weights
}

fn run<E: Element>(row: &Kernels<E>, weights: &DenseWeights<E>, x: &[E]) -> Vec<E> {
    let mut y = vec![E::from_f64(f64::NAN); x.len() / weights.n_in * weights.n_out];
    (row.dense_forward)(weights, x, &mut y);
    y
}

#[test]
fn gradients_equal_finite_differences() {
    let (n_rows, n_in, n_out) = (3, 7, 5);
    let mut random = Random::new(1);
    let (x, kernel): (Vec<f64>, Vec<f64>) = (random.numbers(n_rows * n_in, 1.0), random.numbers(n_in * n_out, 1.0));
    let (bias, d_y): (Vec<f64>, Vec<f64>) = (random.numbers(n_out, 1.0), random.numbers(n_rows * n_out, 1.0));
    let loss = |x: &[f64], kernel: &[f64], bias: &[f64]| dot(&run(f64::kernels(), &weights(kernel, bias), x), &d_y);
    let mut d_x = vec![f64::NAN; x.len()];
    dense_input_gradient(&kernel, n_out, &d_y, &mut d_x);
    assert!(gradient_error(&x, &d_x, |x| loss(x, &kernel, &bias)) < 1e-8);
    let mut grad_kernel = vec![0.0; kernel.len()];
    dense_kernel_gradient(&x, n_in, 0, &d_y, n_out, &mut grad_kernel);
    assert!(gradient_error(&kernel, &grad_kernel, |kernel| loss(&x, kernel, &bias)) < 1e-8);
    let mut d_bias = vec![0.0; n_out];
    dense_bias_gradient(&d_y, &mut d_bias);
    assert!(gradient_error(&bias, &d_bias, |bias| loss(&x, &kernel, bias)) < 1e-8);
}

#[test]
fn every_row_equals_the_definition() {
    for (n_in, n_out) in [(1, 1), (5, 16), (33, 60), (200, 81)] {
        let mut random = Random::new(n_in as u64);
        let weights = weights::<f32>(&random.numbers(n_in * n_out, 1.0), &random.numbers(n_out, 1.0));
        let x = random.numbers(8 * n_in, 1.0);
        let expected = run(&f32::rows()[0], &weights, &x);
        // Ten times the root of the number of roundings of sums below the root of their number of terms.
        let bound = 10.0 * (n_in as f32).sqrt() * f32::EPSILON;
        for row in f32::rows() {
            for (y, expected) in run(row, &weights, &x).iter().zip(&expected) {
                assert!((y - expected).abs() <= bound, "{}: {y} {expected}", row.name);
            }
        }
    }
}

/// The gradient of the kernel, in two parts, against sums in `f64`; the largest distance.
fn kernel_gradient_error<E: Element>([n_frames, n_in, n_out]: [usize; 3], cut: usize) -> f64 {
    let mut random = Random::new(n_in as u64);
    let [x, d_y] = [n_in, n_out].map(|width| random.numbers::<E>(n_frames * width, 1.0));
    let start = random.numbers::<E>(n_in * n_out, 1.0);
    let mut grad = start.clone();
    let (first, rest) = grad.split_at_mut(cut * n_out);
    dense_kernel_gradient(&x, n_in, 0, &d_y, n_out, first);
    dense_kernel_gradient(&x, n_in, cut, &d_y, n_out, rest);
    let error = |(index, grad): (usize, &E)| {
        let (i, o) = (index / n_out, index % n_out);
        let product = |t: usize| x[t * n_in + i].to_f64() * d_y[t * n_out + o].to_f64();
        (grad.to_f64() - start[index].to_f64() - (0..n_frames).map(product).sum::<f64>()).abs()
    };
    grad.iter().enumerate().map(error).fold(0.0, f64::max)
}

#[test]
fn the_gradient_of_the_kernel_is_the_definitions_for_any_of_its_rows() {
    for shape in [[1, 1, 1], [3, 7, 5], [70, 20, 64], [130, 13, 100], [65, 33, 63], [0, 4, 4]] {
        let [n_frames, n_in, _] = shape;
        // Ten times the root of the number of roundings of sums below the root of their number of terms.
        let bound = 10.0 * (1.0 + n_frames as f64).sqrt() * f64::from(f32::EPSILON);
        for cut in [0, n_in / 2, n_in] {
            let errors = [kernel_gradient_error::<f64>(shape, cut), kernel_gradient_error::<f32>(shape, cut)];
            assert!(errors[0] < 1e-12 && errors[1] <= bound, "{shape:?} cut at {cut}: {errors:?}");
        }
    }
}

#[test]
fn a_frame_gives_the_same_bits_alone_and_among_any_number_of_frames() {
    let (n_in, n_out, n_rows) = (1984, 60, 40);
    let mut random = Random::new(3);
    let weights = weights::<f32>(&random.numbers(n_in * n_out, 1.0), &random.numbers(n_out, 1.0));
    let x: Vec<f32> = random.numbers(n_rows * n_in, 1.0);
    for row in f32::rows() {
        let whole = run(row, &weights, &x);
        for n in 1..n_rows {
            let (first, rest) = x.split_at(n * n_in);
            let split = [run(row, &weights, first), run(row, &weights, rest)].concat();
            assert_eq!(split, whole, "{} cut at {n}", row.name);
        }
    }
}

#[test]
fn strided_and_transposed_views_give_the_sums_of_the_definition() {
    let (m, n, k) = (7, 5, 11);
    let mut random = Random::new(1);
    let (a, b) = (random.numbers::<f64>(2 * m * k, 1.0), random.numbers::<f64>(n * k, 1.0));
    let start = random.numbers::<f64>(m * n, 1.0);
    for adds in [false, true] {
        let mut out = start.clone();
        let view = View { data: &a, row: 2 * k, col: 1 };
        product([m, n, k], view, View { data: &b, row: 1, col: k }, adds, &mut out);
        let mut spread = vec![f64::NAN; m * 2 * n];
        spread.chunks_mut(2 * n).zip(start.chunks(n)).for_each(|(row, start)| row[..n].copy_from_slice(start));
        product_into([m, n, k], view, View { data: &b, row: 1, col: k }, adds, &mut spread, 2 * n);
        for (spread, out) in spread.chunks(2 * n).zip(out.chunks(n)) {
            assert!(spread[..n] == *out && spread[n..].iter().all(|x| x.is_nan()), "{spread:?}");
        }
        for (index, &value) in out.iter().enumerate() {
            let (i, j) = (index / n, index % n);
            let sum: f64 = (0..k).map(|l| a[i * 2 * k + l] * b[j * k + l]).sum();
            let expected = sum + if adds { start[index] } else { 0.0 };
            assert!((value - expected).abs() < 1e-13, "{value} {expected}");
        }
    }
}
