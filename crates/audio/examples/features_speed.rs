//! How many times faster than real time features are computed on one core, compared with `kaldi-native-fbank` if it is installed.
//!
//! ```text
//! cargo run --release -p audio --example features_speed [PYTHON_WITH_KALDI_NATIVE_FBANK]
//! ```

#![allow(clippy::print_stdout, reason = "it prints its figures")]

use std::process::Command;
use std::time::Instant;

use srf_audio::features::{Extractor, FeaturesConfig};

/// Two minutes, several times over, as short recordings would come.
const N_SAMPLES: usize = 120 * 16_000;
const N_ROUNDS: usize = 5;

/// The same work in Python: static features of the same count, no dither, the samples handed over at once.
const KALDI_NATIVE_FBANK: &str = r"
import sys, time
import numpy as np
import kaldi_native_fbank as knf
n = int(sys.argv[1])
samples = (np.arange(n, dtype=np.int64) * 7919 % 20011 - 10005).astype(np.float32)
options = knf.FbankOptions()
options.frame_opts.dither = 0
options.mel_opts.num_bins = 40
options.use_energy = True
best = 0
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    fbank = knf.OnlineFbank(options)
    fbank.accept_waveform(16000, samples)
    fbank.input_finished()
    assert fbank.num_frames_ready == 1 + (n - 400) // 160
    best = max(best, n / 16000 / (time.perf_counter() - start))
print(best)
";

fn main() {
    let samples: Vec<f32> = (0..N_SAMPLES).map(|i| ((i * 7919 % 20_011) as f32 - 10_005.0) / 32768.0).collect();
    let plain = FeaturesConfig { dither: 0.0, delta_order: 0, ..FeaturesConfig::default() };
    println!("static, 41 values, no dither: {:>6.0} times real time", times_real_time(&plain, &samples));
    if let Some(python) = std::env::args().nth(1) {
        let (n_samples, n_rounds) = (N_SAMPLES.to_string(), N_ROUNDS.to_string());
        let output = Command::new(python).args(["-c", KALDI_NATIVE_FBANK, &n_samples, &n_rounds]).output();
        let output = output.expect("python can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let times: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("python printed a number");
        println!("kaldi-native-fbank, the same: {times:>6.0} times real time");
    }
    let full = FeaturesConfig::default();
    println!("123 values with dither:       {:>6.0} times real time", times_real_time(&full, &samples));
}

/// The best of a few rounds.
fn times_real_time(config: &FeaturesConfig, samples: &[f32]) -> f64 {
    let mut extractor = Extractor::new(config).expect("the settings are good");
    let mut frames = Vec::new();
    let mut best = 0.0f64;
    for _ in 0..N_ROUNDS {
        frames.clear();
        let start = Instant::now();
        extractor.accept(samples, &mut frames);
        extractor.finish(&mut frames);
        let duration_s = samples.len() as f64 / f64::from(config.sample_rate_hz);
        best = best.max(duration_s / start.elapsed().as_secs_f64());
    }
    assert_eq!(frames.len(), config.n_frames(samples.len()) * config.n_features());
    best
}
