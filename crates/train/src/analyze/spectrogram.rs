//! What an utterance sounds like: a recording in, its filterbank energies as a model's front end computes them out.

use srf::Recognizer;
use srf_audio::bulk::Utterance;
use srf_audio::features::{FeaturesConfig, extract};
use srf_audio::resample::resample;
use srf_audio::{Recording, Samples};

use super::AnalyzeError;

/// Log energies of mel bands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectrogram {
    /// Bands of a frame, the lowest first.
    pub n_bands: usize,
    /// From one frame to the next.
    pub shift_s: f64,
    /// `[frames, n_bands]`.
    pub values: Vec<f32>,
}

impl Spectrogram {
    /// The bands of samples at the model's rate, with the settings of the recogniser but neither deltas nor
    /// normalisation.
    pub fn of(recognizer: &Recognizer, samples: &Samples) -> Self {
        let config = recognizer.features();
        let config = FeaturesConfig { delta_order: 0, energy: false, dither: 0.0, ..config.clone() };
        let frames = extract(&config, &samples.values).expect("a front end without deltas is one too");
        Self { n_bands: config.mel_bins, shift_s: config.shift_ms / 1000.0, values: frames.values }
    }

    /// The values between which almost all lie: what is quieter or louder need not be told apart.
    pub fn range(&self) -> (f32, f32) {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| sorted.get((share * sorted.len().saturating_sub(1) as f64) as usize).copied();
        (at(0.05).unwrap_or(0.0), at(0.998).unwrap_or(1.0))
    }
}

/// The samples of an utterance at the rate of a model.
pub fn samples(recognizer: &Recognizer, utterance: &Utterance) -> Result<Samples, AnalyzeError> {
    let samples = Recording::open(&utterance.path)?.read(utterance.selection)?;
    let path = || utterance.path.display().to_string();
    resample(samples, recognizer.features().sample_rate_hz)
        .map_err(|cause| AnalyzeError::Accept { path: path(), cause: cause.into() })
}
