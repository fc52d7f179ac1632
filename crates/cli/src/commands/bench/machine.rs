//! What the machine gives: threads, the rate of matrix products, peak memory.

use std::time::Instant;

use rayon::prelude::*;
use srf_kernels::{Element, View, product};
use srf_model::random::Random;

/// Seconds of each of `n_steps` runs, after two that warm up.
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

/// Products of 1024 x 1024 matrices, one on every thread at once, added up.
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

/// `n` numbers, normal around 0 with deviation 1, by the name of what they are for.
pub(super) fn noise(name: &str, n: usize) -> Vec<f32> {
    let mut random = Random::new(0, name);
    (0..n).map(|_| random.normal() as f32).collect()
}

/// Which kernels are in use.
pub(super) fn row() -> &'static str {
    f32::kernels().name
}

/// The most memory this process ever held, where the system tells.
pub(super) fn peak_mb() -> Option<f64> {
    status_mb("VmHWM:")
}

/// The memory this process holds now, where the system tells.
pub(super) fn resident_mb() -> Option<f64> {
    status_mb("VmRSS:")
}

fn status_mb(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
