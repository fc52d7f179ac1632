//! The forward pass of one utterance through the stream.

use std::sync::Arc;

use model::inference::Inference;
use model::init::initialise;
use model::params::Layout;

use super::machine::{noise, time};
use super::train::N_FRAMES;
use super::{Preset, Report};

/// A step is short here: as many as fill a moment.
const RUNS_PER_STEP: usize = 10;

pub(super) fn measure(model: Preset, n_steps: usize) -> Report {
    let config = model.config();
    let params = initialise::<f32>(Arc::new(Layout::new(&config)), 0);
    let net = Inference::new(&config, &params.values);
    let x = noise("utterance", N_FRAMES * config.n_features());
    let mut stream = net.stream();
    let mut log_probs = Vec::new();
    let seconds = time(n_steps * RUNS_PER_STEP, || {
        log_probs.clear();
        stream.accept(&x, &mut log_probs);
        stream.finish(&mut log_probs);
    });
    Report::new("decode", model, N_FRAMES, config.flops(N_FRAMES) as f64, seconds)
}
