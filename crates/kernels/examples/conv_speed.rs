//! How fast the front end's second convolution runs: nothing in, GFLOP/s beside those of a matrix product out.

use std::hint::black_box;
use std::time::Instant;

use kernels::{Branch, Conv, ConvWeights, Dropout, Element, Kernels};

const N_FRAMES_OUT: usize = 75;

fn main() {
    let stages = [
        (
            "conv1",
            Conv { kernel: [3, 3], stride: [2, 2], n_freq: 123, pad_freq: [1, 1], n_channels: 1, n_filters: 64 },
            150,
        ),
        (
            "conv2",
            Conv { kernel: [3, 3], stride: [2, 2], n_freq: 62, pad_freq: [0, 1], n_channels: 64, n_filters: 64 },
            N_FRAMES_OUT,
        ),
    ];
    for _ in 0..2 {
        let sgemm = sgemm_gflops();
        println!("sgemm 1024^3: {sgemm:.1} GFLOP/s");
        for row in &f32::rows()[1..] {
            for (name, conv, n_frames) in &stages {
                measure(row, name, *conv, *n_frames, sgemm);
            }
        }
    }
}

fn measure(row: &Kernels<f32>, name: &str, conv: Conv, n_frames: usize, sgemm: f64) {
    let mut random = Random(1);
    let n_taps = conv.kernel[0] * conv.kernel[1] * conv.n_channels;
    let kernels = [0, 1].map(|_| random.values(n_taps * conv.n_filters));
    let branches = [0, 1].map(|i| Branch { kernel: &kernels[i], bias: None });
    let mut weights = ConvWeights::new(conv);
    weights.pack(branches);
    weights.pack_backward(branches);
    let n_read = conv.n_frames_read(n_frames);
    let x = random.values(n_read * conv.width_in());
    let mut out = vec![0.0; n_frames * conv.width_out()];
    let mut choices = vec![0; out.len()];
    let dropout = Dropout::new(0.2, 1, 2, 3);
    let flop = (2 * n_frames * conv.n_freq_out() * n_taps * 2 * conv.n_filters) as f64;
    let report = |what: &str, seconds: f64| {
        let gflops = flop / seconds / 1e9;
        println!(
            "  {:7} {name} {what:9} {:8.3} ms {gflops:6.1} GFLOP/s {:4.0} %",
            row.name,
            seconds * 1e3,
            100.0 * gflops / sgemm
        );
    };
    report("forward", best(|| (row.conv_forward)(&weights, &x, dropout, &mut out, &mut choices)));
    let mut spread = vec![0.0; conv.n_spread(n_frames)];
    report("spread", best(|| (row.conv_spread)(&conv, dropout, &out, &choices, &mut spread)));
    let mut grad_x = vec![0.0; x.len() - conv.width_in()];
    report("dX", best(|| (row.conv_input_gradient)(&weights, &spread, n_frames, 1, &mut grad_x)));
    let mut grad = vec![0.0; conv.n_gradient()];
    report("dW", best(|| (row.conv_weight_gradient)(&conv, &x, &spread, n_frames, &mut grad)));
}

/// The shortest of many runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
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
    let mut random = Random(1);
    let (a, b, mut c) = (random.values(N * N), random.values(N * N), vec![0.0f32; N * N]);
    let seconds = best(|| {
        // SAFETY: three square matrices of N by N.
        unsafe {
            gemm::gemm(
                N,
                N,
                N,
                c.as_mut_ptr(),
                1,
                N as isize,
                false,
                a.as_ptr(),
                1,
                N as isize,
                b.as_ptr(),
                1,
                N as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
        black_box(&mut c);
    });
    2.0 * (N * N * N) as f64 / seconds / 1e9
}

/// A linear congruential generator: enough to fill matrices.
struct Random(u64);

impl Random {
    fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| {
                self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }
}
