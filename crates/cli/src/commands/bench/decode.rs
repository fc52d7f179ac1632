//! The streaming forward pass of one utterance, and the beam search on its output.

use std::sync::Arc;

use serde::Serialize;
use srf_model::config::ModelConfig;
use srf_model::inference::Inference;
use srf_model::params::{Layout, Params};
use srf_text::decode::{Decoder, DecoderConfig, Search};

use super::machine::{noise, time};
use super::train::N_FRAMES;
use super::{Report, Subject};
use crate::printer::Printer;

/// One run is too short to measure well.
const RUNS_PER_STEP: usize = 10;

pub(super) fn measure(subject: &Subject, n_steps: usize) -> Report {
    let config = &subject.config;
    let (seconds, _) = forward(config, n_steps);
    Report::new("decode", subject, N_FRAMES, config.flops(N_FRAMES) as f64, seconds)
}

/// The duration of each forward pass in seconds, and the log-probabilities.
fn forward(config: &ModelConfig, n_steps: usize) -> (Vec<f64>, Vec<f32>) {
    let params = Params::<f32>::initialize(Arc::new(Layout::new(config)), 0);
    let net = Inference::new(config, &params.values);
    let x = noise("utterance", N_FRAMES * config.n_features());
    let mut stream = net.stream();
    let mut log_probs = Vec::new();
    let seconds = time(n_steps * RUNS_PER_STEP, || {
        log_probs.clear();
        stream.accept(&x, &mut log_probs);
        stream.finish(&mut log_probs);
    });
    (seconds, log_probs)
}

/// The cost of the beam search relative to the network.
#[derive(Serialize)]
struct BeamReport<'a> {
    what: &'static str,
    model: &'a str,
    beam: usize,
    frames: usize,
    network_ms: f64,
    beam_ms: f64,
    /// Share of the beam search in the total.
    beam_share: f64,
}

/// Network and beam search on the same frames, the fastest run of each.
///
/// The nearly uniform outputs of random weights are the hardest case for a beam search.
pub(super) fn beam(subject: &Subject, n_steps: usize, width: usize, json: bool, out: &Printer) -> anyhow::Result<()> {
    let config = &subject.config;
    let (network_s, log_probs) = forward(config, n_steps);
    let search = if width == 0 { Search::Greedy } else { Search::Beam { width } };
    let mut decoder = Decoder::new(config.n_classes(), &DecoderConfig { search, ..DecoderConfig::default() });
    let beam_s = time(n_steps * RUNS_PER_STEP, || {
        decoder.accept(&log_probs);
        decoder.finish(1);
    });
    let fastest_ms = |seconds: Vec<f64>| 1000.0 * seconds.into_iter().fold(f64::INFINITY, f64::min);
    let (network_ms, beam_ms) = (fastest_ms(network_s), fastest_ms(beam_s));
    let beam_share = beam_ms / (network_ms + beam_ms);
    let report = BeamReport {
        what: "beam",
        model: &subject.name,
        beam: width,
        frames: N_FRAMES,
        network_ms,
        beam_ms,
        beam_share,
    };
    if json {
        return Ok(out.line(serde_json::to_string(&report)?)?);
    }
    Ok(out.line(format_args!(
        "{}, {N_FRAMES} frames: network {network_ms:.2} ms, beam {width} {beam_ms:.2} ms, {:.0} % of both",
        subject.name,
        100.0 * beam_share
    ))?)
}
