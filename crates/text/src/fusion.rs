//! What is known beside the sound: a label behind a prefix in, whether it may stand there and what it adds out.
//!
//! A [`Fusion`] joins up to four sources, all of them immutable and shared by any number of streams:
//!
//! - a language model, which rates every label, or every word when it ends;
//! - a lexicon, outside of which no word is written; for phones it is also what makes words of them;
//! - hotwords, which make phrases likelier or less likely;
//! - a list of phrases outside of which nothing is written.
//!
//! A word that is not yet complete counts as the likeliest word that begins so, which is replaced by what the word
//! really is, given the words before it, when it ends. So a beam does not fill with beginnings of words that nobody says.

mod hotwords;
mod lexicon;
mod phrases;
mod word_tree;

use std::sync::Arc;

pub use hotwords::{DEFAULT_HOTWORD_SCORE, Hotword};
pub use lexicon::Lexicon;

use crate::decode::NONE;
use crate::labels::{LabelSet, Units};
use crate::lm::{Context, NgramModel, WordId};
use hotwords::Automaton;
use phrases::PhraseGraph;
use word_tree::{OUTSIDE, ROOT, WordTree};

/// Labels of phones that are no sound of a word.
const SILENCES: [&str; 8] = ["sil", "SIL", "<sil>", "h#", "pau", "epi", "sp", "spn"];
/// What the space is called in language models of characters.
const SPACES: [&str; 4] = ["<space>", "|", "\u{2581}", "_"];
const MAX_LIST: usize = 2_000_000;
const MAX_PHRASE_CHARS: usize = 1000;

/// Whether a language model is one of labels or of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The words of the model are labels: characters or phones.
    Labels,
    /// The words of the model are words.
    Words,
}

/// A language model and its weight.
#[derive(Clone, Debug)]
pub struct Language {
    /// The model.
    pub model: Arc<NgramModel>,
    /// What its words are.
    pub level: Level,
    /// Weight of its log-probabilities, at least 0.
    pub alpha: f64,
    /// What every one of its words adds.
    pub beta: f64,
}

/// What a [`Fusion`] is made of.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A language model.
    pub language: Option<Language>,
    /// The only words there are.
    pub lexicon: Option<Lexicon>,
    /// Phrases to listen for.
    pub hotwords: Vec<Hotword>,
    /// The only phrases there are, in the labels' own writing.
    pub phrases: Option<Phrases>,
}

/// Phrases that are all that may be said.
#[derive(Clone, Debug, Default)]
pub struct Phrases {
    /// The phrases.
    pub phrases: Vec<String>,
    /// Whether an utterance may be several of them in a row.
    pub repeats: bool,
}

impl Phrases {
    /// Reads one phrase a line; lines that begin with `#` and empty ones are skipped.
    pub fn parse(text: &str, repeats: bool) -> Result<Self, ReadListError> {
        let mut phrases = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                check_phrase(line, index + 1)?;
                phrases.push(line.to_owned());
            }
        }
        check_length(phrases.len())?;
        Ok(Self { phrases, repeats })
    }
}

/// Why a list of hotwords, phrases or words could not be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ReadListError {
    #[error("line {line}: the score is `{found}`, expected a number from -100 to 100")]
    Score { line: usize, found: String },
    #[error("line {line}: a phrase of {found} characters, at most {limit} are allowed")]
    Long { line: usize, found: usize, limit: usize },
    #[error("line {line}: a score without a phrase")]
    NoPhrase { line: usize },
    #[error("line {line}: `{word}` has no labels behind it")]
    NoLabels { line: usize, word: String },
    #[error("line {line}: `{phrase}` has the label `{found}`, which the model cannot write")]
    Label { line: usize, found: String, phrase: String },
    #[error("{found} lines, at most {limit} are allowed")]
    TooMany { found: usize, limit: usize },
}

fn check_phrase(phrase: &str, line: usize) -> Result<(), ReadListError> {
    let (found, limit) = (phrase.chars().count(), MAX_PHRASE_CHARS);
    match found {
        0 => Err(ReadListError::NoPhrase { line }),
        _ if limit < found => Err(ReadListError::Long { line, found, limit }),
        _ => Ok(()),
    }
}

fn check_length(found: usize) -> Result<(), ReadListError> {
    if MAX_LIST < found { Err(ReadListError::TooMany { found, limit: MAX_LIST }) } else { Ok(()) }
}

/// Why sources do not go together with a label set.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum FusionError {
    #[error("`{phrase}` cannot be written in the labels of the model")]
    Phrase { phrase: String },
    #[error("a language model of words needs a lexicon where the labels are {units}")]
    NeedsLexicon { units: Units },
    #[error("a lexicon needs a label for the space between words where the labels are chars")]
    NeedsSpace,
    #[error("none of the {n_words} words of the language model can be written in the labels of the model")]
    ForeignLanguage { n_words: usize },
    #[error("the weight of a language model is {found}, expected a number of at least 0")]
    Weight { found: f64 },
    #[error("the list of phrases needs more than {limit} states")]
    LargePhraseList { limit: usize },
}

impl FusionError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NeedsLexicon { .. } => Some("give a file of `word label label ...` lines as the lexicon".into()),
            Self::Phrase { .. } => Some("leave out punctuation and digits, or spell them".into()),
            _ => None,
        }
    }
}

/// Where a prefix stands in everything that is fused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    word: u32,
    context: Context,
    hot: u32,
    phrase: u32,
}

/// One way in which a prefix goes on with a label.
pub(crate) struct Extension {
    /// The word that ends before the label.
    pub(crate) word: u32,
    /// What is added to the score.
    pub(crate) gain: f64,
    /// Where the longer prefix stands.
    pub(crate) state: State,
}

/// How an utterance ends behind a prefix.
pub(crate) struct Ending {
    /// The word that ends with it.
    pub(crate) word: u32,
    /// What is added to the score.
    pub(crate) gain: f64,
}

impl Default for Ending {
    fn default() -> Self {
        Self { word: NONE, gain: 0.0 }
    }
}

/// The labels that are no part of words: space, silences, end of sentence.
#[derive(Debug)]
struct Separators {
    is_between: Vec<bool>,
    has_space: bool,
}

impl Separators {
    fn new(labels: &LabelSet) -> Self {
        let mut is_between = vec![false; labels.n_classes()];
        let has_space = labels.units() == Units::Chars && labels.class(" ").is_some();
        let silences =
            SILENCES.iter().filter(|_| labels.units() == Units::Phones).filter_map(|name| labels.class(name));
        let space = labels.class(" ").filter(|_| has_space);
        silences.chain(space).chain(labels.end_of_sentence()).for_each(|class| is_between[class] = true);
        Self { is_between, has_space }
    }

    fn has(&self, class: u32) -> bool {
        self.is_between[class as usize]
    }

    fn has_space(&self) -> bool {
        self.has_space
    }

    fn classes(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.is_between).filter(|(_, is)| **is).map(|(class, _)| class)
    }
}

/// A language model that rates labels.
#[derive(Debug)]
struct LabelRater {
    language: Language,
    /// For every class its word; none for separators that the model does not have.
    word_of_class: Vec<Option<WordId>>,
}

/// Words, and a language model that rates them.
#[derive(Debug)]
struct WordRater {
    tree: WordTree,
    language: Option<Language>,
    /// For every word of the tree its word in the language model.
    ids: Vec<WordId>,
    /// Whether there are words outside of the tree.
    is_open: bool,
}

/// All that is fused, for one label set.
#[derive(Debug)]
pub struct Fusion {
    separators: Separators,
    lexicon: Option<Lexicon>,
    label_rater: Option<LabelRater>,
    word_rater: Option<WordRater>,
    hotwords: Option<Automaton>,
    phrases: Option<PhraseGraph>,
}

impl Fusion {
    /// Joins `sources` for the classes of `labels`.
    pub fn new(labels: &LabelSet, sources: Sources) -> Result<Self, FusionError> {
        let Sources { language, lexicon, hotwords, phrases } = sources;
        if let Some(language) = &language
            && !(language.alpha >= 0.0 && language.alpha.is_finite() && language.beta.is_finite())
        {
            return Err(FusionError::Weight { found: language.alpha });
        }
        let separators = Separators::new(labels);
        let (of_labels, of_words) = match language {
            Some(language) if language.level == Level::Labels || labels.units() == Units::Words => {
                (Some(language), None)
            }
            other => (None, other),
        };
        Ok(Self {
            label_rater: of_labels.map(|language| LabelRater::new(labels, language)).transpose()?,
            word_rater: WordRater::new(labels, &separators, lexicon.as_ref(), of_words)?,
            hotwords: automaton(labels, &hotwords)?,
            phrases: phrases.map(|phrases| graph(labels, &separators, &phrases)).transpose()?,
            lexicon,
            separators,
        })
    }

    /// The lexicon, whose numbers stand in [`crate::decode::WordSpan`].
    pub fn lexicon(&self) -> Option<&Lexicon> {
        self.lexicon.as_ref()
    }

    pub(crate) fn is_between(&self, class: u32) -> bool {
        self.separators.has(class)
    }

    pub(crate) fn has_words(&self) -> bool {
        self.lexicon.is_some()
    }

    pub(crate) fn is_phrase_bound(&self) -> bool {
        self.phrases.is_some()
    }

    pub(crate) fn start(&self) -> State {
        let language = self.language();
        State {
            word: ROOT,
            context: language.map_or_else(Context::default, |language| language.model.start()),
            hot: self.hotwords.as_ref().map_or(0, Automaton::start),
            phrase: 0,
        }
    }

    fn language(&self) -> Option<&Language> {
        let of_words = self.word_rater.as_ref().and_then(|rater| rater.language.as_ref());
        self.label_rater.as_ref().map(|rater| &rater.language).or(of_words)
    }

    /// No label adds more than this behind `state`.
    pub(crate) fn max_gain(&self, state: &State) -> f64 {
        let of_labels = self.label_rater.as_ref().map_or(0.0, |rater| rater.language.beta.max(0.0));
        let of_words = self.word_rater.as_ref().map_or(0.0, |rater| rater.max_gain(state.word));
        of_labels + of_words + self.hotwords.as_ref().map_or(0.0, Automaton::max_gain)
    }

    /// All ways in which a prefix goes on with `class`.
    pub(crate) fn extend(&self, state: &State, class: u32, out: &mut Vec<Extension>) {
        let mut next = *state;
        let mut gain = 0.0;
        if let Some(phrases) = &self.phrases {
            let Some(phrase) = phrases.next(state.phrase, class) else { return };
            next.phrase = phrase;
        }
        if let Some(hotwords) = &self.hotwords {
            let step = hotwords.step(state.hot, class);
            (next.hot, gain) = (step.state, step.gain);
        }
        if let Some(rater) = &self.label_rater {
            let (context, of_label) = rater.rate(state.context, class);
            (next.context, gain) = (context, gain + of_label);
        }
        match &self.word_rater {
            Some(rater) => rater.extend(next, gain, class, self.separators.has(class), self, out),
            None => out.push(Extension { word: NONE, gain, state: next }),
        }
    }

    /// How the utterance ends behind a prefix, if it may.
    pub(crate) fn end(&self, state: &State) -> Option<Ending> {
        if self.phrases.as_ref().is_some_and(|phrases| !phrases.may_end(state.phrase)) {
            return None;
        }
        let gain = self.hotwords.as_ref().map_or(0.0, |hotwords| hotwords.end(state.hot));
        match (&self.word_rater, &self.label_rater) {
            (Some(rater), _) => rater.end(state, gain, self.has_words()),
            (None, Some(rater)) => Some(Ending { word: NONE, gain: gain + rater.language.end(state.context) }),
            (None, None) => Some(Ending { word: NONE, gain }),
        }
    }
}

impl Language {
    /// What a word adds, and the context behind it.
    fn rate(&self, context: Context, word: WordId) -> (Context, f64) {
        let (context, log_prob) = self.model.next(context, word);
        (context, self.alpha * log_prob + self.beta)
    }

    fn end(&self, context: Context) -> f64 {
        self.model.sentence_end().map_or(0.0, |end| self.alpha * self.model.log_prob(context, end))
    }
}

impl LabelRater {
    fn new(labels: &LabelSet, language: Language) -> Result<Self, FusionError> {
        let separators = Separators::new(labels);
        let find = |name: &str| language.model.word(name);
        let mut n_found = 0;
        let mut word_of_class = vec![None; labels.n_classes()];
        for (index, symbol) in labels.symbols().iter().enumerate() {
            let mut spaces = SPACES.iter().filter(|_| symbol == " ");
            let folded = || find(&symbol.to_lowercase()).or_else(|| find(&symbol.to_uppercase()));
            let found = find(symbol).or_else(|| spaces.find_map(|name| find(name))).or_else(folded);
            n_found += usize::from(found.is_some());
            let is_silent = separators.has(index as u32 + 1);
            word_of_class[index + 1] = found.or_else(|| (!is_silent).then(|| language.model.unknown()));
        }
        if n_found == 0 {
            return Err(FusionError::ForeignLanguage { n_words: language.model.words().count() });
        }
        Ok(Self { language, word_of_class })
    }

    fn rate(&self, context: Context, class: u32) -> (Context, f64) {
        let word = self.word_of_class[class as usize];
        word.map_or((context, 0.0), |word| self.language.rate(context, word))
    }
}

impl WordRater {
    /// The words of the lexicon, or without one those of the language model.
    fn new(
        labels: &LabelSet,
        separators: &Separators,
        lexicon: Option<&Lexicon>,
        language: Option<Language>,
    ) -> Result<Option<Self>, FusionError> {
        if lexicon.is_none() && language.is_none() {
            return Ok(None);
        }
        let spelled;
        let words = match (lexicon, &language) {
            (Some(lexicon), _) => lexicon,
            (None, Some(language)) if labels.units() == Units::Chars => {
                spelled = Lexicon::spelled(language.model.words().map(|(word, _)| word), labels).0;
                &spelled
            }
            _ => return Err(FusionError::NeedsLexicon { units: labels.units() }),
        };
        if labels.units() == Units::Chars && !separators.has_space() {
            return Err(FusionError::NeedsSpace);
        }
        if let Some(language) = language.as_ref().filter(|_| words.n_words() == 0) {
            return Err(FusionError::ForeignLanguage { n_words: language.model.words().count() });
        }
        let ids: Vec<WordId> = language.as_ref().map_or_else(Vec::new, |language| ids(words.words(), &language.model));
        let value = |word: u32| match &language {
            Some(language) => language.model.log_prob(language.model.nothing(), ids[word as usize]) as f32,
            None => 0.0,
        };
        let tree = WordTree::new(words.entries(), value);
        Ok(Some(Self { tree, language, ids, is_open: lexicon.is_none() }))
    }

    /// What a prefix inside of a word holds until the word ends: as if it were the likeliest that begins so.
    fn ahead(&self, node: u32) -> f64 {
        let Some(language) = &self.language else { return 0.0 };
        match node {
            ROOT => 0.0,
            OUTSIDE => language.alpha * language.model.log_prob(language.model.nothing(), language.model.unknown()),
            _ => language.alpha * f64::from(self.tree.best(node)),
        }
    }

    fn max_gain(&self, node: u32) -> f64 {
        let Some(language) = &self.language else { return 0.0 };
        let ahead = self.ahead(node);
        let outside = if self.is_open { self.ahead(OUTSIDE) } else { f64::NEG_INFINITY };
        let ends = if node == ROOT { 0.0 } else { language.beta };
        (outside.max(ends).max(0.0) - ahead).max(0.0)
    }

    /// What word `word` adds behind `state`, in place of what was held for it.
    fn rate(&self, state: &State, word: Option<u32>) -> (Context, f64) {
        let Some(language) = &self.language else { return (state.context, 0.0) };
        let id = word.map_or(language.model.unknown(), |word| self.ids[word as usize]);
        let (context, gain) = language.rate(state.context, id);
        (context, gain - self.ahead(state.word))
    }

    fn extend(&self, next: State, gain: f64, class: u32, is_between: bool, all: &Fusion, out: &mut Vec<Extension>) {
        let node = next.word;
        if is_between && node == ROOT {
            out.push(Extension { word: NONE, gain, state: next });
        } else if is_between {
            self.end_word(next, gain, ROOT, all, out);
        } else {
            match self.tree.child(node, class) {
                Some(child) => out.push(self.inside(next, gain, child)),
                None if self.is_open => out.push(self.inside(next, gain, OUTSIDE)),
                None => {}
            }
            // Without a label between words, the next word may begin at once.
            if !all.separators.has_space()
                && node != ROOT
                && let Some(child) = self.tree.child(ROOT, class)
            {
                self.end_word(next, gain, child, all, out);
            }
        }
    }

    fn inside(&self, state: State, gain: f64, child: u32) -> Extension {
        let gain = gain + self.ahead(child) - self.ahead(state.word);
        Extension { word: NONE, gain, state: State { word: child, ..state } }
    }

    /// Every word that may end here, with the next one at `node`.
    fn end_word(&self, state: State, gain: f64, node: u32, all: &Fusion, out: &mut Vec<Extension>) {
        let words = self.tree.words(state.word);
        if words.is_empty() && self.is_open {
            let (context, of_word) = self.rate(&state, None);
            let gain = gain + of_word + self.ahead(node);
            out.push(Extension { word: NONE, gain, state: State { word: node, context, ..state } });
        }
        for word in words {
            let (context, of_word) = self.rate(&state, Some(*word));
            let gain = gain + of_word + self.ahead(node);
            let mark = if all.has_words() { *word } else { NONE };
            out.push(Extension { word: mark, gain, state: State { word: node, context, ..state } });
        }
    }

    /// The best way to end.
    fn end(&self, state: &State, gain: f64, has_words: bool) -> Option<Ending> {
        let sentence_end = |context| self.language.as_ref().map_or(0.0, |language| language.end(context));
        if state.word == ROOT {
            return Some(Ending { word: NONE, gain: gain + sentence_end(state.context) });
        }
        let words = self.tree.words(state.word);
        let open = (words.is_empty() && self.is_open).then_some(None);
        let endings = words.iter().map(|word| Some(*word)).chain(open).map(|word| {
            let (context, of_word) = self.rate(state, word);
            let mark = word.filter(|_| has_words).unwrap_or(NONE);
            Ending { word: mark, gain: gain + of_word + sentence_end(context) }
        });
        endings.max_by(|a, b| a.gain.total_cmp(&b.gain).then(b.word.cmp(&a.word)))
    }
}

fn ids(words: &[String], model: &NgramModel) -> Vec<WordId> {
    let find = |word: &String| model.word(word).or_else(|| model.word(&word.to_lowercase()));
    let find = |word: &String| find(word).or_else(|| model.word(&word.to_uppercase()));
    words.iter().map(|word| find(word).unwrap_or(model.unknown())).collect()
}

/// The classes of a phrase, without the end of the sentence; as it is written, or in capitals, or in small letters.
fn encode(labels: &LabelSet, phrase: &str) -> Option<Vec<usize>> {
    let writings = [phrase.to_owned(), phrase.to_uppercase(), phrase.to_lowercase()];
    let mut classes = writings.iter().find_map(|phrase| labels.encode(phrase).ok())?;
    classes.retain(|class| Some(*class) != labels.end_of_sentence());
    Some(classes)
}

fn encode_or_fail(labels: &LabelSet, phrase: &str) -> Result<Vec<usize>, FusionError> {
    encode(labels, phrase).ok_or_else(|| FusionError::Phrase { phrase: phrase.chars().take(60).collect() })
}

fn automaton(labels: &LabelSet, hotwords: &[Hotword]) -> Result<Option<Automaton>, FusionError> {
    if hotwords.is_empty() {
        return Ok(None);
    }
    let encode = |hotword: &Hotword| Ok((encode_or_fail(labels, &hotword.phrase)?, hotword.score));
    Ok(Some(Automaton::new(labels, &hotwords.iter().map(encode).collect::<Result<Vec<_>, _>>()?)))
}

fn graph(labels: &LabelSet, separators: &Separators, phrases: &Phrases) -> Result<PhraseGraph, FusionError> {
    let encoded: Result<Vec<_>, _> = phrases.phrases.iter().map(|phrase| encode_or_fail(labels, phrase)).collect();
    PhraseGraph::new(&encoded?, separators, phrases.repeats)
}

#[cfg(test)]
mod tests;
