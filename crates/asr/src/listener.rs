//! The hearing half of a stream: samples of any rate in, log-probabilities out, with nothing decided yet.
//!
//! Resampling, features, normalisation and network, each the streaming form and none of whose bits depends on how the
//! samples are cut.

use std::sync::Arc;

use audio::features::Extractor;
use audio::features::cmvn::{Cmvn, CmvnMode, CmvnStats, OnlineCmvn};
use audio::resample::{ResampleError, Resampler};
use model::inference::InferenceStream;

use crate::recognizer::Shared;

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
}

/// How the frames of a stream are normalised.
enum Normaliser {
    None,
    Fixed(Cmvn),
    Online(OnlineCmvn),
}

impl Normaliser {
    fn apply(&mut self, frames: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Fixed(cmvn) => cmvn.apply(frames),
            Self::Online(cmvn) => cmvn.apply(frames),
        }
    }
}

/// One speaker's samples on their way to log-probabilities.
pub struct Listener {
    shared: Arc<Shared>,
    /// The speaker's own statistics, if known.
    statistics: Option<CmvnStats>,
    resampler: Option<Resampler>,
    rate_hz: u32,
    n_samples: u64,
    extractor: Extractor,
    normaliser: Normaliser,
    network: InferenceStream<f32>,
    samples: Vec<f32>,
    frames: Vec<f32>,
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, statistics: Option<CmvnStats>) -> Self {
        Self {
            normaliser: normaliser(&shared, statistics.as_ref()),
            extractor: shared.extractor.clone(),
            network: shared.network.stream(),
            resampler: None,
            rate_hz: shared.front_end.rate_hz,
            n_samples: 0,
            samples: Vec::new(),
            frames: Vec::new(),
            statistics,
            shared,
        }
    }

    /// Takes samples on the scale of 16-bit integers, at `rate_hz`, and appends the log-probabilities that they
    /// complete.
    pub fn accept(&mut self, samples: &[f32], rate_hz: u32, log_probs: &mut Vec<f32>) -> Result<(), AcceptError> {
        self.start(rate_hz)?;
        if let Some(at) = samples.iter().position(|value| !value.is_finite()) {
            return Err(AcceptError::NotFinite { index: self.n_samples + at as u64, found: samples[at] });
        }
        self.n_samples += samples.len() as u64;
        self.samples.clear();
        match &mut self.resampler {
            Some(resampler) => resampler.accept(samples, &mut self.samples),
            None => self.samples.extend_from_slice(samples),
        }
        self.hear(log_probs);
        Ok(())
    }

    /// Appends the log-probabilities that were waiting for what comes after; what follows is a new utterance of the
    /// same speaker.
    pub fn flush(&mut self, log_probs: &mut Vec<f32>) {
        self.samples.clear();
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.samples);
        }
        self.hear(log_probs);
        self.frames.clear();
        self.extractor.finish(&mut self.frames);
        self.normaliser.apply(&mut self.frames);
        self.network.accept(&self.frames, log_probs);
        self.network.finish(log_probs);
    }

    /// Forgets everything heard, the rate too.
    pub fn reset(&mut self) {
        self.resampler = None;
        self.n_samples = 0;
        self.extractor.reset();
        self.network.reset();
        self.normaliser = normaliser(&self.shared, self.statistics.as_ref());
    }

    /// How much was heard since the start.
    pub fn heard_s(&self) -> f64 {
        self.n_samples as f64 / f64::from(self.rate_hz)
    }

    fn start(&mut self, rate_hz: u32) -> Result<(), AcceptError> {
        let expected_hz = self.rate_hz;
        if 0 < self.n_samples && rate_hz != expected_hz {
            return Err(AcceptError::RateChanged { found_hz: rate_hz, expected_hz });
        }
        if self.n_samples == 0 && (self.resampler.is_none() || rate_hz != expected_hz) {
            let model_hz = self.shared.front_end.rate_hz;
            let resampler = Resampler::new(rate_hz, model_hz)?;
            self.resampler = (rate_hz != model_hz).then_some(resampler);
            self.rate_hz = rate_hz;
        }
        Ok(())
    }

    /// Takes what is in `samples` through features, normalisation and network.
    fn hear(&mut self, log_probs: &mut Vec<f32>) {
        self.samples.iter_mut().for_each(|value| *value = value.clamp(-LOUDEST, LOUDEST));
        self.frames.clear();
        self.extractor.accept(&self.samples, &mut self.frames);
        if !self.frames.is_empty() {
            self.normaliser.apply(&mut self.frames);
            self.network.accept(&self.frames, log_probs);
        }
    }
}

fn normaliser(shared: &Shared, statistics: Option<&CmvnStats>) -> Normaliser {
    let config = &shared.front_end.cmvn;
    match config.mode {
        CmvnMode::Off => Normaliser::None,
        CmvnMode::Online => {
            let n_dims = shared.front_end.n_dims();
            Normaliser::Online(OnlineCmvn::new(config, n_dims, statistics.cloned(), shared.cmvn.clone()))
        }
        CmvnMode::Global => fixed(shared.cmvn.as_ref(), config.norm_vars),
        CmvnMode::Speaker | CmvnMode::Utterance => fixed(statistics.or(shared.cmvn.as_ref()), config.norm_vars),
    }
}

fn fixed(statistics: Option<&CmvnStats>, norm_vars: bool) -> Normaliser {
    statistics.map_or(Normaliser::None, |stats| Normaliser::Fixed(Cmvn::new(stats, norm_vars)))
}
