//! What the tests of several readers need: a recording, and problems as text.

use std::path::Path;

use super::Problem;

/// A tone of this length at 16 kHz.
pub(crate) fn save_wav(path: &Path, seconds: f64) {
    let n_samples = (seconds * 16_000.0) as usize;
    let values = (0..n_samples).map(|i| 0.03 * (i as f32 * 0.1).sin()).collect();
    srf_audio::wav::save(path, &srf_audio::Samples { rate_hz: 16_000, values }).unwrap();
}

pub(crate) fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
