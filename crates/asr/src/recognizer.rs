//! The recogniser: a model that is ready to transcribe and to start streams.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use srf_audio::features::cmvn::{CmvnStats, Normalizer};
use srf_audio::features::{Cmvn, Extractor, FeaturesConfig};
use srf_model::config::ModelConfig;
use srf_model::inference::Inference;
use srf_text::label_timing::LabelTiming;
use srf_text::labels::LabelSet;

use crate::directory::{self, InvalidParts, ModelFiles, ModelParts, ReadModelError};
use crate::endpoint::Kinds;
use crate::listener::{Front, Listener};
use crate::segment::Timing;
use crate::stream::{StartStreamError, Stream, StreamOptions};
use crate::words::{self, Words, WordsError};

/// A model that is ready to transcribe.
///
/// It never changes and can be shared by all threads; cloning it copies a pointer.
///
/// ```no_run
/// let recognizer = srf::Recognizer::open("models/en")?;
/// println!("{}", recognizer.transcribe("talk.flac")?.text());
/// let mut stream = recognizer.stream(&Default::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Recognizer {
    shared: Arc<Shared>,
}

/// What all streams of a recogniser share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) features: FeaturesConfig,
    /// At its start, with its tables built, to be cloned.
    extractor: Extractor,
    pub(crate) network: Arc<Inference<f32>>,
    pub(crate) labels: LabelSet,
    pub(crate) kinds: Kinds,
    pub(crate) cmvn: Option<CmvnStats>,
    pub(crate) label_timing: LabelTiming,
    pub(crate) timing: Timing,
    pub(crate) card: String,
    pub(crate) words: Option<Words>,
}

impl Shared {
    /// A front end at its start.
    pub(crate) fn front(&self) -> Front {
        Front::new(self.extractor.clone(), self.features.sample_rate_hz)
    }

    /// The normalisation of a stream, with the statistics of its speaker where they are known.
    pub(crate) fn normalizer(&self, speaker: Option<&CmvnStats>) -> Normalizer {
        Normalizer::new(&self.features, speaker, self.cmvn.as_ref())
    }
}

impl Recognizer {
    /// Reads a [model directory](crate::directory); if it has [words](crate::words), they are what streams write.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, ReadModelError> {
        let dir = dir.as_ref();
        let parts = directory::read(dir)?;
        let recognizer =
            Self::from_parts(parts).map_err(|cause| ReadModelError::Parts { path: dir.to_owned(), cause })?;
        match words::read(&directory::resolve(dir), recognizer.labels())? {
            Some((model, settings)) => Ok(recognizer.with_words(model, settings).map_err(WordsError::from)?),
            None => Ok(recognizer),
        }
    }

    /// A recogniser from the files of a [model directory](crate::directory) in memory, by their names.
    ///
    /// ```no_run
    /// use std::collections::BTreeMap;
    ///
    /// let mut files = BTreeMap::new();
    /// for name in ["config.toml", "labels.txt", "cmvn.json", "weights.safetensors"] {
    ///     files.insert(name.to_owned(), std::fs::read(format!("models/en/{name}"))?);
    /// }
    /// let recognizer = srf::Recognizer::from_files(&files)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_files(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, ReadModelError> {
        let parts = directory::read_files(&ModelFiles::Memory(files))?;
        let path = "the model".into();
        let recognizer = Self::from_parts(parts).map_err(|cause| ReadModelError::Parts { path, cause })?;
        match words::read_files(files, recognizer.labels())? {
            Some((model, settings)) => Ok(recognizer.with_words(model, settings).map_err(WordsError::from)?),
            None => Ok(recognizer),
        }
    }

    /// A recogniser of a model in memory; see [`ModelParts::untrained`] for one with random weights.
    pub fn from_parts(parts: ModelParts) -> Result<Self, InvalidParts> {
        parts.check()?;
        let ModelParts { model, features, labels, cmvn, label_timing, values, card } = parts;
        let network = Inference::new(&model, &values);
        let shared = Shared {
            extractor: Extractor::new(&features)?,
            timing: Timing::new(&features, &network),
            kinds: Kinds::new(&labels),
            features,
            network,
            labels,
            cmvn,
            label_timing,
            card,
            words: None,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A stream at its start.
    pub fn stream(&self, options: &StreamOptions) -> Result<Stream, StartStreamError> {
        let listener = self.listener(options.statistics.clone())?;
        let decoder = options.decoder.clone().unwrap_or_else(|| self.decoder());
        Stream::new(Arc::clone(&self.shared), listener, decoder, options)
    }

    /// The acoustic half of a stream alone; `statistics` are the speaker's, where they are known.
    pub fn listener(&self, statistics: Option<CmvnStats>) -> Result<Listener, StartStreamError> {
        let expected = self.shared.features.n_features();
        if let Some(found) = statistics.as_ref().map(CmvnStats::n_dims).filter(|found| *found != expected) {
            return Err(StartStreamError::StatisticsWidth { found, expected });
        }
        if self.needs_statistics() && statistics.is_none() {
            return Err(StartStreamError::NoSpeakerStatistics);
        }
        Ok(Listener::new(Arc::clone(&self.shared), statistics))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Of this recogniser alone: others that share its parts keep what they have.
    pub(crate) fn shared_mut(&mut self) -> &mut Shared {
        Arc::make_mut(&mut self.shared)
    }

    /// What the classes stand for.
    pub fn labels(&self) -> &LabelSet {
        &self.shared.labels
    }

    /// Corrects the times of labels from the slices that emit them to the sounds.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// if recognizer.label_timing().is_empty() {
    ///     println!("times are those of the slices; `srf fit-timing` fits them to a corpus with times");
    /// }
    /// ```
    pub fn label_timing(&self) -> &LabelTiming {
        &self.shared.label_timing
    }

    /// The network.
    pub fn model(&self) -> &ModelConfig {
        self.shared.network.config()
    }

    /// The features that the model reads.
    pub fn features(&self) -> &FeaturesConfig {
        &self.shared.features
    }

    /// The model card, in Markdown; may be empty.
    pub fn card(&self) -> &str {
        &self.shared.card
    }

    /// When slices are spoken and when they can be known.
    ///
    /// ```
    /// use srf::Timing;
    ///
    /// # let recognizer = srf::doc::recognizer();
    /// let timing: &Timing = recognizer.timing();
    /// println!("a slice every {} ms", 1000.0 * timing.slice_s());
    /// match timing.algorithmic_ms() {
    ///     Some(delay_ms) if recognizer.can_stream() => println!("a label is known {delay_ms} ms after its slice"),
    ///     _ => println!("nothing is known before the end"),
    /// }
    /// assert_eq!(timing.clock().time_s(1) - timing.clock().time_s(0), timing.slice_s());
    /// ```
    pub fn timing(&self) -> &Timing {
        &self.shared.timing
    }

    /// Whether results come while the speaker talks; otherwise they come at the end of each utterance.
    pub fn can_stream(&self) -> bool {
        self.shared.network.look_ahead_frames().is_some()
    }

    /// Whether features are normalised over all utterances of a speaker, or over the utterance.
    pub fn is_by_speaker(&self) -> bool {
        matches!(self.shared.features.cmvn, Cmvn::Speaker | Cmvn::Utterance)
    }

    /// Whether a stream must be given the speaker's statistics, because there are no others to start from.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let talk = srf::Utterance::from("talk.flac");
    /// let mut options = srf::StreamOptions::default();
    /// if recognizer.needs_statistics() {
    ///     // A live stream of this speaker starts from what is known of an earlier recording.
    ///     assert!(recognizer.is_by_speaker());
    ///     options.statistics = Some(recognizer.statistics(&talk)?);
    /// }
    /// let stream = recognizer.stream(&options)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn needs_statistics(&self) -> bool {
        self.is_by_speaker() && self.shared.cmvn.is_none()
    }
}
