//! The layer against its definition, step by step, and against finite differences.

use srf_kernels::check::{dot, gradient_error};

use super::*;
use crate::layers::{Mode, Workspace};
use crate::params::Plan;
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
        let (part, after) = rest.split_at(frames.len());
        frames.copy_from_slice(part);
        rest = after;
    }
    frames
}

/// The three parameters of a direction, one after another.
const SIZES: [usize; 3] = [N_IN * 4 * N_CELLS, N_CELLS * 4 * N_CELLS, 4 * N_CELLS];

fn layer(n_directions: usize, merge: Merge) -> Lstm<f64> {
    Lstm::new(Plan::new(N_IN).layer("lstm", &[]), [N_IN, N_CELLS], n_directions, merge)
}

fn forward(layer: &mut Lstm<f64>, params: &[f64], x: &Frames<f64>, y: &mut Frames<f64>) {
    let workspace = &mut Workspace::default();
    layer.forward(&Forward { params, statistics: &mut [], mode: Mode::default(), workspace }, x, y);
}

/// Outputs of one direction, by the equations.
fn by_definition(params: &[f64], x: &[f64], is_backward: bool) -> Vec<f64> {
    let (kernel, rest) = params.split_at(SIZES[0]);
    let (recurrent, bias) = rest.split_at(SIZES[1]);
    let n_frames = x.len() / N_IN;
    let (mut h, mut c) = (vec![0.0; N_CELLS], vec![0.0; N_CELLS]);
    let mut outputs = vec![0.0; n_frames * N_CELLS];
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for step in 0..n_frames {
        let t = if is_backward { n_frames - 1 - step } else { step };
        let z = |gate: usize| {
            let input: f64 = (0..N_IN).map(|i| x[t * N_IN + i] * kernel[i * 4 * N_CELLS + gate]).sum();
            let of_outputs: f64 = (0..N_CELLS).map(|i| h[i] * recurrent[i * 4 * N_CELLS + gate]).sum();
            input + of_outputs + bias[gate]
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
    let cells: Vec<&[f64]> = values.chunks(SIZES.iter().sum()).collect();
    for merge in [Merge::Concat, Merge::Average] {
        let mut layer = layer(2, merge);
        let mut y = Frames::new(layer.width(), [0, 0]);
        forward(&mut layer, &values, &x, &mut y);
        for utterance in 0..LENGTHS.len() {
            let forward = by_definition(cells[0], x.real(utterance), false);
            let backward = by_definition(cells[1], x.real(utterance), true);
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
        let mut layer = layer(n_directions, merge);
        let weights = numbers("dy", 10 * layer.width());
        let (mut y, mut d_x) = (Frames::new(layer.width(), [0, 0]), Frames::new(N_IN, [0, 0]));
        let x = frames(N_IN, &inputs);
        forward(&mut layer, &values, &x, &mut y);
        // Gradients are added to what is there.
        let mut gradient = vec![1.0; values.len()];
        let (d_y, workspace) = (frames(layer.width(), &weights), &mut Workspace::default());
        let pass = &mut Backward { params: &values, gradient: &mut gradient, mode: Mode::default(), workspace };
        layer.backward(pass, &x, &d_y, Some(&mut d_x));
        let slopes: Vec<f64> = gradient.iter().map(|g| g - 1.0).chain(d_x.all().iter().copied()).collect();
        let error = gradient_error(&[values.clone(), inputs].concat(), &slopes, |moved| {
            let (values, inputs) = moved.split_at(n_directions * n_params);
            forward(&mut layer, values, &frames(N_IN, inputs), &mut y);
            dot(y.all(), &weights)
        });
        // Differences of a loss near 10 are good to 1e-10 of gradients near 1.
        assert!(error < 1e-9, "{n_directions} {merge:?}: {error}");
    }
}
