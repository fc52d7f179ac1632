//! The acoustic half of a stream: samples of any rate to log-probabilities.
//!
//! Resampling, features, normalisation and network, each in its streaming form. No bit of the result depends on how
//! the samples are cut into pieces.

use std::sync::Arc;

use srf_audio::features::Extractor;
use srf_audio::features::cmvn::{CmvnStats, Normalizer};
use srf_audio::resample::{ResampleError, Resampler};
use srf_model::inference::InferenceStream;
use srf_model::stream::{TapConfig, Taps};

use crate::recognizer::Shared;

/// The longest utterance for a network that needs all of it: the memory of attention grows with its square.
const MAX_OFFLINE_S: f64 = 300.0;

/// Why samples were not accepted.
///
/// ```
/// use srf::AcceptError;
///
/// # let recognizer = srf::doc::recognizer();
/// let mut stream = recognizer.stream(&Default::default())?;
/// stream.accept(&[0.0; 800], 16_000)?;
/// assert!(matches!(stream.accept(&[0.0; 800], 8_000), Err(AcceptError::RateChanged { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    #[error(transparent)]
    Rate(#[from] ResampleError),
    #[error("the stream started at {expected_hz} Hz and goes on at {found_hz} Hz, expected one rate until it is reset")]
    RateChanged { found_hz: u32, expected_hz: u32 },
    #[error("sample {index} of the stream is {found}, expected a finite number")]
    NotFinite { index: u64, found: f32 },
    #[error("the model needs the whole utterance and takes at most {limit_s} s of it")]
    TooLong { limit_s: f64 },
}

impl AcceptError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLong { .. } => Some(
                "cut the recording (`--vad` does it at pauses, with `--vad-max-speech` if need be), or use a model that \
                 streams"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The acoustic half of a [`Stream`](crate::Stream): it computes log-probabilities and decides nothing.
///
/// ```
/// # let recognizer = srf::doc::recognizer();
/// let mut listener = recognizer.listener(None)?;
/// let mut log_probs = Vec::new();
/// listener.accept(&[0.0; 16_000], 16_000, &mut log_probs)?;
/// listener.flush(&mut log_probs);
/// assert_eq!(log_probs.len() % recognizer.labels().n_classes(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Listener {
    shared: Arc<Shared>,
    /// The speaker's statistics, if known.
    statistics: Option<CmvnStats>,
    front: Front,
    normalizer: Normalizer,
    network: InferenceStream<f32>,
    frames: Vec<f32>,
    /// Where the utterance began.
    start_s: f64,
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, statistics: Option<CmvnStats>) -> Self {
        Self {
            front: shared.front(),
            normalizer: shared.normalizer(statistics.as_ref()),
            network: shared.network.stream(),
            frames: Vec::new(),
            start_s: 0.0,
            statistics,
            shared,
        }
    }

    /// Accepts samples from -1 to 1 and appends the log-probabilities that they complete.
    pub fn accept(&mut self, samples: &[f32], rate_hz: u32, log_probs: &mut Vec<f32>) -> Result<(), AcceptError> {
        self.check(samples, rate_hz, self.front.n_samples)?;
        self.append(samples, log_probs);
        Ok(())
    }

    /// The same without checks: samples at the rate of the stream.
    pub(crate) fn append(&mut self, samples: &[f32], log_probs: &mut Vec<f32>) {
        self.front.append(samples, &mut self.frames);
        self.advance(log_probs);
    }

    /// An error unless the samples, after `n_before` others of the stream, can be accepted at this rate.
    pub(crate) fn check(&mut self, samples: &[f32], rate_hz: u32, n_before: u64) -> Result<(), AcceptError> {
        if self.is_offline() && MAX_OFFLINE_S < self.accepted_s() - self.start_s {
            return Err(AcceptError::TooLong { limit_s: MAX_OFFLINE_S });
        }
        self.front.check(samples, rate_hz, n_before)
    }

    /// Leaves out samples at the rate of the stream: only its time goes on. The utterance must have ended.
    pub(crate) fn skip(&mut self, n_samples: usize) {
        self.front.n_samples += n_samples as u64;
        self.start_s = self.accepted_s();
    }

    /// Ends the utterance: appends the log-probabilities that were waiting for later samples. What follows is a new
    /// utterance of the same speaker.
    pub fn flush(&mut self, log_probs: &mut Vec<f32>) {
        self.front.flush(&mut self.frames);
        self.advance(log_probs);
        self.network.finish(log_probs);
        self.start_s = self.accepted_s();
    }

    /// Returns to the start: forgets all samples and their rate.
    pub fn reset(&mut self) {
        self.front.reset();
        self.start_s = 0.0;
        self.network.reset();
        self.normalizer = self.shared.normalizer(self.statistics.as_ref());
    }

    /// Opens or closes a tap on the routing. Returns `false` if the network has no routing.
    ///
    /// ```
    /// use srf::Listener;
    /// use srf::model::stream::TapConfig;
    ///
    /// # let recognizer = srf::doc::recognizer();
    /// let mut listener: Listener = recognizer.listener(None)?;
    /// assert!(listener.tap(Some(TapConfig::default())), "only networks of capsules have taps");
    /// let mut log_probs = Vec::new();
    /// listener.accept(&[0.0; 16_000], 16_000, &mut log_probs)?;
    /// let taps = listener.taps().expect("it is open");
    /// assert_eq!(taps.class_mass().len(), log_probs.len());
    /// taps.clear();
    ///
    /// assert_eq!(listener.accepted_s(), 1.0);
    /// listener.reset();
    /// assert_eq!(listener.accepted_s(), 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tap(&mut self, config: Option<TapConfig>) -> bool {
        self.network.srf().map(|stream| stream.tap(config)).is_some()
    }

    /// What an open tap has gathered; clear it after reading.
    pub fn taps(&mut self) -> Option<&mut Taps<f32>> {
        self.network.srf()?.taps()
    }

    /// Length of all samples accepted since the start.
    pub fn accepted_s(&self) -> f64 {
        self.front.accepted_s()
    }

    /// Whether the network needs the whole utterance.
    fn is_offline(&self) -> bool {
        self.shared.network.look_ahead_frames().is_none()
    }

    /// Sends the frames through normalisation and network.
    fn advance(&mut self, log_probs: &mut Vec<f32>) {
        if !self.frames.is_empty() {
            self.normalizer.apply(&mut self.frames);
            self.network.accept(&self.frames, log_probs);
            self.frames.clear();
        }
    }
}

/// Resampling and features of one stream, before normalisation.
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

    /// Accepts samples and appends the frames that they complete.
    pub(crate) fn accept(&mut self, samples: &[f32], rate_hz: u32, frames: &mut Vec<f32>) -> Result<(), AcceptError> {
        self.check(samples, rate_hz, self.n_samples)?;
        self.append(samples, frames);
        Ok(())
    }

    fn append(&mut self, samples: &[f32], frames: &mut Vec<f32>) {
        self.n_samples += samples.len() as u64;
        match &mut self.resampler {
            Some(resampler) => resampler.accept(samples, &mut self.samples),
            None => self.samples.extend_from_slice(samples),
        }
        self.extract(frames);
    }

    /// Ends the utterance: appends the frames that were waiting for later ones.
    pub(crate) fn flush(&mut self, frames: &mut Vec<f32>) {
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(&mut self.samples);
        }
        self.extract(frames);
        self.extractor.finish(frames);
    }

    /// Forgets all samples and their rate.
    pub(crate) fn reset(&mut self) {
        self.resampler = None;
        self.rate_hz = self.model_hz;
        self.n_samples = 0;
        self.extractor.reset();
    }

    /// Length of all samples accepted since the start.
    pub(crate) fn accepted_s(&self) -> f64 {
        self.n_samples as f64 / f64::from(self.rate_hz)
    }

    fn check(&mut self, samples: &[f32], rate_hz: u32, n_before: u64) -> Result<(), AcceptError> {
        self.start(rate_hz)?;
        match samples.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(AcceptError::NotFinite { index: n_before + at as u64, found: samples[at] }),
            None => Ok(()),
        }
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
        self.extractor.accept(&self.samples, frames);
        self.samples.clear();
    }
}
