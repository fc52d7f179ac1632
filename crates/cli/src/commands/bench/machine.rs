//! Measurements of the machine: time, the rate of matrix products, memory.

use std::time::Instant;

use rayon::prelude::*;
use srf_kernels::{Element, View, product};
use srf_model::random::Random;

/// The duration of each of `n_steps` runs in seconds, after two runs of warm-up.
pub(super) fn time(n_steps: usize, mut run: impl FnMut()) -> Vec<f64> {
    run();
    run();
    (0..n_steps.max(1))
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect()
}

/// The total rate of products of 1024 x 1024 matrices, one per thread.
pub(super) fn sgemm_gflops() -> f64 {
    const N: usize = 1024;
    let n_threads = rayon::current_num_threads();
    let (a, b) = (noise("a", N * N), noise("b", N * N));
    let mut out = vec![vec![0.0f32; N * N]; n_threads];
    let view = |data| View { data, row: N, col: 1 };
    let seconds = time(9, || out.par_iter_mut().for_each(|out| product([N; 3], view(&a), view(&b), false, out)));
    let best = seconds.into_iter().fold(f64::INFINITY, f64::min);
    2.0 * (N as f64).powi(3) * n_threads as f64 / best / 1e9
}

/// `n` standard normal numbers; the same for the same name.
pub(super) fn noise(name: &str, n: usize) -> Vec<f32> {
    let mut random = Random::new(0, name);
    (0..n).map(|_| random.normal() as f32).collect()
}

/// The name of the kernels in use.
pub(super) fn row() -> &'static str {
    f32::kernels().name
}

/// Peak memory of this process, if the system reports it.
pub(super) fn peak_mb() -> Option<f64> {
    status_mb("VmHWM:")
}

/// Current memory of this process, if the system reports it.
pub(super) fn resident_mb() -> Option<f64> {
    status_mb("VmRSS:")
}

fn status_mb(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
