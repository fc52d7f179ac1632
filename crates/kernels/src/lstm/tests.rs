//! Gates against finite differences, and every row of the table against the definition.

use super::*;
use crate::check::{dot, gradient_error};
use crate::tests::Random;

/// Outputs and cells of a row, weighted into a number.
fn loss(n: usize, x: &[f64], weights: &[f64]) -> f64 {
    let (mut gates, before) = (x[..4 * n].to_vec(), &x[4 * n..]);
    let (mut cells, mut outputs) = (vec![0.0; n], vec![0.0; n]);
    forward(&mut gates, &vec![0.0; 4 * n], before, &mut cells, &mut outputs);
    dot(&outputs, &weights[..n]) + dot(&cells, &weights[n..])
}

#[test]
fn gradients_equal_finite_differences() {
    let n = 5;
    let mut random = Random::new(1);
    let (x, weights) = (random.numbers::<f64>(5 * n, 2.0), random.numbers::<f64>(2 * n, 1.0));
    let (mut gates, mut cells, mut outputs) = (x[..4 * n].to_vec(), vec![0.0; n], vec![0.0; n]);
    forward(&mut gates, &vec![0.0; 4 * n], &x[4 * n..], &mut cells, &mut outputs);
    let mut d_cells = weights[n..].to_vec();
    backward(&mut gates, &x[4 * n..], &cells, &weights[..n], &mut d_cells);
    let error = gradient_error(&x, &[gates, d_cells].concat(), |moved| loss(n, moved, &weights));
    // Differences of a loss near 1 are good to 1e-11 of gradients near 1.
    assert!(error < 1e-9, "{error}");
}

#[test]
fn a_cell_follows_its_gates_by_hand() {
    let (mut gates, mut cells, mut outputs) = ([0.0f64, 100.0, 1000.0, -1000.0], [0.0], [0.0]);
    forward(&mut gates, &[0.0; 4], &[0.25], &mut cells, &mut outputs);
    assert_eq!(gates, [0.5, 1.0, 1.0, 0.0]);
    assert_eq!((cells, outputs), ([0.75], [0.0]));
}

#[test]
fn every_row_equals_the_definition_within_rounding_and_wherever_a_value_stands() {
    for n in [1, 3, 8, 16, 37, 250] {
        let mut random = Random::new(n as u64);
        let gates = random.numbers::<f32>(4 * n, 6.0);
        let [recurrent, before] = [random.numbers::<f32>(4 * n, 6.0), random.numbers::<f32>(n, 2.0)];
        let [d_outputs, d_cells] = [random.numbers::<f32>(n, 1.0), random.numbers::<f32>(n, 1.0)];
        let run = |row: &crate::Kernels<f32>| {
            let (mut gates, mut cells, mut outputs) = (gates.clone(), vec![0.0; n], vec![0.0; n]);
            (row.lstm_forward)(&mut gates, &recurrent, &before, &mut cells, &mut outputs);
            let forward = [gates.clone(), cells.clone(), outputs].concat();
            let mut d_cells = d_cells.clone();
            (row.lstm_backward)(&mut gates, &before, &cells, &d_outputs, &mut d_cells);
            [forward, gates, d_cells].concat()
        };
        let expected = run(&f32::rows()[0]);
        for row in f32::rows() {
            let worst = run(row).iter().zip(&expected).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
            // Values are at most 3; a few roundings of 6e-8 each, and exp is good to 2 units.
            assert!(worst < 2e-6, "{} at {n}: {worst}", row.name);
        }
    }
}

#[test]
fn what_is_no_number_stays_none() {
    for row in f32::rows() {
        for part in 0..4 {
            let (mut gates, mut cells, mut outputs) = ([0.5; 4], [0.0], [0.0]);
            gates[part] = f32::NAN;
            (row.lstm_forward)(&mut gates, &[0.0; 4], &[0.25], &mut cells, &mut outputs);
            assert!(outputs[0].is_nan(), "gate {part} of {}", row.name);
        }
    }
}

#[test]
fn a_value_has_the_same_bits_at_the_end_of_a_row_as_within_it() {
    let mut random = Random::new(7);
    let [i, f, g, o, c] = [0; 5].map(|_| random.numbers::<f32>(16, 4.0));
    for row in f32::rows() {
        let run = |n: usize| {
            let mut gates = [&i[..n], &f[..n], &g[..n], &o[..n]].concat();
            let (mut cells, mut outputs) = (vec![0.0; n], vec![0.0; n]);
            (row.lstm_forward)(&mut gates, &vec![0.0; 4 * n], &c[..n], &mut cells, &mut outputs);
            outputs
        };
        let whole = run(16);
        (1..16).for_each(|n| assert_eq!(run(n), whole[..n], "{} cells of {}", n, row.name));
    }
}
