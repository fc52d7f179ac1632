//! Options shared by the commands that recognise: the model, decoding, and endpoint rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use srf::endpoint::{EndpointRules, Rule};
use srf::{Recognizer, StreamOptions};
use srf_base::files::read_text_at_most;
use srf_text::decode::{DEFAULT_BEAM, DecoderConfig, Search};
use srf_text::fusion::{
    DEFAULT_HOTWORD_SCORE, Fusion, FusionError, Hotword, Language, Level, Lexicon, Phrases, Sources,
};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::NgramModel;

use super::models::{default_directory, model_directory};

/// Beyond this width a beam search finds nothing more.
const MAX_BEAM: usize = 10_000;
/// Size limit of lists, lexicons and transcripts.
const MAX_TEXT_BYTES: u64 = 256 << 20;

#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// Model directory, run that contains one, or name (see `srf models`) [default: $SRF_MODEL, ./model or en-phones]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn open(self) -> anyhow::Result<Recognizer> {
        Ok(self.open_named()?.1)
    }

    /// The model and its directory.
    pub(crate) fn open_named(self) -> anyhow::Result<(PathBuf, Recognizer)> {
        let dir = match self.model {
            Some(path) => model_directory(path)?,
            None => default_directory()?,
        };
        let recognizer = Recognizer::open(&dir)?;
        Ok((dir, recognizer))
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "Decoding")]
pub(crate) struct DecodingArgs {
    /// Width of the prefix beam search
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BEAM)]
    beam: usize,

    /// Greedy decoding instead of beam search: the most probable label of each slice
    #[arg(long, conflicts_with_all = ["beam", "lm", "lexicon", "hotwords", "phrases"])]
    greedy: bool,

    /// Number of hypotheses per utterance in JSON output
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,

    /// N-gram language model in ARPA format, plain or .gz
    #[arg(long, value_name = "FILE")]
    lm: Option<PathBuf>,

    /// Whether the language model is over words or over the labels of the recogniser (characters, phones)
    #[arg(long, value_name = "UNIT", default_value = "words")]
    lm_of: LanguageOf,

    /// Weight of the language model
    #[arg(long, default_value_t = 0.5)]
    alpha: f64,

    /// Bonus per word (natural logarithm)
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    beta: f64,

    /// Restrict output to these words: `word label label ...` lines as in CMUdict, or one word per line for character models
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,

    /// Phrases to favour, one per line, optionally followed by a colon or tab and a score
    #[arg(long, value_name = "FILE")]
    hotwords: Option<PathBuf>,

    /// Score per label of hotwords without a score of their own; negative to avoid them
    #[arg(long, value_name = "SCORE", default_value_t = DEFAULT_HOTWORD_SCORE, allow_negative_numbers = true)]
    hotword_score: f32,

    /// Restrict output to these phrases, one per line
    #[arg(long, value_name = "FILE")]
    phrases: Option<PathBuf>,

    /// Allow an utterance to be a sequence of several phrases
    #[arg(long, requires = "phrases")]
    phrases_repeat: bool,
}

/// A phrase in words for a model whose labels are phones.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct WordsForPhonesError {
    cause: FusionError,
}

impl WordsForPhonesError {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "like the other errors with hints")]
    pub(crate) fn hint(&self) -> Option<String> {
        Some(
            "the labels of this model are phones: write phrases in phones, or give `--lexicon FILE` with `word phone ...` \
             lines"
                .to_owned(),
        )
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LanguageOf {
    Words,
    Labels,
}

impl DecodingArgs {
    /// Stream options for a model with these labels; everything that is not about decoding has its default.
    pub(crate) fn resolve(self, labels: &LabelSet) -> anyhow::Result<StreamOptions> {
        let (beam, greedy, n_best) = (self.beam, self.greedy, self.nbest);
        ensure!((1..=MAX_BEAM).contains(&beam), "--beam is {beam}, expected 1 to {MAX_BEAM}");
        let search = if greedy { Search::Greedy } else { Search::Beam { width: beam } };
        let needs_phones = labels.units() == Units::Phones && !self.has_lexicon();
        let fusion = self.sources(labels)?.map(|sources| Fusion::new(labels, sources)).transpose();
        let fusion = fusion.map_err(|cause| match cause {
            FusionError::Phrase { .. } if needs_phones => anyhow::Error::new(WordsForPhonesError { cause }),
            cause => cause.into(),
        });
        let fusion = fusion?.map(Arc::new);
        Ok(StreamOptions { decoder: DecoderConfig { search, fusion }, n_best, ..StreamOptions::default() })
    }

    /// Whether a lexicon turns labels into words.
    pub(crate) fn has_lexicon(&self) -> bool {
        self.lexicon.is_some()
    }

    /// Reads all files; `None` if none was named.
    fn sources(self, labels: &LabelSet) -> anyhow::Result<Option<Sources>> {
        let Self { lm, lm_of, alpha, beta, lexicon, hotwords, hotword_score, phrases, phrases_repeat, .. } = self;
        ensure!(hotword_score.abs() <= 100.0, "--hotword-score is {hotword_score}, expected -100 to 100");
        if lm.is_none() && lexicon.is_none() && hotwords.is_none() && phrases.is_none() {
            return Ok(None);
        }
        let level = match lm_of {
            LanguageOf::Words => Level::Words,
            LanguageOf::Labels => Level::Labels,
        };
        let language = |path: PathBuf| -> anyhow::Result<Language> {
            Ok(Language { model: Arc::new(NgramModel::load(&path)?), level, alpha, beta })
        };
        let hotwords = hotwords.map(|path| parse_file(&path, |text| Ok(Hotword::parse_list(text, hotword_score)?)));
        Ok(Some(Sources {
            language: lm.map(language).transpose()?,
            lexicon: lexicon.map(|path| parse_file(&path, |text| parse_lexicon(text, labels))).transpose()?,
            hotwords: hotwords.transpose()?.unwrap_or_default(),
            phrases: phrases
                .map(|path| parse_file(&path, |text| Ok(Phrases::parse(text, phrases_repeat)?)))
                .transpose()?,
        }))
    }
}

/// The text of a file of limited size.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let text = read_text_at_most(path, MAX_TEXT_BYTES).with_context(|| format!("could not read `{shown}`"))?;
    text.with_context(|| format!("`{shown}` has more than {MAX_TEXT_BYTES} bytes, expected a list or a text"))
}

/// Parses the text of a file; errors name the file.
fn parse_file<T>(path: &Path, parse: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    parse(&read_text(path)?).with_context(|| format!("`{}`", path.display()))
}

/// Words with their labels, or words alone where the labels are characters.
fn parse_lexicon(text: &str, labels: &LabelSet) -> anyhow::Result<Lexicon> {
    let words = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if labels.units() == Units::Phones || words().any(|line| line.contains(char::is_whitespace)) {
        return Ok(Lexicon::parse(text, labels)?);
    }
    let (lexicon, n_foreign) = Lexicon::spelled(words(), labels);
    ensure!(0 < lexicon.n_words(), "none of its {n_foreign} words can be spelled in the labels of the model");
    Ok(lexicon)
}

/// Endpoint rules with the names that Kaldi and sherpa-onnx use.
#[derive(clap::Args)]
#[command(next_help_heading = "Endpoints")]
pub(crate) struct EndpointArgs {
    /// Treat a recording as one utterance, however long its pauses are
    #[arg(long)]
    no_endpoint: bool,

    /// Do not end an utterance at the end-of-sentence label
    #[arg(long)]
    no_end_of_sentence: bool,

    /// Rule 1: silence that ends an utterance, even an empty one [default: 2.4 s]
    #[arg(long, value_name = "S")]
    rule1_min_trailing_silence: Option<f64>,
    /// Rule 1: require speech before the silence [default: false]
    #[arg(long, value_name = "BOOL")]
    rule1_must_contain_nonsilence: Option<bool>,
    /// Rule 1: minimum length of the utterance [default: 0 s]
    #[arg(long, value_name = "S")]
    rule1_min_utterance_length: Option<f64>,

    /// Rule 2: silence that ends an utterance that contains speech [default: 1.2 s]
    #[arg(long, value_name = "S")]
    rule2_min_trailing_silence: Option<f64>,
    /// Rule 2: require speech before the silence [default: true]
    #[arg(long, value_name = "BOOL")]
    rule2_must_contain_nonsilence: Option<bool>,
    /// Rule 2: minimum length of the utterance [default: 0 s]
    #[arg(long, value_name = "S")]
    rule2_min_utterance_length: Option<f64>,

    /// Rule 3: silence that ends a long utterance [default: 0 s, any]
    #[arg(long, value_name = "S")]
    rule3_min_trailing_silence: Option<f64>,
    /// Rule 3: require speech before the silence [default: false]
    #[arg(long, value_name = "BOOL")]
    rule3_must_contain_nonsilence: Option<bool>,
    /// Rule 3: minimum length of the utterance [default: 20 s]
    #[arg(long, value_name = "S")]
    rule3_min_utterance_length: Option<f64>,
}

impl EndpointArgs {
    /// The rules; `None` with `--no-endpoint`.
    pub(crate) fn resolve(self) -> anyhow::Result<Option<EndpointRules>> {
        let usual = EndpointRules::default();
        let rule1 =
            (self.rule1_must_contain_nonsilence, self.rule1_min_trailing_silence, self.rule1_min_utterance_length);
        let rule2 =
            (self.rule2_must_contain_nonsilence, self.rule2_min_trailing_silence, self.rule2_min_utterance_length);
        let rule3 =
            (self.rule3_must_contain_nonsilence, self.rule3_min_trailing_silence, self.rule3_min_utterance_length);
        let rules = EndpointRules {
            rule1: rule(1, usual.rule1, rule1)?,
            rule2: rule(2, usual.rule2, rule2)?,
            rule3: rule(3, usual.rule3, rule3)?,
            end_of_sentence: !self.no_end_of_sentence,
        };
        Ok((!self.no_endpoint).then_some(rules))
    }
}

/// Rule `number`: its defaults, overridden by the options given (speech required, silence, length).
fn rule(
    number: u32,
    usual: Rule,
    (must, silence, length): (Option<bool>, Option<f64>, Option<f64>),
) -> anyhow::Result<Rule> {
    for (name, seconds) in [("trailing-silence", silence), ("utterance-length", length)] {
        let seconds = seconds.unwrap_or(0.0);
        ensure!((0.0..=1e9).contains(&seconds), "--rule{number}-min-{name} is {seconds}, expected seconds, 0 or more");
    }
    Ok(Rule {
        must_contain_nonsilence: must.unwrap_or(usual.must_contain_nonsilence),
        min_trailing_silence_s: silence.unwrap_or(usual.min_trailing_silence_s),
        min_utterance_length_s: length.unwrap_or(usual.min_utterance_length_s),
    })
}
