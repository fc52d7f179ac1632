//! The front end of training: from recordings to normalised feature frames.
//!
//! Training and recognition use the same settings and normalisation, so that both see the same bits.

use std::collections::BTreeMap;

use srf_audio::features::cmvn::{CmvnStats, Normalizer};
use srf_audio::features::{Cmvn, Extractor, FeaturesConfig, FeaturesConfigError};
use srf_audio::{Channel, ReadAudioError, Recording, Selection, resample};

use crate::corpus::AudioPart;

/// The front end and the statistics it normalises by.
#[derive(Clone, Debug)]
pub(crate) struct FrontEnd {
    config: FeaturesConfig,
    extractor: Extractor,
    global: Option<CmvnStats>,
    speakers: BTreeMap<String, CmvnStats>,
}

/// Why an utterance cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadUtteranceError {
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    #[error(transparent)]
    Resample(#[from] resample::ResampleError),
}

impl FrontEnd {
    pub(crate) fn new(features: &FeaturesConfig) -> Result<Self, FeaturesConfigError> {
        Ok(Self {
            config: features.clone(),
            extractor: Extractor::new(features)?,
            global: None,
            speakers: BTreeMap::new(),
        })
    }

    /// Values a frame before deltas, and how many such blocks a frame has.
    pub(crate) fn blocks(&self) -> (usize, usize) {
        (self.config.n_static(), 1 + self.config.delta_order)
    }

    pub(crate) fn n_dims(&self) -> usize {
        self.config.n_features()
    }

    pub(crate) fn rate_hz(&self) -> u32 {
        self.config.sample_rate_hz
    }

    /// An extractor for a thread of its own.
    pub(crate) fn extractor(&self) -> Extractor {
        self.extractor.clone()
    }

    /// The samples of an utterance at the rate of the features.
    pub(crate) fn samples(&self, part: &AudioPart) -> Result<Vec<f32>, ReadUtteranceError> {
        let start_s = part.offset_s.unwrap_or(0.0);
        let end_s = part.offset_s.and(part.duration_s).map(|duration_s| start_s + duration_s);
        let channel = part.channel.map_or(Channel::Mix, Channel::Only);
        let samples = Recording::open(&part.path)?.read(Selection { channel, start_s, end_s })?;
        Ok(resample::resample(samples, self.config.sample_rate_hz)?.values)
    }

    /// Whether statistics of the training set take part in the normalisation.
    pub(crate) fn needs_global(&self) -> bool {
        matches!(self.config.cmvn, Cmvn::Global | Cmvn::Online)
    }

    pub(crate) fn needs_speakers(&self) -> bool {
        self.config.cmvn == Cmvn::Speaker
    }

    pub(crate) fn set_global(&mut self, stats: CmvnStats) {
        self.global = Some(stats);
    }

    pub(crate) fn global(&self) -> Option<&CmvnStats> {
        self.global.as_ref()
    }

    /// Counts frames, not yet normalised, of a speaker.
    pub(crate) fn add_speaker(&mut self, speaker: &str, stats: &CmvnStats) {
        let n_dims = self.n_dims();
        self.speakers.entry(speaker.to_owned()).or_insert_with(|| CmvnStats::new(n_dims)).merge(stats);
    }

    /// Normalises the frames of one utterance in place.
    pub(crate) fn normalise(&self, speaker: &str, frames: &mut [f32]) {
        let utterance = (self.config.cmvn == Cmvn::Utterance).then(|| CmvnStats::of(self.n_dims(), frames));
        let speaker = utterance.as_ref().or_else(|| self.speakers.get(speaker).filter(|_| self.needs_speakers()));
        Normalizer::new(&self.config, speaker, self.global.as_ref()).apply(frames);
    }
}

/// Frames of samples, not yet normalised.
pub(crate) fn extract(extractor: &mut Extractor, samples: &[f32]) -> Vec<f32> {
    let mut frames = Vec::new();
    extractor.reset();
    extractor.accept(samples, &mut frames);
    extractor.finish(&mut frames);
    frames
}
