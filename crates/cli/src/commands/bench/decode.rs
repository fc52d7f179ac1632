//! The forward pass of one utterance through the stream.

use std::sync::Arc;

use model::init::initialise;
use model::params::SrfParams;
use model::stream::StreamingSrf;
use model::summary::FRAMES_PER_SLICE;

use super::machine::{noise, time};
use super::train::N_FRAMES;
use super::{Preset, Report};

/// A step is short here: as many as fill a moment.
const RUNS_PER_STEP: usize = 10;

pub(super) fn measure(model: Preset, n_steps: usize) -> Report {
    let config = model.config();
    let params = initialise::<f32>(Arc::new(SrfParams::new(&config).1), 0);
    let net = Arc::new(StreamingSrf::new(&config, &params.values));
    let x = noise("utterance", N_FRAMES * config.features);
    let mut stream = net.stream();
    let mut log_probs = Vec::new();
    let seconds = time(n_steps * RUNS_PER_STEP, || {
        log_probs.clear();
        stream.accept(&x, &mut log_probs);
        stream.finish(&mut log_probs);
    });
    let n_slices = N_FRAMES.div_ceil(FRAMES_PER_SLICE);
    let flops = n_slices as f64 * config.flops_per_slice() as f64;
    Report::new("decode", model, N_FRAMES, flops, seconds)
}
