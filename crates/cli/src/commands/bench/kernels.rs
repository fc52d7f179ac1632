//! Capsule layers alone, forward and backward.

use anyhow::bail;
use serde::Serialize;
use srf_kernels::routing::{GradientPaths, Router, Routing, Utterance, UtteranceBack, Workspace};
use srf_model::config::{CapsuleShape, ModelConfig, SrfConfig};

use super::machine::{noise, time};
use super::train::{N_FRAMES, N_UTTERANCES};
use super::{Report, Subject, show};
use crate::printer::Printer;

/// One operation; for a backward pass the products for weights and for inputs are counted.
#[derive(Serialize)]
struct Operation {
    name: String,
    /// Number of layers of this shape.
    layers: usize,
    gflops: f64,
    /// Relative to sgemm.
    share: f64,
    us_per_slice: f64,
    #[serde(skip)]
    seconds: f64,
    #[serde(skip)]
    flops: f64,
}

/// All capsule layers together, then each shape.
#[derive(Serialize)]
struct Kernels {
    #[serde(flatten)]
    all: Report,
    operations: Vec<Operation>,
}

pub(super) fn run(subject: &Subject, n_steps: usize, json: bool, out: &Printer) -> anyhow::Result<()> {
    let ModelConfig::Srf(config) = &subject.config else {
        bail!("`{}` has no capsule layers to measure, expected a network of capsules", subject.name);
    };
    let n_slices = N_FRAMES.div_ceil(subject.config.frames_per_slice());
    let mut operations = Vec::new();
    for (name, shape, layers) in layers(config) {
        let mut router = srf_model::layers::router(config, shape);
        let routing = router.routing();
        let flops = (2 * N_UTTERANCES * n_slices * routing.n_in * routing.output_len() * routing.depth_in) as f64;
        let (forward, backward) = measure(&mut router, n_slices, n_steps);
        for (direction, flops, seconds) in [("forward", flops, forward), ("backward", 2.0 * flops, backward)] {
            let us_per_slice = 1e6 * seconds / (N_UTTERANCES * n_slices) as f64;
            let (name, gflops) = (format!("{name} {direction}"), flops / seconds / 1e9);
            operations.push(Operation { name, layers, gflops, share: 0.0, us_per_slice, seconds, flops });
        }
    }
    let sum = |of: fn(&Operation) -> f64| operations.iter().map(|o| o.layers as f64 * of(o)).sum::<f64>();
    let (flops, seconds) = (sum(|o| o.flops), sum(|o| o.seconds));
    let all = Report::new("kernels", subject, N_UTTERANCES * N_FRAMES, flops, vec![seconds]);
    operations.iter_mut().for_each(|o| o.share = o.gflops / all.sgemm_gflops);
    if json {
        return Ok(out.line(serde_json::to_string(&Kernels { all, operations })?)?);
    }
    show(&all, false, out)?;
    operations.iter().try_for_each(|operation| show_operation(operation, out))
}

fn show_operation(operation: &Operation, out: &Printer) -> anyhow::Result<()> {
    let Operation { name, layers, gflops, share, us_per_slice, .. } = operation;
    let share = 100.0 * share;
    let line = format!("{layers} x {name:<40} {gflops:>6.1} GFLOP/s {share:>4.0} % {us_per_slice:>7.1} us per slice");
    Ok(out.line(line)?)
}

/// The distinct capsule layers of a network with their counts.
fn layers(config: &SrfConfig) -> Vec<(String, CapsuleShape, usize)> {
    let mut layers: Vec<(String, CapsuleShape, usize)> = Vec::new();
    for shape in config.capsule_shapes() {
        match layers.last_mut() {
            Some((_, last, count)) if *last == shape => *count += 1,
            _ => {
                let (n_in, n_out) = (shape.n_inputs(), shape.out_height);
                let name = format!("capsules {n_in} x {} to {n_out} x {}", shape.in_depth, shape.out_depth);
                layers.push((name, shape, 1));
            }
        }
    }
    layers
}

/// Sets small random parameters.
fn fill(router: &mut Router<f32>) {
    let Routing { n_in, depth_in, .. } = router.routing();
    let n = n_in * router.routing().output_len();
    let small: Vec<f32> =
        noise("weights", n * (depth_in + 1) + router.n_extra_params()).iter().map(|w| 0.1 * w).collect();
    let (biases, rest) = small.split_at(n);
    let (weights, own) = rest.split_at(n * depth_in);
    router.pack(weights, biases, own);
}

/// Seconds of the fastest forward and the fastest backward pass of a batch.
fn measure(router: &mut Router<f32>, n_slices: usize, n_steps: usize) -> (f64, f64) {
    fill(router);
    let routing = router.routing();
    let inputs = noise("inputs", routing.inputs_len(n_slices));
    let mut outputs = vec![vec![0.0; n_slices * routing.output_len()]; N_UTTERANCES];
    let mut saved = vec![vec![0.0; router.saved_len(n_slices, true)]; N_UTTERANCES];
    let mut workspace = Workspace::new();
    let forward = time(n_steps, || {
        let each = outputs.iter_mut().zip(&mut saved);
        let mut utterances: Vec<_> = each
            .map(|(outputs, saved)| Utterance { n_slices, inputs: &inputs, state: &[], outputs, saved, tap: None })
            .collect();
        router.forward(&mut utterances, &mut workspace);
    });
    let mut d_inputs = vec![inputs.clone(); N_UTTERANCES];
    let mut gradient = router.new_gradient();
    let backward = time(n_steps, || {
        let each = d_inputs.iter_mut().zip(&outputs).zip(&saved);
        let mut utterances: Vec<_> = each
            .map(|((d_inputs, outputs), saved)| UtteranceBack {
                n_slices,
                inputs: &inputs,
                state: &[],
                outputs,
                saved,
                d_outputs: outputs,
                d_inputs,
            })
            .collect();
        router.backward(GradientPaths::FULL, &mut utterances, &mut gradient, &mut workspace);
    });
    let best = |seconds: Vec<f64>| seconds.into_iter().fold(f64::INFINITY, f64::min);
    (best(forward), best(backward))
}
