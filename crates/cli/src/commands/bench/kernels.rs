//! Capsule layers and the second convolution by themselves, forward and backward.

use ::kernels::routing::{self, GradientPaths, Packed, Routing, Saved, Utterance, UtteranceBack, Workspace};
use model::config::SrfConfig;
use model::summary::FRAMES_PER_SLICE;
use serde::Serialize;

use super::Preset;
use super::machine::{noise, row, sgemm_gflops, time};
use super::train::{N_FRAMES, N_UTTERANCES};
use crate::printer::Printer;

/// What was measured of one operation; a backward pass counts the products of weights and inputs.
#[derive(Serialize)]
struct Line {
    model: Preset,
    threads: usize,
    row: &'static str,
    operation: String,
    gflops: f64,
    sgemm_gflops: f64,
    share: f64,
    us_per_slice: f64,
}

pub(super) fn run(model: Preset, n_steps: usize, json: bool, out: &Printer) -> anyhow::Result<()> {
    let config = model.config();
    let sgemm_gflops = sgemm_gflops();
    let n_slices = N_FRAMES.div_ceil(FRAMES_PER_SLICE);
    if !json {
        let threads = rayon::current_num_threads();
        out.line(format_args!("{}, {threads} threads, {}: sgemm {sgemm_gflops:.1} GFLOP/s", model.name(), row()))?;
    }
    for (name, routing) in layers(&config) {
        let flops = (2 * N_UTTERANCES * n_slices * routing.n_in * routing.output_len() * routing.depth_in) as f64;
        let (forward, backward) = measure(&routing, n_slices, n_steps);
        for (direction, flops, seconds) in [("forward", flops, forward), ("backward", 2.0 * flops, backward)] {
            let gflops = flops / seconds / 1e9;
            let line = Line {
                model,
                threads: rayon::current_num_threads(),
                row: row(),
                operation: format!("{name} {direction}"),
                gflops,
                sgemm_gflops,
                share: gflops / sgemm_gflops,
                us_per_slice: 1e6 * seconds / (N_UTTERANCES * n_slices) as f64,
            };
            show(&line, json, out)?;
        }
    }
    Ok(())
}

fn show(line: &Line, json: bool, out: &Printer) -> anyhow::Result<()> {
    if json {
        return Ok(out.line(serde_json::to_string(line)?)?);
    }
    let Line { operation, gflops, share, us_per_slice, .. } = line;
    let share = 100.0 * share;
    Ok(out
        .line(format_args!("  {operation:<45} {gflops:>7.1} GFLOP/s {share:>4.0} % {us_per_slice:>7.1} us a slice"))?)
}

/// The distinct capsule layers of a network.
fn layers(config: &SrfConfig) -> Vec<(String, Routing)> {
    let mut layers: Vec<(String, Routing)> = Vec::new();
    for shape in config.capsule_shapes() {
        let routing = model::srf::routing(config, shape);
        if layers.last().is_none_or(|(_, last)| *last != routing) {
            let Routing { n_in, n_out, depth_in, depth_out, .. } = routing;
            layers.push((format!("capsules {n_in} x {depth_in} to {n_out} x {depth_out}"), routing));
        }
    }
    layers
}

/// Seconds of the fastest forward and the fastest backward pass of a batch.
fn measure(routing: &Routing, n_slices: usize, n_steps: usize) -> (f64, f64) {
    let mut packed = Packed::new(routing);
    let n = routing.n_in * routing.output_len();
    let small: Vec<f32> = noise("weights", n * (routing.depth_in + 1)).into_iter().map(|w| 0.1 * w).collect();
    packed.pack(routing, &small[n..], &small[..n]);
    let inputs = noise("inputs", routing.inputs_len(n_slices));
    let mut outputs = vec![vec![0.0; n_slices * routing.output_len()]; N_UTTERANCES];
    let mut saved = vec![vec![0.0; Saved::len(routing, n_slices)]; N_UTTERANCES];
    let mut workspace = Workspace::new();
    let forward = time(n_steps, || {
        let each = outputs.iter_mut().zip(&mut saved);
        let mut utterances: Vec<_> = each
            .map(|(outputs, saved)| Utterance { n_slices, inputs: &inputs, state: &[], outputs, saved, tap: None })
            .collect();
        routing::forward(routing, &packed, &mut utterances, &mut workspace);
    });
    let mut d_inputs = vec![inputs.clone(); N_UTTERANCES];
    let mut d_packed = Packed::new(routing);
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
        routing::backward(routing, &packed, GradientPaths::FULL, &mut utterances, &mut d_packed, &mut workspace);
    });
    let best = |seconds: Vec<f64>| seconds.into_iter().fold(f64::INFINITY, f64::min);
    (best(forward), best(backward))
}
