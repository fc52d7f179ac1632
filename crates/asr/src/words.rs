//! The words of a model: a lexicon and a language model next to its weights, and how much they count.
//!
//! | file of the model directory | holds |
//! |---|---|
//! | `words.bin` | the lexicon and the n-gram model ([`srf_text::word_model`]) |
//! | `decoding.json` | `{"alpha": 0.5, "beta": 1.0, "beam": 100, "confidence": {"scale": 1.0, "shift": 0.0}}`; optional |
//!
//! ```
//! use srf::text::fusion::{Hotword, Lexicon};
//! use srf::text::lm::NgramModel;
//! use srf::text::word_model::WordModel;
//! use srf::words::{MAX_BEAM, WordSettings, Words, WordsError, read, write, write_settings};
//!
//! # let dir = tempfile::tempdir()?;
//! # let recognizer = srf::doc::recognizer();
//! let labels = recognizer.labels().clone();
//! let (lexicon, _) = Lexicon::spelled(["abba", "bac"], &labels);
//! let arpa = "\\data\\\nngram 1=3\n\\1-grams:\n-2 <unk>\n-0.3 abba\n-0.3 bac\n\\end\\\n";
//! let language = NgramModel::read(arpa.as_bytes(), Default::default())?;
//! write(dir.path(), &WordModel::format(&lexicon, &language, &labels))?;
//! write_settings(dir.path(), &WordSettings { alpha: 0.8, ..Default::default() })?;
//! let wide = WordSettings { beam: MAX_BEAM + 1, ..Default::default() };
//! assert!(matches!(write_settings(dir.path(), &wide), Err(WordsError::Settings { .. })));
//!
//! let (model, settings) = read(dir.path(), &labels)?.expect("the model has words now");
//! let recognizer = recognizer.with_words(model, settings)?;
//! let words: &Words = recognizer.words().expect("they were just given");
//! assert_eq!((words.model().lexicon.n_pronunciations(), words.settings().alpha), (2, 0.8));
//! let decoder = recognizer.decoder_of(&WordSettings { beam: 20, ..settings }).expect("there are words")?;
//!
//! // Other hotwords for a speaker, on the same lexicon and language model.
//! let fusion = decoder.fusion.expect("words are fused");
//! let hotword = Hotword { phrase: "abba".to_owned(), score: 1.5 };
//! let mine = fusion.with_lists(&labels, &[hotword], None)?;
//! # let _ = mine;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use srf_base::files;
use srf_text::calibration::Calibration;
use srf_text::decode::{DEFAULT_BEAM, DecoderConfig, Search};
use srf_text::fusion::{Fusion, FusionError, Hotword, Language, Level, Phrases, Sources};
use srf_text::labels::LabelSet;
use srf_text::word_model::{ReadWordModelError, WordModel};

use crate::recognizer::Recognizer;

const WORDS: &str = "words.bin";
const SETTINGS: &str = "decoding.json";
const MAX_SETTINGS_BYTES: u64 = 1 << 16;
/// Beyond this width a beam search finds nothing more.
pub const MAX_BEAM: usize = 10_000;

/// How the words of a model are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WordSettings {
    /// Weight of the language model's log-probabilities, at least 0.
    pub alpha: f64,
    /// What every word adds to the score, a natural logarithm.
    pub beta: f64,
    /// Width of the beam.
    pub beam: usize,
    /// Correction of the confidences of words.
    #[serde(with = "calibration")]
    pub confidence: Calibration,
}

/// A correction of confidences as it is in files.
mod calibration {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use srf_text::calibration::Calibration;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        scale: f64,
        shift: f64,
    }

    pub(super) fn serialize<S: Serializer>(calibration: &Calibration, to: S) -> Result<S::Ok, S::Error> {
        Fields { scale: calibration.scale, shift: calibration.shift }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Calibration, D::Error> {
        Fields::deserialize(from).map(|Fields { scale, shift }| Calibration { scale, shift })
    }
}

impl Default for WordSettings {
    fn default() -> Self {
        Self { alpha: 0.5, beta: 1.0, beam: DEFAULT_BEAM, confidence: Calibration::default() }
    }
}

impl WordSettings {
    /// Whether the numbers can be used; the message says which one cannot.
    fn check(&self) -> Result<(), String> {
        let Self { alpha, beta, beam, confidence: Calibration { scale, shift } } = *self;
        if !(0.0..=100.0).contains(&alpha) {
            return Err(format!("alpha is {alpha}, expected 0 to 100"));
        }
        if !(-100.0..=100.0).contains(&beta) {
            return Err(format!("beta is {beta}, expected -100 to 100"));
        }
        if !(1..=MAX_BEAM).contains(&beam) {
            return Err(format!("beam is {beam}, expected 1 to {MAX_BEAM}"));
        }
        if !((0.0..=20.0).contains(&scale) && (-20.0..=20.0).contains(&shift)) {
            return Err(format!(
                "confidence is {scale}, {shift}, expected a scale from 0 to 20, a shift from -20 to 20"
            ));
        }
        Ok(())
    }
}

/// Why the words of a model could not be read or written.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WordsError {
    #[error("`{path}`: {cause}", path = path.display())]
    Read { path: PathBuf, cause: ReadWordModelError },
    #[error("`{path}`: {message}", path = path.display())]
    Settings { path: PathBuf, message: String },
    #[error(transparent)]
    Fusion(#[from] FusionError),
    #[error("could not write `{path}`", path = path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl WordsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { cause: ReadWordModelError::OtherLabels, .. } => {
                Some("make it for this model with `srf words build`".to_owned())
            }
            Self::Fusion(cause) => cause.hint(),
            _ => None,
        }
    }
}

/// The words of a recogniser; [`Recognizer::words`] has them.
#[derive(Clone, Debug)]
pub struct Words {
    model: WordModel,
    settings: WordSettings,
    fusion: Arc<Fusion>,
}

impl Words {
    fn new(labels: &LabelSet, model: WordModel, settings: WordSettings) -> Result<Self, FusionError> {
        let sources = Sources {
            language: Some(language(&model, &settings)),
            lexicon: Some(model.lexicon.clone()),
            ..Sources::default()
        };
        Ok(Self { fusion: Arc::new(Fusion::new(labels, sources)?), model, settings })
    }

    /// The lexicon and the language model.
    pub fn model(&self) -> &WordModel {
        &self.model
    }

    /// How much they count.
    pub fn settings(&self) -> &WordSettings {
        &self.settings
    }
}

fn language(model: &WordModel, settings: &WordSettings) -> Language {
    let WordSettings { alpha, beta, .. } = *settings;
    Language { model: Arc::clone(&model.language), level: Level::Words, alpha, beta }
}

impl Recognizer {
    /// The same model with these words; they are what it then writes.
    ///
    /// ```
    /// use srf::words::WordSettings;
    /// # let recognizer = srf::doc::recognizer();
    /// # let lexicon = srf::text::fusion::Lexicon::spelled(["abba", "bac"], recognizer.labels()).0;
    /// # let arpa = "\\data\\\nngram 1=3\n\\1-grams:\n-2 <unk>\n-0.3 abba\n-0.3 bac\n\\end\\\n";
    /// # let language = srf::text::lm::NgramModel::read(arpa.as_bytes(), Default::default())?;
    /// # let words = srf::text::word_model::WordModel { lexicon, language: std::sync::Arc::new(language) };
    /// let recognizer = recognizer.with_words(words, WordSettings { alpha: 0.8, ..Default::default() })?;
    /// assert_eq!(recognizer.words().unwrap().settings().alpha, 0.8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_words(mut self, model: WordModel, settings: WordSettings) -> Result<Self, FusionError> {
        let words = Words::new(self.labels(), model, settings)?;
        self.shared_mut().words = Some(words);
        Ok(self)
    }

    /// The lexicon and language model of the model directory; `None` if it has none.
    pub fn words(&self) -> Option<&Words> {
        self.shared().words.as_ref()
    }

    /// How streams decode by default: to the words of the model if it has some, or else to its labels.
    pub fn decoder(&self) -> DecoderConfig {
        match self.words() {
            Some(Words { settings, fusion, .. }) => {
                DecoderConfig { search: Search::Beam { width: settings.beam }, fusion: Some(Arc::clone(fusion)) }
            }
            None => DecoderConfig::default(),
        }
    }

    /// The default decoder with phrases to favour, and the only phrases there are.
    ///
    /// ```
    /// use srf::text::fusion::Hotword;
    /// # let recognizer = srf::doc::recognizer();
    /// let hotwords = [Hotword { phrase: "abba".to_owned(), score: 1.5 }];
    /// let decoder = Some(recognizer.decoder_with(&hotwords, None)?);
    /// let stream = recognizer.stream(&srf::StreamOptions { decoder, ..Default::default() })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decoder_with(&self, hotwords: &[Hotword], phrases: Option<&Phrases>) -> Result<DecoderConfig, FusionError> {
        let decoder = self.decoder();
        if hotwords.is_empty() && phrases.is_none() {
            return Ok(decoder);
        }
        let fusion = if let Some(fusion) = &decoder.fusion {
            fusion.with_lists(self.labels(), hotwords, phrases)?
        } else {
            let (hotwords, phrases) = (hotwords.to_vec(), phrases.cloned());
            Fusion::new(self.labels(), Sources { hotwords, phrases, ..Sources::default() })?
        };
        Ok(DecoderConfig { fusion: Some(Arc::new(fusion)), ..decoder })
    }

    /// The default decoder with other settings for the words; `None` if the model has no words.
    pub fn decoder_of(&self, settings: &WordSettings) -> Option<Result<DecoderConfig, FusionError>> {
        let model = self.words()?.model.clone();
        Some(
            Words::new(self.labels(), model, *settings).map(|words| DecoderConfig {
                search: Search::Beam { width: settings.beam },
                fusion: Some(words.fusion),
            }),
        )
    }
}

/// Reads the words of a model directory; `None` if it has none.
pub fn read(dir: &Path, labels: &LabelSet) -> Result<Option<(WordModel, WordSettings)>, WordsError> {
    let path = dir.join(WORDS);
    match WordModel::load(&path, labels) {
        Ok(model) => Ok(Some((model, read_settings(dir)?))),
        Err(ReadWordModelError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(WordsError::Read { path, cause }),
    }
}

/// Like [`read`], from files in memory by their names.
pub(crate) fn read_files(
    files: &BTreeMap<String, Vec<u8>>,
    labels: &LabelSet,
) -> Result<Option<(WordModel, WordSettings)>, WordsError> {
    let Some(words) = files.get(WORDS) else { return Ok(None) };
    let model = WordModel::parse(words, labels).map_err(|cause| WordsError::Read { path: WORDS.into(), cause })?;
    let settings = match files.get(SETTINGS) {
        Some(bytes) => parse_settings(&String::from_utf8_lossy(bytes), Path::new(SETTINGS))?,
        None => WordSettings::default(),
    };
    Ok(Some((model, settings)))
}

fn read_settings(dir: &Path) -> Result<WordSettings, WordsError> {
    let path = dir.join(SETTINGS);
    let wrong = |message: String| WordsError::Settings { path: path.clone(), message };
    let text = match files::read_text_at_most(&path, MAX_SETTINGS_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(wrong(format!("has more than {MAX_SETTINGS_BYTES} bytes"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(WordSettings::default()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    parse_settings(&text, &path)
}

fn parse_settings(text: &str, path: &Path) -> Result<WordSettings, WordsError> {
    let wrong = |message: String| WordsError::Settings { path: path.to_owned(), message };
    let settings: WordSettings = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    settings.check().map_err(wrong)?;
    Ok(settings)
}

/// Writes the bytes of a word model ([`WordModel::format`]) into a model directory.
pub fn write(dir: &Path, words: &[u8]) -> Result<PathBuf, WordsError> {
    write_file(dir.join(WORDS), words)
}

/// Writes how much the words count into a model directory.
pub fn write_settings(dir: &Path, settings: &WordSettings) -> Result<PathBuf, WordsError> {
    let path = dir.join(SETTINGS);
    settings.check().map_err(|message| WordsError::Settings { path: path.clone(), message })?;
    let text = serde_json::to_string(settings).expect("numbers have a JSON form") + "\n";
    write_file(path, text.as_bytes())
}

fn write_file(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, WordsError> {
    match files::write_atomically(&path, bytes) {
        Ok(()) => Ok(path),
        Err(source) => Err(WordsError::Write { path, source }),
    }
}
