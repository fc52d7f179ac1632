//! How to decode, as a user asks for it: turns choices and lists into the [`DecoderConfig`] of a model.
//!
//! A model with words writes words unless a choice says otherwise; a model without them writes its labels.
//!
//! ```
//! use srf::decoding::{Decoding, DecodingError, parse_lexicon};
//! use srf::text::fusion::Hotword;
//!
//! # let recognizer = srf::doc::recognizer();
//! let lexicon = Some(parse_lexicon("abba\nbac\n", recognizer.labels())?);
//! let hotwords = vec![Hotword { phrase: "abba".to_owned(), score: 1.5 }];
//! let decoder = Decoding { beam: Some(20), lexicon, hotwords, ..Default::default() }.decoder(&recognizer)?;
//! let stream = recognizer.stream(&srf::StreamOptions { decoder: Some(decoder), ..Default::default() })?;
//!
//! let error = Decoding { beam: Some(0), ..Default::default() }.decoder(&recognizer).unwrap_err();
//! assert!(matches!(error, DecodingError::Beam { found: 0, .. }));
//! assert!(error.hint().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use srf_text::decode::{DecoderConfig, Search};
use srf_text::fusion::{Fusion, FusionError, Hotword, Language, Level, Lexicon, Phrases, ReadListError, Sources};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::NgramModel;

use crate::recognizer::Recognizer;
use crate::words::{MAX_BEAM, WordSettings, Words};

/// Choices that differ from what the model does by itself.
#[derive(Clone, Debug, Default)]
pub struct Decoding {
    /// The most probable label of each slice, without a search and without words.
    pub is_greedy: bool,
    /// The labels of the model, even if it has words.
    pub writes_labels: bool,
    /// Width of the beam; `None` is the model's.
    pub beam: Option<usize>,
    /// A language model and what it is over, instead of the model's own.
    pub language: Option<(Arc<NgramModel>, Level)>,
    /// Weight of the language model; `None` is the model's.
    pub alpha: Option<f64>,
    /// Bonus per word, a natural logarithm; `None` is the model's.
    pub beta: Option<f64>,
    /// The only words there are, instead of the model's own.
    pub lexicon: Option<Lexicon>,
    /// Phrases to favour.
    pub hotwords: Vec<Hotword>,
    /// The only phrases there are.
    pub phrases: Option<Phrases>,
}

/// Why a model cannot decode in this way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DecodingError {
    #[error("the beam is {found}, expected 1 to {most}")]
    Beam { found: usize, most: usize },
    #[error("none of the {n_foreign} words of the lexicon can be spelled in the labels of the model")]
    NoWords { n_foreign: usize },
    /// A phrase in words for a model whose labels are phones.
    #[error("{cause}")]
    WordsForPhones { cause: FusionError },
    #[error(transparent)]
    List(#[from] ReadListError),
    #[error(transparent)]
    Fusion(#[from] FusionError),
}

impl DecodingError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WordsForPhones { .. } => Some(
                "the labels of this model are phones: write phrases in phones, or give a lexicon with `word phone ...` \
                 lines"
                    .to_owned(),
            ),
            Self::Fusion(error) => error.hint(),
            _ => None,
        }
    }
}

impl Decoding {
    /// What this is for a model.
    pub fn decoder(self, recognizer: &Recognizer) -> Result<DecoderConfig, DecodingError> {
        if self.is_greedy {
            return Ok(DecoderConfig { search: Search::Greedy, fusion: None });
        }
        let labels = recognizer.labels();
        let words = self.words_of(recognizer);
        let usual = words.map_or_else(WordSettings::default, |words| *words.settings());
        let settings = WordSettings {
            beam: self.beam.unwrap_or(usual.beam),
            alpha: self.alpha.unwrap_or(usual.alpha),
            beta: self.beta.unwrap_or(usual.beta),
            ..usual
        };
        if !(1..=MAX_BEAM).contains(&settings.beam) {
            return Err(DecodingError::Beam { found: settings.beam, most: MAX_BEAM });
        }
        let needs_phones = labels.units() == Units::Phones && words.is_none() && self.lexicon.is_none();
        let changes_words = self.language.is_some() || self.alpha.is_some() || self.beta.is_some();
        let sources = self.sources(settings);
        let fusion = match words {
            Some(_) if !changes_words => {
                recognizer.decoder_with(&sources.hotwords, sources.phrases.as_ref()).map(|decoder| decoder.fusion)
            }
            Some(words) => fuse(labels, with_words(sources, words, settings)),
            None => fuse(labels, sources),
        };
        let fusion = fusion.map_err(|cause| match cause {
            FusionError::Phrase { .. } if needs_phones => DecodingError::WordsForPhones { cause },
            cause => cause.into(),
        })?;
        Ok(DecoderConfig { search: Search::Beam { width: settings.beam }, fusion })
    }

    /// The words of the model, unless these choices say that it writes something else.
    fn words_of<'a>(&self, recognizer: &'a Recognizer) -> Option<&'a Words> {
        let is_of_labels = matches!(self.language, Some((_, Level::Labels)));
        let writes_words = !self.writes_labels && self.lexicon.is_none() && !is_of_labels;
        recognizer.words().filter(|_| writes_words)
    }

    fn sources(self, WordSettings { alpha, beta, .. }: WordSettings) -> Sources {
        Sources {
            language: self.language.map(|(model, level)| Language { model, level, alpha, beta }),
            lexicon: self.lexicon,
            hotwords: self.hotwords,
            phrases: self.phrases,
        }
    }
}

/// `given` with the lexicon of the model, and its language model if none was given.
fn with_words(given: Sources, words: &Words, WordSettings { alpha, beta, .. }: WordSettings) -> Sources {
    let words = words.model();
    let own = || Language { model: Arc::clone(&words.language), level: Level::Words, alpha, beta };
    Sources { language: given.language.or_else(|| Some(own())), lexicon: Some(words.lexicon.clone()), ..given }
}

fn fuse(labels: &LabelSet, sources: Sources) -> Result<Option<Arc<Fusion>>, FusionError> {
    let Sources { language, lexicon, hotwords, phrases } = &sources;
    let is_empty = language.is_none() && lexicon.is_none() && hotwords.is_empty() && phrases.is_none();
    if is_empty { Ok(None) } else { Fusion::new(labels, sources).map(|fusion| Some(fusion.into())) }
}

/// Reads words with their labels, or words alone where the labels are characters.
///
/// See the [module](self) for an example.
pub fn parse_lexicon(text: &str, labels: &LabelSet) -> Result<Lexicon, DecodingError> {
    let words = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if labels.units() == Units::Phones || words().any(|line| line.contains(char::is_whitespace)) {
        return Ok(Lexicon::parse(text, labels)?);
    }
    let (lexicon, n_foreign) = Lexicon::spelled(words(), labels);
    if lexicon.n_words() == 0 {
        return Err(DecodingError::NoWords { n_foreign });
    }
    Ok(lexicon)
}
