//! How fast routing runs beside sgemm: `cargo run --release -p kernels --example routing_speed`.
//!
//! Prints GFLOP/s counted on the votes alone (2 n_in n_out depth_in depth_out a slice), and their share of sgemm's.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use kernels::routing::{self, GradientPaths, Packed, Routing, Saved, Utterance, UtteranceBack, Workspace};

fn main() {
    let sgemm = sgemm_gflops();
    println!("sgemm 1024^3: {sgemm:.1} GFLOP/s");
    let shapes = [
        ("middle layer, 90 to 30, depth 8", 90, 30, 8, 30),
        ("first layer, 180 to 30, depth 8", 180, 30, 8, 60),
        ("last layer, 90 to 63, depth 8", 90, 63, 8, 30),
        ("big middle layer, 150 to 30, depth 20", 150, 30, 20, 30),
    ];
    for (name, n_in, n_out, depth, height) in shapes {
        let routing = Routing {
            n_in,
            n_out,
            depth_in: depth,
            depth_out: depth,
            stride: height * depth,
            n_iterations: 1,
            is_sequential: true,
            has_padding_class: false,
        };
        for n_utterances in [1, 4, 12] {
            let (forward, backward) = speed(&routing, n_utterances);
            let share = |rate: f64| 100.0 * rate / sgemm;
            println!(
                "{name}, {n_utterances} utterances: forward {forward:.1} ({:.0} %), backward {backward:.1} ({:.0} %)",
                share(forward),
                share(backward)
            );
        }
    }
}

/// GFLOP/s of the forward and the backward pass on one thread; the backward pass counts three times the votes.
fn speed(routing: &Routing, n_utterances: usize) -> (f64, f64) {
    let n_slices = 75;
    let packed = {
        let mut packed = Packed::new(routing);
        let n = routing.n_in * routing.output_len();
        packed.pack(routing, &noise(n * routing.depth_in, 0.1), &noise(n, 0.1));
        packed
    };
    let inputs = noise(routing.inputs_len(n_slices), 1.0);
    let mut outputs = vec![vec![0.0; n_slices * routing.output_len()]; n_utterances];
    let mut saved = vec![vec![0.0; Saved::len(routing, n_slices)]; n_utterances];
    let mut workspace = Workspace::new();
    let flops = (2 * n_utterances * n_slices * routing.n_in * routing.output_len() * routing.depth_in) as f64;
    let forward = best(|| {
        let mut utterances: Vec<_> = outputs
            .iter_mut()
            .zip(&mut saved)
            .map(|(outputs, saved)| Utterance { n_slices, inputs: &inputs, state: &[], outputs, saved, tap: None })
            .collect();
        routing::forward(routing, &packed, &mut utterances, &mut workspace);
    });
    let mut d_inputs = vec![inputs.clone(); n_utterances];
    let mut d_packed = Packed::new(routing);
    let backward = best(|| {
        let mut utterances: Vec<_> = d_inputs
            .iter_mut()
            .enumerate()
            .map(|(n, d_inputs)| UtteranceBack {
                n_slices,
                inputs: &inputs,
                state: &[],
                outputs: &outputs[n],
                saved: &saved[n],
                d_outputs: &outputs[n],
                d_inputs,
            })
            .collect();
        routing::backward(routing, &packed, GradientPaths::FULL, &mut utterances, &mut d_packed, &mut workspace);
    });
    (flops / forward / 1e9, 3.0 * flops / backward / 1e9)
}

/// Seconds of the fastest of some runs on one thread.
fn best(mut run: impl FnMut() + Send) -> f64 {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    pool.install(|| {
        run();
        (0..12)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min)
    })
}

fn sgemm_gflops() -> f64 {
    let n = 1024;
    let (a, b, mut c) = (noise(n * n, 1.0), noise(n * n, 1.0), vec![0.0f32; n * n]);
    let seconds = best(|| {
        // SAFETY: the three matrices have n x n elements with these strides.
        unsafe {
            gemm::gemm(
                n,
                n,
                n,
                c.as_mut_ptr(),
                1,
                n as isize,
                false,
                a.as_ptr(),
                1,
                n as isize,
                b.as_ptr(),
                1,
                n as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    });
    2.0 * (n as f64).powi(3) / seconds / 1e9
}

fn noise(n: usize, scale: f32) -> Vec<f32> {
    (0..n).map(|k| ((k * 7919 % 1009) as f32 / 504.5 - 1.0) * scale).collect()
}
