//! The layer against its definition, step by step, and against finite differences.

use srf_kernels::check::{dot, gradient_error};

use super::*;
use crate::random::Random;

const LENGTHS: [usize; 4] = [3, 0, 6, 1];
const N_IN: usize = 3;
const N_CELLS: usize = 2;

fn numbers(name: &str, n: usize) -> Vec<f64> {
    let mut random = Random::new(1, name);
    (0..n).map(|_| random.normal()).collect()
}

fn frames(width: usize, values: &[f64]) -> Frames<f64> {
    let mut frames = Frames::new(width, [0, 0]);
    frames.resize_for(LENGTHS);
    let mut rest = values;
    for frames in frames.each_real_mut() {
        let (some, after) = rest.split_at(frames.len());
        frames.copy_from_slice(some);
        rest = after;
    }
    frames
}

/// The three parameters of a direction, one after another.
const SIZES: [usize; 3] = [N_IN * 4 * N_CELLS, N_CELLS * 4 * N_CELLS, 4 * N_CELLS];

fn cells(values: &[f64], n_directions: usize) -> Vec<CellParams<'_, f64>> {
    let of_direction = values.chunks(SIZES.iter().sum()).take(n_directions);
    of_direction
        .map(|values| {
            let (kernel, rest) = values.split_at(SIZES[0]);
            let (recurrent, bias) = rest.split_at(SIZES[1]);
            CellParams { kernel, recurrent, bias }
        })
        .collect()
}

/// Outputs of one direction, by the equations.
fn by_definition(params: CellParams<'_, f64>, x: &[f64], is_backward: bool) -> Vec<f64> {
    let n_frames = x.len() / N_IN;
    let (mut h, mut c) = (vec![0.0; N_CELLS], vec![0.0; N_CELLS]);
    let mut outputs = vec![0.0; n_frames * N_CELLS];
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for step in 0..n_frames {
        let t = if is_backward { n_frames - 1 - step } else { step };
        let z = |gate: usize| {
            let input: f64 = (0..N_IN).map(|i| x[t * N_IN + i] * params.kernel[i * 4 * N_CELLS + gate]).sum();
            let recurrent: f64 = (0..N_CELLS).map(|i| h[i] * params.recurrent[i * 4 * N_CELLS + gate]).sum();
            input + recurrent + params.bias[gate]
        };
        let z: Vec<f64> = (0..4 * N_CELLS).map(z).collect();
        for k in 0..N_CELLS {
            c[k] = sigmoid(z[N_CELLS + k]) * c[k] + sigmoid(z[k]) * z[2 * N_CELLS + k].tanh();
            h[k] = sigmoid(z[3 * N_CELLS + k]) * c[k].tanh();
        }
        outputs[t * N_CELLS..][..N_CELLS].copy_from_slice(&h);
    }
    outputs
}

#[test]
fn outputs_are_those_of_the_equations_and_directions_are_merged() {
    let values = numbers("parameters", 2 * SIZES.iter().sum::<usize>());
    let x = frames(N_IN, &numbers("x", 10 * N_IN));
    let params = cells(&values, 2);
    for merge in [Merge::Concat, Merge::Average] {
        let mut layer = Lstm::new(N_IN, N_CELLS, 2, merge);
        let mut y = Frames::new(layer.width(), [0, 0]);
        layer.forward(&params, &x, &mut y);
        for utterance in 0..LENGTHS.len() {
            let forward = by_definition(params[0], x.real(utterance), false);
            let backward = by_definition(params[1], x.real(utterance), true);
            let pairs = forward.chunks(N_CELLS).zip(backward.chunks(N_CELLS));
            let expected: Vec<f64> = match merge {
                Merge::Concat => pairs.flat_map(|(f, b)| [f, b].concat()).collect(),
                Merge::Average => forward.iter().zip(&backward).map(|(f, b)| (f + b) / 2.0).collect(),
            };
            assert_eq!(y.real(utterance).len(), expected.len());
            for (found, expected) in y.real(utterance).iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-14, "{found} {expected}");
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let n_params: usize = SIZES.iter().sum();
    for (n_directions, merge) in [(1, Merge::Concat), (2, Merge::Concat), (2, Merge::Average)] {
        let values = numbers("parameters", n_directions * n_params);
        let inputs = numbers("x", 10 * N_IN);
        let mut layer = Lstm::new(N_IN, N_CELLS, n_directions, merge);
        let weights = numbers("dy", 10 * layer.width());
        let (mut y, mut grad_x) = (Frames::new(layer.width(), [0, 0]), Frames::new(N_IN, [0, 0]));
        let x = frames(N_IN, &inputs);
        layer.forward(&cells(&values, n_directions), &x, &mut y);
        // Gradients are added to what is there.
        let mut gradient = vec![1.0; values.len()];
        let of_cells = gradient.chunks_mut(n_params).map(|gradient| {
            let (kernel, rest) = gradient.split_at_mut(SIZES[0]);
            let (recurrent, bias) = rest.split_at_mut(SIZES[1]);
            CellGradient { kernel, recurrent, bias }
        });
        let (of_cells, grad_y) = (of_cells.collect(), frames(layer.width(), &weights));
        layer.backward(&cells(&values, n_directions), &x, &grad_y, of_cells, Some(&mut grad_x));
        let slopes: Vec<f64> = gradient.iter().map(|g| g - 1.0).chain(grad_x.all().iter().copied()).collect();
        let error = gradient_error(&[values.clone(), inputs].concat(), &slopes, |moved| {
            let (values, inputs) = moved.split_at(n_directions * n_params);
            layer.forward(&cells(values, n_directions), &frames(N_IN, inputs), &mut y);
            dot(y.all(), &weights)
        });
        // Differences of a loss near 10 are good to 1e-10 of gradients near 1.
        assert!(error < 1e-9, "{n_directions} {merge:?}: {error}");
    }
}
