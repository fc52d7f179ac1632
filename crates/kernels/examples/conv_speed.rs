//! How fast the convolutions of SRF-7L run on one core, in GFLOP/s, compared with a matrix product in the same run.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use srf_kernels::{Branch, Conv, ConvWeights, Dropout, Element, Kernels, View, product};

fn main() {
    let first = Conv { kernel: [3, 3], stride: [2, 2], n_freq: 123, pad_freq: [1, 1], n_channels: 1, n_filters: 64 };
    let second = Conv { n_freq: 62, pad_freq: [0, 1], n_channels: 64, ..first };
    let encaps = Conv { stride: [1, 1], n_freq: 60, pad_freq: [1, 1], n_filters: 8, ..first };
    let sgemm = sgemm_gflops();
    println!("sgemm 1024^3: {sgemm:.1} GFLOP/s; an utterance of 300 frames:");
    for row in &f32::rows()[1..] {
        measure(row, ("first", first, 150), sgemm);
        measure(row, ("second", second, 75), sgemm);
        measure(row, ("encaps", encaps, 75), sgemm);
    }
}

fn measure(row: &Kernels<f32>, (name, conv, n_frames): (&str, Conv, usize), sgemm: f64) {
    let n_taps = conv.kernel[0] * conv.kernel[1] * conv.n_channels;
    let kernels = [0.1, 0.2].map(|step| wave(n_taps * conv.n_filters, step));
    let branches = [0, 1].map(|i| Branch { kernel: &kernels[i], bias: None });
    let mut weights = ConvWeights::new(conv);
    weights.pack(branches);
    weights.pack_backward(branches);
    let x = wave(conv.n_frames_read(n_frames) * conv.width_in(), 0.3);
    let mut out = vec![0.0; n_frames * conv.width_out()];
    let mut choices = vec![0; out.len()];
    let dropout = Dropout::new(0.2, 1, 2, 3);
    let flop = (2 * n_frames * conv.n_freq_out() * n_taps * 2 * conv.n_filters) as f64;
    let report = |what: &str, seconds: f64| {
        let (ms, gflops) = (seconds * 1e3, flop / seconds / 1e9);
        println!("{:7} {name:6} {what:8} {ms:7.3} ms {gflops:6.1} GFLOP/s {:4.0} %", row.name, 100.0 * gflops / sgemm);
    };
    report("forward", shortest(|| (row.conv_forward)(&weights, &x, dropout, &mut out, &mut choices)));
    let mut spread = vec![0.0; conv.n_spread(n_frames)];
    let seconds = shortest(|| (row.conv_spread)(&conv, dropout, &out, &choices, &mut spread));
    println!("{:7} {name:6} spread   {:7.3} ms", row.name, seconds * 1e3);
    let mut grad = vec![0.0; conv.n_gradient()];
    report("dW", shortest(|| (row.conv_weight_gradient)(&conv, &x, &spread, n_frames, &mut grad)));
    let mut d_x = vec![0.0; x.len() - conv.width_in()];
    let mut used_up = spread.clone();
    let both = shortest(|| {
        used_up.copy_from_slice(&spread);
        (row.conv_input_gradient)(&weights, &mut used_up, n_frames, 1, &mut d_x);
    });
    report("dX", both - shortest(|| black_box(&mut used_up).copy_from_slice(&spread)));
}

/// The shortest of many runs, in seconds.
fn shortest(mut run: impl FnMut()) -> f64 {
    let mut shortest = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 0.4 {
        let begin = Instant::now();
        run();
        shortest = shortest.min(begin.elapsed().as_secs_f64());
    }
    shortest
}

fn sgemm_gflops() -> f64 {
    const N: usize = 1024;
    let (a, b, mut c) = (wave(N * N, 0.1), wave(N * N, 0.2), vec![0.0; N * N]);
    let seconds = shortest(|| {
        let view = |data| View { data, row: N, col: 1 };
        product([N, N, N], view(&a), view(&b), false, &mut c);
        black_box(&mut c);
    });
    2.0 * (N * N * N) as f64 / seconds / 1e9
}

/// Values from -1 to 1 with no pattern that matters.
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}
