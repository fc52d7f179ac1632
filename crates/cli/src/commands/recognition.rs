//! Options shared by the commands that recognise: the model, decoding, and endpoint rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use srf::endpoint::{EndpointRules, Rule};
use srf::words::{MAX_BEAM, WordSettings, Words};
use srf::{Recognizer, StreamOptions, VadConfig};
use srf_base::files::read_text_at_most;
use srf_text::decode::{DecoderConfig, Search};
use srf_text::fusion::{
    DEFAULT_HOTWORD_SCORE, Fusion, FusionError, Hotword, Language, Level, Lexicon, Phrases, Sources,
};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::NgramModel;
use srf_text::word_model::WordModel;

use super::models::{default_directory, model_directory};
use crate::printer::Printer;

/// Size limit of lists, lexicons and transcripts.
const MAX_TEXT_BYTES: u64 = 256 << 20;

#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// Model directory, run that contains one, or name (see `srf models`) [default: $SRF_MODEL, ./model or en]
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
    /// Width of the prefix beam search [default: the model's, or 100]
    #[arg(long, value_name = "N")]
    beam: Option<usize>,

    /// Greedy decoding instead of beam search: the most probable label of each slice, never words of a lexicon
    #[arg(long, conflicts_with_all = ["beam", "lm", "lexicon", "hotwords", "phrases"])]
    greedy: bool,

    /// Write the labels of the model (phones) even if it has words
    #[arg(long, alias = "labels", conflicts_with = "lexicon")]
    phones: bool,

    /// Number of hypotheses per utterance in JSON output
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,

    /// N-gram language model in ARPA format, plain or .gz [default: the model's, if it has words]
    #[arg(long, value_name = "FILE")]
    lm: Option<PathBuf>,

    /// Whether the language model is over words or over the labels of the recogniser (characters, phones)
    #[arg(long, value_name = "UNIT", default_value = "words")]
    lm_of: LanguageOf,

    /// Weight of the language model [default: the model's, or 0.5]
    #[arg(long)]
    alpha: Option<f64>,

    /// Bonus per word (natural logarithm) [default: the model's, or 1]
    #[arg(long, allow_negative_numbers = true)]
    beta: Option<f64>,

    /// Restrict output to these words: `word label label ...` lines as in CMUdict, or one word per line for character models [default: the model's, if it has words]
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

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum LanguageOf {
    Words,
    Labels,
}

impl DecodingArgs {
    /// Stream options for a model; everything that is not about decoding has its default.
    pub(crate) fn resolve(self, recognizer: &Recognizer) -> anyhow::Result<StreamOptions> {
        let n_best = self.nbest;
        let decoder = Some(self.decoder(recognizer)?);
        Ok(StreamOptions { decoder, n_best, ..StreamOptions::default() })
    }

    /// How a model decodes with these options.
    pub(crate) fn decoder(self, recognizer: &Recognizer) -> anyhow::Result<DecoderConfig> {
        if self.greedy {
            return Ok(DecoderConfig { search: Search::Greedy, fusion: None });
        }
        let labels = recognizer.labels();
        let words = self.words_of(recognizer);
        let settings = words.map_or_else(WordSettings::default, |words| *words.settings());
        let width = self.beam.unwrap_or(settings.beam);
        ensure!((1..=MAX_BEAM).contains(&width), "--beam is {width}, expected 1 to {MAX_BEAM}");
        let search = Search::Beam { width };
        let needs_phones = labels.units() == Units::Phones && words.is_none() && self.lexicon.is_none();
        let is_of_model = words.is_some() && !self.changes_words();
        let (alpha, beta) = (self.alpha.unwrap_or(settings.alpha), self.beta.unwrap_or(settings.beta));
        let given = self.sources(labels, alpha, beta)?;
        let fusion = match words {
            Some(_) if is_of_model => {
                recognizer.decoder_with(&given.hotwords, given.phrases.as_ref()).map(|decoder| decoder.fusion)
            }
            Some(words) => Fusion::new(labels, with_words(given, words.model(), alpha, beta)).map(|f| Some(f.into())),
            None if is_empty(&given) => Ok(None),
            None => Fusion::new(labels, given).map(|fusion| Some(fusion.into())),
        };
        let fusion = fusion.map_err(|cause| match cause {
            FusionError::Phrase { .. } if needs_phones => anyhow::Error::new(WordsForPhonesError { cause }),
            cause => cause.into(),
        })?;
        Ok(DecoderConfig { search, fusion })
    }

    /// The words of the model, unless these options say that it writes something else.
    fn words_of<'a>(&self, recognizer: &'a Recognizer) -> Option<&'a Words> {
        let is_of_labels = self.lm.is_some() && self.lm_of == LanguageOf::Labels;
        let writes_words = !self.phones && !self.greedy && self.lexicon.is_none() && !is_of_labels;
        recognizer.words().filter(|_| writes_words)
    }

    fn changes_words(&self) -> bool {
        self.lm.is_some() || self.alpha.is_some() || self.beta.is_some()
    }

    /// Reads all files that were named.
    fn sources(self, labels: &LabelSet, alpha: f64, beta: f64) -> anyhow::Result<Sources> {
        let Self { lm, lm_of, lexicon, hotwords, hotword_score, phrases, phrases_repeat, .. } = self;
        ensure!(hotword_score.abs() <= 100.0, "--hotword-score is {hotword_score}, expected -100 to 100");
        let level = match lm_of {
            LanguageOf::Words => Level::Words,
            LanguageOf::Labels => Level::Labels,
        };
        let language = |path: PathBuf| -> anyhow::Result<Language> {
            Ok(Language { model: Arc::new(NgramModel::load(&path)?), level, alpha, beta })
        };
        let hotwords = hotwords.map(|path| parse_file(&path, |text| Ok(Hotword::parse_list(text, hotword_score)?)));
        Ok(Sources {
            language: lm.map(language).transpose()?,
            lexicon: lexicon.map(|path| parse_file(&path, |text| parse_lexicon(text, labels))).transpose()?,
            hotwords: hotwords.transpose()?.unwrap_or_default(),
            phrases: phrases
                .map(|path| parse_file(&path, |text| Ok(Phrases::parse(text, phrases_repeat)?)))
                .transpose()?,
        })
    }
}

/// `given` with the lexicon of the model, and its language model if none was given.
fn with_words(given: Sources, words: &WordModel, alpha: f64, beta: f64) -> Sources {
    let own = || Language { model: Arc::clone(&words.language), level: Level::Words, alpha, beta };
    Sources { language: given.language.or_else(|| Some(own())), lexicon: Some(words.lexicon.clone()), ..given }
}

fn is_empty(sources: &Sources) -> bool {
    let Sources { language, lexicon, hotwords, phrases } = sources;
    language.is_none() && lexicon.is_none() && hotwords.is_empty() && phrases.is_none()
}

/// Says what a model of phones writes.
pub(crate) fn note_output(recognizer: &Recognizer, decoder: &DecoderConfig, out: &Printer) {
    if recognizer.labels().units() != Units::Phones {
        return;
    }
    let lexicon = decoder.fusion.as_ref().and_then(|fusion| fusion.lexicon());
    match (lexicon, recognizer.words()) {
        (Some(lexicon), Some(_)) => {
            out.note(format_args!(
                "the output is words, from a lexicon of {}; `--phones` gives phones",
                lexicon.n_words()
            ));
        }
        (Some(_), None) => {}
        (None, Some(_)) => out.note("the output is phones; without `--phones` and `--greedy` it is words"),
        (None, None) => out.note(
            "the output is phones, because the labels of this model are phones and it has no words; `srf words build` \
             adds them, or `--lexicon FILE` gives some",
        ),
    }
}

/// The text of a file of limited size.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let text = read_text_at_most(path, MAX_TEXT_BYTES).with_context(|| format!("could not read `{shown}`"))?;
    text.with_context(|| format!("`{shown}` has more than {MAX_TEXT_BYTES} bytes, expected a list or a text"))
}

/// Parses the text of a file; errors name the file.
pub(crate) fn parse_file<T>(path: &Path, parse: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    parse(&read_text(path)?).with_context(|| format!("`{}`", path.display()))
}

/// Words with their labels, or words alone where the labels are characters.
pub(crate) fn parse_lexicon(text: &str, labels: &LabelSet) -> anyhow::Result<Lexicon> {
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

/// Voice activity detection, with the names that Silero's users know.
#[derive(clap::Args)]
#[command(next_help_heading = "Voice activity")]
pub(crate) struct VadArgs {
    /// Leave out silence and steady noise, for long recordings; utterances end there
    #[arg(long)]
    vad: bool,

    /// Level above the background that counts as speech
    #[arg(long, value_name = "DB", requires = "vad", default_value_t = VadConfig::default().threshold_db)]
    vad_threshold: f64,

    /// Ignore sounds shorter than this
    #[arg(long, value_name = "S", requires = "vad", default_value_t = VadConfig::default().min_speech_s)]
    vad_min_speech: f64,

    /// Keep pauses shorter than this
    #[arg(long, value_name = "S", requires = "vad", default_value_t = VadConfig::default().min_silence_s)]
    vad_min_silence: f64,

    /// Audio to keep before and after speech
    #[arg(long, value_name = "S", requires = "vad", default_value_t = VadConfig::default().pad_s)]
    vad_pad: f64,

    /// End longer speech at its next pause, however short [default: never]
    #[arg(long, value_name = "S", requires = "vad")]
    vad_max_speech: Option<f64>,
}

impl VadArgs {
    /// The configuration; `None` without `--vad`.
    pub(crate) fn resolve(&self) -> Option<VadConfig> {
        self.vad.then_some(VadConfig {
            threshold_db: self.vad_threshold,
            min_speech_s: self.vad_min_speech,
            min_silence_s: self.vad_min_silence,
            pad_s: self.vad_pad,
            max_speech_s: self.vad_max_speech,
        })
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
