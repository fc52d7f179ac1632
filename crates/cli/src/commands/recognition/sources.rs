//! What is known beside the sound, as typed: files of a language model, words, hotwords and phrases in, their contents
//! out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use srf_text::fusion::{DEFAULT_HOTWORD_SCORE, Hotword, Language, Level, Lexicon, Phrases, Sources};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::NgramModel;

use crate::commands::text_file;

/// Language model, lexicon, hotwords and phrases.
#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// An n-gram language model: ARPA, plain or .gz
    #[arg(long, value_name = "FILE")]
    lm: Option<PathBuf>,

    /// Whether the words of the language model are words or the labels of the recogniser (characters, phones)
    #[arg(long, value_name = "WHAT", default_value = "words")]
    lm_of: LanguageOf,

    /// Weight of the language model
    #[arg(long, default_value_t = 0.5)]
    alpha: f64,

    /// What every word adds (natural logarithm)
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    beta: f64,

    /// The only words there are: `word label label ...` lines as in CMUdict, or one word a line for models of characters
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,

    /// Phrases to listen for, one a line, with a score of their own behind a colon or a tab
    #[arg(long, value_name = "FILE")]
    hotwords: Option<PathBuf>,

    /// What each label of a hotword adds where its line has no score; negative to avoid it
    #[arg(long, value_name = "SCORE", default_value_t = DEFAULT_HOTWORD_SCORE, allow_negative_numbers = true)]
    hotword_score: f32,

    /// The only phrases there are, one a line
    #[arg(long, value_name = "FILE")]
    phrases: Option<PathBuf>,

    /// An utterance may be several of the phrases in a row
    #[arg(long, requires = "phrases")]
    phrases_repeat: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LanguageOf {
    Words,
    Labels,
}

impl SourceArgs {
    /// Reads all files; nothing if none was named.
    pub(crate) fn resolve(self, labels: &LabelSet) -> anyhow::Result<Option<Sources>> {
        let Self { lm, lm_of, alpha, beta, lexicon, hotwords, hotword_score, phrases, phrases_repeat } = self;
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
        Ok(Some(Sources {
            language: lm.map(language).transpose()?,
            lexicon: lexicon.map(|path| read(&path, |text| read_lexicon(text, labels))).transpose()?,
            hotwords: match hotwords {
                Some(path) => read(&path, |text| Ok(Hotword::parse_list(text, hotword_score)?))?,
                None => Vec::new(),
            },
            phrases: phrases.map(|path| read(&path, |text| Ok(Phrases::parse(text, phrases_repeat)?))).transpose()?,
        }))
    }
}

/// What `parse` makes of a file; what is wrong is told with its name.
fn read<T>(path: &Path, parse: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    parse(&text_file::read(path)?).with_context(|| format!("`{}`", path.display()))
}

/// Words with their labels, or words alone where the labels are the characters they are spelled in.
fn read_lexicon(text: &str, labels: &LabelSet) -> anyhow::Result<Lexicon> {
    let words = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if labels.units() == Units::Phones || words().any(|line| line.contains(char::is_whitespace)) {
        return Ok(Lexicon::parse(text, labels)?);
    }
    let (lexicon, n_foreign) = Lexicon::spelled(words(), labels);
    ensure!(0 < lexicon.n_words(), "none of its {n_foreign} words can be spelled in the labels of the model");
    Ok(lexicon)
}
