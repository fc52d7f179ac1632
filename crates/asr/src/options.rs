//! The options of a stream as JSON, for programs in other languages.
//!
//! | key | value |
//! |---|---|
//! | `beam`, `greedy`, `phones` | width of the search; no search; labels instead of words |
//! | `n_best`, `evidence` | hypotheses per segment; what the routing decided for each label |
//! | `lm`, `lm_of`, `alpha`, `beta` | an ARPA file, over `"words"` or `"labels"`; its weight; the bonus per word |
//! | `lexicon`, `hotwords`, `phrases` | `{"path": FILE}`, or `{"text": LINES}` as the file would have them |
//! | `hotword_score`, `phrases_repeat` | the score of hotwords without one; whether phrases form sequences |
//! | `endpoint` | `false` for none, or `{"rule2": {"min_trailing_silence_s": 0.8}, "end_of_sentence": false}` |
//!
//! ```
//! use srf::options::{OptionsError, from_json};
//!
//! # let recognizer = srf::doc::recognizer();
//! let options = from_json(r#"{"n_best": 3, "hotwords": {"text": "abba:2\n"}, "endpoint": false}"#, &recognizer)?;
//! let stream = recognizer.stream(&options)?;
//!
//! let error: OptionsError = from_json(r#"{"n-best": 3}"#, &recognizer).unwrap_err();
//! assert!(error.to_string().starts_with("options: unknown field `n-best`, expected one of `beam`"));
//! assert!(error.hint().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use srf_base::files::read_text_at_most;
use srf_text::fusion::{DEFAULT_HOTWORD_SCORE, Hotword, Level, Phrases};
use srf_text::labels::LabelSet;
use srf_text::lm::{LoadArpaError, NgramModel};

use crate::decoding::{Decoding, DecodingError, parse_lexicon};
use crate::endpoint::{EndpointRules, Rule};
use crate::recognizer::Recognizer;
use crate::stream::{StartStreamError, StreamOptions};

/// Size limit of lexicons and lists.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// Why options were refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum OptionsError {
    #[error("options: {message}")]
    Json { message: String },
    #[error("`{key}` is {found}, expected {expected}")]
    Value { key: &'static str, found: f64, expected: &'static str },
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` has more than {MAX_TEXT_BYTES} bytes, expected a list")]
    TooLarge { path: PathBuf },
    #[error("{name}: {cause}")]
    List { name: String, cause: DecodingError },
    #[error(transparent)]
    Language(#[from] LoadArpaError),
    #[error(transparent)]
    Decoding(#[from] DecodingError),
    #[error(transparent)]
    Start(#[from] StartStreamError),
}

impl OptionsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Language(error) => error.hint(),
            Self::List { cause: error, .. } | Self::Decoding(error) => error.hint(),
            Self::Start(error) => error.hint(),
            _ => None,
        }
    }
}

/// Reads options and the files they name, and checks that the model can do what they ask for.
///
/// See the [module](self) for an example.
pub fn from_json(text: &str, recognizer: &Recognizer) -> Result<StreamOptions, OptionsError> {
    let given: Given = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // Nobody typed this text, so that positions in it would not help.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        OptionsError::Json { message: message[..end].to_owned() }
    })?;
    let (n_best, has_evidence, endpoint) = (given.n_best, given.evidence, given.endpoint()?);
    let decoder = Some(given.decoding(recognizer.labels())?.decoder(recognizer)?);
    let options = StreamOptions { decoder, n_best, endpoint, has_evidence, ..StreamOptions::default() };
    // The statistics of a speaker come with the recording.
    match recognizer.stream(&options) {
        Ok(_) | Err(StartStreamError::NoSpeakerStatistics) => Ok(options),
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Given {
    beam: Option<usize>,
    greedy: bool,
    phones: bool,
    n_best: usize,
    evidence: bool,
    lm: Option<PathBuf>,
    lm_of: LanguageOf,
    alpha: Option<f64>,
    beta: Option<f64>,
    lexicon: Option<List>,
    hotwords: Option<List>,
    hotword_score: f32,
    phrases: Option<List>,
    phrases_repeat: bool,
    endpoint: Endpoint,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            beam: None,
            greedy: false,
            phones: false,
            n_best: 1,
            evidence: false,
            lm: None,
            lm_of: LanguageOf::Words,
            alpha: None,
            beta: None,
            lexicon: None,
            hotwords: None,
            hotword_score: DEFAULT_HOTWORD_SCORE,
            phrases: None,
            phrases_repeat: false,
            endpoint: Endpoint::IsUsed(true),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LanguageOf {
    Words,
    Labels,
}

/// A file, or what would be in it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum List {
    Path(PathBuf),
    Text(String),
}

impl List {
    fn parse<T>(self, key: &str, parse: impl FnOnce(&str) -> Result<T, DecodingError>) -> Result<T, OptionsError> {
        let (name, text) = match self {
            Self::Text(text) => (format!("`{key}`"), text),
            Self::Path(path) => match read_text_at_most(&path, MAX_TEXT_BYTES) {
                Ok(Some(text)) => (format!("`{}`", path.display()), text),
                Ok(None) => return Err(OptionsError::TooLarge { path }),
                Err(source) => return Err(OptionsError::Read { path, source }),
            },
        };
        parse(&text).map_err(|cause| OptionsError::List { name, cause })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Endpoint {
    IsUsed(bool),
    Rules(Rules),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    rule1: RuleChange,
    rule2: RuleChange,
    rule3: RuleChange,
    end_of_sentence: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RuleChange {
    must_contain_nonsilence: Option<bool>,
    min_trailing_silence_s: Option<f64>,
    min_utterance_length_s: Option<f64>,
}

impl RuleChange {
    fn of(&self, usual: Rule) -> Result<Rule, OptionsError> {
        for found in [self.min_trailing_silence_s, self.min_utterance_length_s].into_iter().flatten() {
            if !(0.0..=1e9).contains(&found) {
                return Err(OptionsError::Value { key: "endpoint", found, expected: "seconds, 0 or more" });
            }
        }
        Ok(Rule {
            must_contain_nonsilence: self.must_contain_nonsilence.unwrap_or(usual.must_contain_nonsilence),
            min_trailing_silence_s: self.min_trailing_silence_s.unwrap_or(usual.min_trailing_silence_s),
            min_utterance_length_s: self.min_utterance_length_s.unwrap_or(usual.min_utterance_length_s),
        })
    }
}

impl Given {
    fn endpoint(&self) -> Result<Option<EndpointRules>, OptionsError> {
        let usual = EndpointRules::default();
        Ok(match &self.endpoint {
            Endpoint::IsUsed(is_used) => is_used.then_some(usual),
            Endpoint::Rules(rules) => Some(EndpointRules {
                rule1: rules.rule1.of(usual.rule1)?,
                rule2: rules.rule2.of(usual.rule2)?,
                rule3: rules.rule3.of(usual.rule3)?,
                end_of_sentence: rules.end_of_sentence.unwrap_or(usual.end_of_sentence),
            }),
        })
    }

    fn decoding(self, labels: &LabelSet) -> Result<Decoding, OptionsError> {
        let score = self.hotword_score;
        if score.is_nan() || 100.0 < score.abs() {
            let (key, found) = ("hotword_score", f64::from(score));
            return Err(OptionsError::Value { key, found, expected: "-100 to 100" });
        }
        let level = match self.lm_of {
            LanguageOf::Words => Level::Words,
            LanguageOf::Labels => Level::Labels,
        };
        let language = |path: PathBuf| NgramModel::load(&path).map(|model| (Arc::new(model), level));
        let lexicon = self.lexicon.map(|list| list.parse("lexicon", |text| parse_lexicon(text, labels)));
        let hotwords = self.hotwords.map(|list| list.parse("hotwords", |text| Ok(Hotword::parse_list(text, score)?)));
        let repeats = self.phrases_repeat;
        let phrases = self.phrases.map(|list| list.parse("phrases", |text| Ok(Phrases::parse(text, repeats)?)));
        Ok(Decoding {
            is_greedy: self.greedy,
            writes_labels: self.phones,
            beam: self.beam,
            language: self.lm.map(language).transpose()?,
            alpha: self.alpha,
            beta: self.beta,
            lexicon: lexicon.transpose()?,
            hotwords: hotwords.transpose()?.unwrap_or_default(),
            phrases: phrases.transpose()?,
        })
    }
}
