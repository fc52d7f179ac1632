//! What decoding costs: microseconds a slice for posteriors from sure to unsure, printed as a table.
//!
//! `cargo bench -p text --bench decode`

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::time::Instant;

use text::decode::{Decoder, DecoderConfig, Search};

const N_SLICES: usize = 750;

/// Posteriors of a made-up utterance: a label in every third slice, blanks between, `noise` on all logits.
fn posteriors(n_classes: usize, noise: f32) -> Vec<f32> {
    let mut random = 1u64;
    let mut log_probs = Vec::with_capacity(N_SLICES * n_classes);
    for at in 0..N_SLICES {
        let said = if at % 3 == 0 { 1 + at / 3 * 7 % (n_classes - 2) } else { n_classes - 1 };
        let logits: Vec<f32> = (0..n_classes)
            .map(|class| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let uniform = (random >> 40) as f32 / (1 << 24) as f32;
                noise * uniform + if class == said { 8.0 } else { 0.0 }
            })
            .collect();
        let sum: f32 = logits.iter().map(|x| x.exp()).sum();
        log_probs.extend(logits.iter().map(|x| x - sum.ln()));
    }
    log_probs
}

fn micros_a_slice(n_classes: usize, config: &DecoderConfig, log_probs: &[f32]) -> f64 {
    let once = || {
        let mut decoder = Decoder::new(n_classes, config);
        let start = Instant::now();
        decoder.accept(log_probs);
        assert!(!decoder.finish(1).is_empty());
        start.elapsed().as_secs_f64() * 1e6 / N_SLICES as f64
    };
    (0..7).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("{:>8} {:>6} {:>6} {:>12}", "classes", "beam", "noise", "us a slice");
    for n_classes in [32, 63, 1000] {
        for (noise, width) in [(2.0, 10), (2.0, 100), (6.0, 100), (12.0, 100), (12.0, 1000)] {
            let config = DecoderConfig { search: Search::Beam { width }, ..DecoderConfig::default() };
            let time = micros_a_slice(n_classes, &config, &posteriors(n_classes, noise));
            println!("{n_classes:>8} {width:>6} {noise:>6} {time:>12.1}");
        }
    }
}
