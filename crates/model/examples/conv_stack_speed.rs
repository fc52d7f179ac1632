//! Measures the convolution stack in a training step: `cargo run --release --example conv_stack_speed [THREADS]`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use srf_model::config::SrfConfig;
use srf_model::frames::Frames;
use srf_model::network::{ConvStack, DropoutSeed, Mode, Network};
use srf_model::params::Plan;

const N_UTTERANCES: usize = 23;
const N_FRAMES: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_threads: usize = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build_global()?;
    let config = SrfConfig::new(63);
    let mut plan = Plan::new(config.features);
    let stack = ConvStack::<f32>::new(&mut plan, config.features, config.filters, config.dropout.conv, [0, 0]);
    let (mut net, layout) = Network::from_blocks(plan, ConvStack::<f32>::MARGIN, vec![Box::new(stack)]);
    let wave = |n: usize| (0..n).map(|i| (i as f32 * 0.618).sin() * 0.1).collect::<Vec<f32>>();
    let mut values = wave(layout.n_values());
    let mut x = Frames::new(config.features, net.margin());
    x.resize_for([N_FRAMES; N_UTTERANCES]);
    for utterance in 0..N_UTTERANCES {
        x.real_mut(utterance).copy_from_slice(&wave(N_FRAMES * config.features));
    }
    let utterances: Vec<u64> = (0..N_UTTERANCES as u64).collect();
    let mut gradient = vec![0.0; layout.n_trainable()];
    let mut best = [f64::INFINITY; 2];
    for seed in 0..12 {
        let dropout = Some(DropoutSeed { seed, utterances: &utterances });
        let mode = Mode { uses_batch_statistics: true, dropout, ..Mode::default() };
        let start = Instant::now();
        let d_slices = net.forward(&mut values, mode, &x).clone();
        let forward = start.elapsed().as_secs_f64();
        let start = Instant::now();
        net.backward_from(&values, mode, (&x, &d_slices), &mut gradient);
        let backward = start.elapsed().as_secs_f64();
        best = [best[0].min(forward), best[1].min(backward)];
    }
    let [forward, backward] = best.map(|seconds| 1e3 * seconds);
    println!(
        "{N_UTTERANCES} x {N_FRAMES} frames, {n_threads} threads: forward {forward:.1} ms, backward {backward:.1} ms, \
         both {:.1} ms",
        forward + backward
    );
    Ok(())
}
