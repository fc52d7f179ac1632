//! What an utterance sounds like: a recording in, its filterbank energies as a model's front end computes them out.

use asr::Recognizer;
use audio::Recording;
use audio::bulk::Utterance;
use audio::features::{Extractor, FeaturesConfig};
use audio::resample::resample;

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
    /// The bands of an utterance, with the settings of the recogniser but neither deltas nor normalisation.
    pub fn of(recognizer: &Recognizer, utterance: &Utterance) -> Result<Self, AnalyzeError> {
        let config = recognizer.features();
        let config = FeaturesConfig { delta_order: 0, use_energy: false, dither: 0.0, ..config.clone() };
        let samples = Recording::open(&utterance.path)?.read(utterance.selection)?;
        let path = || utterance.path.display().to_string();
        let samples = resample(samples, config.rate_hz)
            .map_err(|cause| AnalyzeError::Accept { path: path(), cause: cause.into() })?;
        let mut extractor = Extractor::new(&config).expect("a front end without deltas is one too");
        let mut values = Vec::new();
        extractor.accept(&samples.values, &mut values);
        extractor.finish(&mut values);
        Ok(Self { n_bands: config.n_mels, shift_s: config.shift_ms / 1000.0, values })
    }

    /// The values between which almost all lie: what is quieter or louder need not be told apart.
    pub fn range(&self) -> (f32, f32) {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| sorted.get((share * sorted.len().saturating_sub(1) as f64) as usize).copied();
        (at(0.02).unwrap_or(0.0), at(0.998).unwrap_or(1.0))
    }
}
