//! The first part of a stream: samples of any rate in, feature frames out, before normalisation.

use srf_audio::features::Extractor;
use srf_audio::resample::{ResampleError, Resampler};

/// Louder than this is no sound but a broken file; kept within, features stay finite.
const LOUDEST: f32 = 1e9;

/// Why samples were not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// A rate that cannot be resampled.
    #[error(transparent)]
    Rate(#[from] ResampleError),
    /// A stream has one rate.
    #[error("the stream started at {expected_hz} Hz and goes on at {found_hz} Hz, expected one rate until it is reset")]
    RateChanged {
        /// The rate of these samples.
        found_hz: u32,
        /// The rate of those before.
        expected_hz: u32,
    },
    /// A sample that is no number.
    #[error("sample {index} of the stream is {found}, expected a finite number")]
    NotFinite {
        /// Which sample, counted from the start of the stream.
        index: u64,
        /// What it is.
        found: f32,
    },
    /// The network needs the whole utterance, and memory has an end.
    #[error("the model needs the whole utterance and takes at most {limit_s} s of it")]
    TooLong {
        /// The limit.
        limit_s: f64,
    },
}

impl AcceptError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLong { .. } => Some("cut the recording, or take a model that streams".to_owned()),
            _ => None,
        }
    }
}

/// One speaker's samples on their way to features.
pub(crate) struct Front {
    model_hz: u32,
    rate_hz: u32,
    /// Where the rate is not the model's.
    resampler: Option<Resampler>,
    n_samples: u64,
    extractor: Extractor,
    samples: Vec<f32>,
}

impl Front {
    /// For a model that reads the frames of `extractor`, which is at its start, from samples at `model_hz`.
    pub(crate) fn new(extractor: Extractor, model_hz: u32) -> Self {
        Self { model_hz, rate_hz: model_hz, resampler: None, n_samples: 0, extractor, samples: Vec::new() }
    }

    /// Takes samples and appends the frames that they complete.
    pub(crate) fn accept(&mut self, samples: &[f32], rate_hz: u32, frames: &mut Vec<f32>) -> Result<(), AcceptError> {
        self.start(rate_hz)?;
        if let Some(at) = samples.iter().position(|value| !value.is_finite()) {
            return Err(AcceptError::NotFinite { index: self.n_samples + at as u64, found: samples[at] });
        }
        self.n_samples += samples.len() as u64;
        match &mut self.resampler {
            Some(resampler) => resampler.accept(samples, &mut self.samples),
            None => self.samples.extend_from_slice(samples),
        }
        self.extract(frames);
        Ok(())
    }

    /// Appends the frames that were waiting for later ones; a new utterance begins.
    pub(crate) fn flush(&mut self, frames: &mut Vec<f32>) {
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.samples);
        }
        self.extract(frames);
        self.extractor.finish(frames);
    }

    /// Forgets everything, the rate too.
    pub(crate) fn reset(&mut self) {
        self.resampler = None;
        self.rate_hz = self.model_hz;
        self.n_samples = 0;
        self.extractor.reset();
    }

    /// How much was heard since the start.
    pub(crate) fn heard_s(&self) -> f64 {
        self.n_samples as f64 / f64::from(self.rate_hz)
    }

    fn start(&mut self, rate_hz: u32) -> Result<(), AcceptError> {
        let expected_hz = self.rate_hz;
        if rate_hz == expected_hz {
            return Ok(());
        }
        if 0 < self.n_samples {
            return Err(AcceptError::RateChanged { found_hz: rate_hz, expected_hz });
        }
        let resampler = Resampler::new(rate_hz, self.model_hz)?;
        self.resampler = (rate_hz != self.model_hz).then_some(resampler);
        self.rate_hz = rate_hz;
        Ok(())
    }

    fn extract(&mut self, frames: &mut Vec<f32>) {
        self.samples.iter_mut().for_each(|value| *value = value.clamp(-LOUDEST, LOUDEST));
        self.extractor.accept(&self.samples, frames);
        self.samples.clear();
    }
}
