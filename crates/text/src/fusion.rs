//! Shallow fusion: decides whether a label may follow a prefix and what it adds to the score.
//!
//! A [`Fusion`] joins up to four sources, all of them immutable and shared by any number of streams:
//!
//! - a language model, which scores every label, or every word when it ends;
//! - a lexicon, which is all the words there are; for phones it is also what turns them into words;
//! - hotwords, which make phrases more or less probable;
//! - a list of phrases, outside of which nothing is recognised.
//!
//! Inside a word the language model looks ahead: a prefix counts as the most probable word that begins so, and the
//! difference to the word's own n-gram probability is added when the word ends. So hypotheses inside words compete
//! fairly with those that just paid for a word, and a beam does not fill with beginnings of improbable words.
//!
//! ```
//! use std::sync::Arc;
//! use srf_text::decode::{Decoder, DecoderConfig};
//! use srf_text::fusion::{DEFAULT_HOTWORD_SCORE, Fusion, Hotword, Language, Level, Lexicon, Sources};
//! use srf_text::labels::{LabelSet, Units};
//! use srf_text::lm::{Limits, NgramModel};
//! let labels = LabelSet::new(Units::Chars, [" ", "a", "b", "c"])?;
//! let arpa = "\\data\\\nngram 1=3\n\n\\1-grams:\n-0.5 cab\n-0.5 </s>\n-99 <s>\n\n\\end\\\n";
//! let model = Arc::new(NgramModel::read(arpa.as_bytes(), Limits::default())?);
//! let (lexicon, n_foreign) = Lexicon::spelled(["cab", "back", "bad"], &labels);
//! assert_eq!((lexicon.n_words(), n_foreign), (1, 2));
//! let sources = Sources {
//!     language: Some(Language { model, level: Level::Words, alpha: 0.8, beta: 0.0 }),
//!     lexicon: Some(lexicon),
//!     hotwords: Hotword::parse_list("cab\n", DEFAULT_HOTWORD_SCORE)?,
//!     phrases: None,
//! };
//! let fusion = Arc::new(Fusion::new(&labels, sources)?);
//! let decoder = Decoder::new(labels.n_classes(), &DecoderConfig { fusion: Some(fusion), ..Default::default() });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encoder;
mod hotwords;
mod lexicon;
mod phrases;

use std::sync::Arc;

pub use hotwords::{DEFAULT_HOTWORD_SCORE, Hotword};
pub use lexicon::Lexicon;
pub(crate) use lexicon::{Names, WordTree};
pub use phrases::{Phrases, ReadListError};

use crate::decode::NONE;
use crate::labels::{LabelSet, Units};
use crate::lm::{Context, NgramModel, WordId};
use encoder::Encoder;
use hotwords::Automaton;
use lexicon::{OUTSIDE, ROOT};
use phrases::PhraseGraph;

/// What the space is called in language models of characters.
const SPACES: [&str; 4] = ["<space>", "|", "\u{2581}", "_"];

/// Whether the words of a language model are labels (characters or phones) or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Level {
    Labels,
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
    /// Phrases to favour or to avoid.
    pub hotwords: Vec<Hotword>,
    /// The only phrases there are, in labels, or in words if there is a lexicon of phones.
    pub phrases: Option<Phrases>,
}

/// Why sources do not go together with a label set.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum FusionError {
    #[error("`{phrase}` cannot be written in the labels of the model")]
    Phrase { phrase: String },
    #[error("`{phrase}` has a word that is not in the lexicon")]
    PhraseOfWords { phrase: String },
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

/// The state of all sources after a prefix: prefixes with the same state and last label have the same future.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    /// The state after the label.
    pub(crate) state: State,
}

/// One way in which a word, or the utterance, ends after a prefix.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) word: u32,
    /// What is added to the score.
    pub(crate) gain: f64,
    /// The state between words.
    state: State,
}

impl Default for Ending {
    fn default() -> Self {
        Self { word: NONE, gain: 0.0, state: State::default() }
    }
}

/// The labels between words: space, silences, end of sentence.
#[derive(Clone, Debug)]
struct Separators {
    is_between: Vec<bool>,
    has_space: bool,
}

impl Separators {
    fn new(labels: &LabelSet) -> Self {
        let mut is_between = vec![false; labels.n_classes()];
        let has_space = labels.units() == Units::Chars && labels.class(" ").is_some();
        let names = srf_base::silence::LABELS.iter().filter(|_| labels.units() == Units::Phones);
        let silences = names.filter_map(|name| labels.class(name));
        let space = labels.class(" ").filter(|_| has_space);
        silences.chain(space).chain(labels.end_of_sentence()).for_each(|class| is_between[class] = true);
        Self { is_between, has_space }
    }

    /// Between words of phrases of words there is nothing.
    fn of_words() -> Self {
        Self { is_between: Vec::new(), has_space: false }
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

/// A language model that scores labels.
#[derive(Debug)]
struct LabelRater {
    language: Language,
    /// For every class its word; `None` for separators that the model does not have.
    word_of_class: Vec<Option<WordId>>,
}

/// The words, and a language model that scores them.
#[derive(Debug)]
struct WordRater {
    tree: Arc<WordTree>,
    language: Option<Language>,
    /// For every word of the tree its word in the language model.
    ids: Vec<WordId>,
    /// For every node what the most probable word at or below it adds by itself: the look-ahead.
    ahead: Vec<f32>,
    /// The look-ahead inside words that are not in the tree.
    ahead_outside: f64,
    /// What is added to words that the language model does not know: its unknown word stands for all of them.
    unknown_share: f64,
    /// Whether there are words outside of the tree.
    is_open: bool,
    /// For every node a bit for each class that leads on, if there are few classes.
    next_classes: Vec<u64>,
}

/// All sources, for one label set.
#[derive(Debug)]
pub struct Fusion {
    separators: Separators,
    lexicon: Option<Lexicon>,
    label_rater: Option<Arc<LabelRater>>,
    word_rater: Option<Arc<WordRater>>,
    hotwords: Option<Automaton>,
    phrases: Option<PhraseGraph>,
    /// Whether hotwords and phrases are made of words instead of labels.
    is_word_level: bool,
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
        let label_rater = of_labels.map(|language| LabelRater::new(labels, language)).transpose()?;
        let fusion = Self {
            label_rater: label_rater.map(Arc::new),
            word_rater: WordRater::new(labels, &separators, lexicon.as_ref(), of_words)?.map(Arc::new),
            hotwords: None,
            phrases: None,
            is_word_level: lexicon.is_some() && matches!(labels.units(), Units::Phones | Units::Pieces),
            lexicon,
            separators,
        };
        fusion.with_lists(labels, &hotwords, phrases.as_ref())
    }

    /// The same language model and lexicon with other hotwords and phrases; quick, because the large parts are shared.
    pub fn with_lists(
        &self,
        labels: &LabelSet,
        hotwords: &[Hotword],
        phrases: Option<&Phrases>,
    ) -> Result<Self, FusionError> {
        let has_lists = !hotwords.is_empty() || phrases.is_some();
        let words = self.lexicon.as_ref().filter(|_| has_lists && self.is_word_level);
        let encoder = Encoder::new(labels, words);
        let hot = encoder.hotwords(hotwords)?;
        let phrases = phrases.map(|phrases| encoder.phrases(&self.separators, phrases)).transpose()?;
        Ok(Self {
            separators: self.separators.clone(),
            lexicon: self.lexicon.clone(),
            label_rater: self.label_rater.clone(),
            word_rater: self.word_rater.clone(),
            hotwords: (!hot.is_empty()).then(|| Automaton::new(encoder.space(), &hot)),
            phrases,
            is_word_level: self.is_word_level,
        })
    }

    /// The lexicon whose numbers are in [`crate::decode::WordSpan`].
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
        State {
            word: ROOT,
            context: self.language().map_or_else(Context::default, |language| language.model.start()),
            hot: self.hotwords.as_ref().map_or(0, Automaton::start),
            phrase: 0,
        }
    }

    fn language(&self) -> Option<&Language> {
        let of_words = self.word_rater.as_ref().and_then(|rater| rater.language.as_ref());
        self.label_rater.as_ref().map(|rater| &rater.language).or(of_words)
    }

    /// No label adds more than this after `state`.
    pub(crate) fn max_gain(&self, state: &State) -> f64 {
        let of_labels = self.label_rater.as_ref().map_or(0.0, |rater| rater.language.beta.max(0.0));
        let of_words = self.word_rater.as_ref().map_or(0.0, |rater| rater.max_gain(state.word));
        of_labels + of_words + self.hotwords.as_ref().map_or(0.0, Automaton::max_gain)
    }

    /// Whether `class` may follow `state`, as far as the tree of words says so quickly.
    pub(crate) fn may_follow(&self, state: &State, class: u32) -> bool {
        self.word_rater.as_ref().is_none_or(|rater| rater.may_follow(state.word, class))
    }

    /// All words that may end after `state`.
    pub(crate) fn word_ends(&self, state: &State, out: &mut Vec<Ending>) {
        if let Some(rater) = self.word_rater.as_ref().filter(|_| state.word != ROOT) {
            rater.ends(state, self, out);
        }
    }

    /// All ways in which a prefix goes on with `class`; `ends` are the [`Self::word_ends`] of its state.
    pub(crate) fn extend(&self, state: &State, class: u32, ends: &[Ending], out: &mut Vec<Extension>) {
        let mut next = *state;
        let mut gain = 0.0;
        if let Some(phrases) = self.phrases.as_ref().filter(|_| !self.is_word_level) {
            let Some(phrase) = phrases.next(state.phrase, class) else { return };
            next.phrase = phrase;
        }
        if let Some(hotwords) = self.hotwords.as_ref().filter(|_| !self.is_word_level) {
            let step = hotwords.step(state.hot, class);
            (next.hot, gain) = (step.state, step.gain);
        }
        if let Some(rater) = &self.label_rater {
            let (context, of_label) = rater.rate(state.context, class);
            (next.context, gain) = (context, gain + of_label);
        }
        match &self.word_rater {
            Some(rater) => rater.extend(next, gain, class, ends, self, out),
            None => out.push(Extension { word: NONE, gain, state: next }),
        }
    }

    /// The best way to end the utterance after a prefix, if it may end.
    pub(crate) fn end(&self, state: &State) -> Option<Ending> {
        let mut ends = Vec::new();
        self.word_ends(state, &mut ends);
        let is_inside = self.word_rater.is_some() && state.word != ROOT;
        if !is_inside {
            ends.push(Ending { state: *state, ..Ending::default() });
        }
        let finished = ends.into_iter().filter_map(|ending| {
            let Ending { word, gain, state } = ending;
            if self.phrases.as_ref().is_some_and(|phrases| !phrases.may_end(state.phrase)) {
                return None;
            }
            let of_sentence = self.language().map_or(0.0, |language| language.end(state.context));
            let of_hotwords = self.hotwords.as_ref().map_or(0.0, |hotwords| hotwords.end(state.hot));
            Some(Ending { word, gain: gain + of_sentence + of_hotwords, state })
        });
        finished.max_by(|a, b| a.gain.total_cmp(&b.gain).then(b.word.cmp(&a.word)))
    }
}

impl Language {
    /// What a word adds, and the context after it.
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
        let mut rater = Self {
            tree: Arc::clone(&words.tree),
            ids: language.as_ref().map_or_else(Vec::new, |language| ids(words, &language.model)),
            language,
            ahead: Vec::new(),
            ahead_outside: 0.0,
            unknown_share: 0.0,
            is_open: lexicon.is_none(),
            next_classes: Vec::new(),
        };
        rater.look_ahead();
        if !rater.is_open && labels.n_classes() <= 64 {
            rater.next_classes = next_classes(&rater.tree, separators);
        }
        Ok(Some(rater))
    }

    /// Fills in what depends on the language model.
    fn look_ahead(&mut self) {
        let Some(language) = &self.language else {
            self.ahead = vec![0.0; self.tree.n_nodes()];
            return;
        };
        let (model, alpha) = (&language.model, language.alpha);
        let n_unknown = self.ids.iter().filter(|id| **id == model.unknown()).count();
        if !self.is_open && 1 < n_unknown {
            self.unknown_share = -alpha * (n_unknown as f64).ln();
        }
        let value = |word: u32| {
            let id = self.ids[word as usize];
            let share = if id == model.unknown() { self.unknown_share } else { 0.0 };
            (alpha * model.log_prob(model.nothing(), id) + share) as f32
        };
        self.ahead = self.tree.best_values(value);
        self.ahead[ROOT as usize] = 0.0;
        self.ahead_outside = alpha * model.log_prob(model.nothing(), model.unknown());
    }

    /// What a prefix inside a word holds until the word ends.
    fn ahead(&self, node: u32) -> f64 {
        if node == OUTSIDE { self.ahead_outside } else { f64::from(self.ahead[node as usize]) }
    }

    fn max_gain(&self, node: u32) -> f64 {
        let Some(language) = &self.language else { return 0.0 };
        let outside = if self.is_open { self.ahead_outside } else { f64::NEG_INFINITY };
        let may_end = node != ROOT && (self.is_open || !self.tree.words(node).is_empty());
        let ends = if may_end { language.beta } else { f64::NEG_INFINITY };
        // Along an edge of the tree the look-ahead never grows.
        (outside.max(ends) - self.ahead(node)).max(0.0)
    }

    fn may_follow(&self, node: u32, class: u32) -> bool {
        self.next_classes.get(node as usize).is_none_or(|classes| classes >> class & 1 == 1)
    }

    /// What the end of `word` adds after `state`, in place of the look-ahead, and the context after it.
    fn rate(&self, state: &State, word: Option<u32>) -> (Context, f64) {
        let Some(language) = &self.language else { return (state.context, 0.0) };
        let unknown = language.model.unknown();
        let id = word.map_or(unknown, |word| self.ids[word as usize]);
        let share = if id == unknown { self.unknown_share } else { 0.0 };
        let (context, gain) = language.rate(state.context, id);
        (context, gain + share - self.ahead(state.word))
    }

    fn ends(&self, state: &State, all: &Fusion, out: &mut Vec<Ending>) {
        let words = self.tree.words(state.word);
        let open = (words.is_empty() && self.is_open).then_some(None);
        for word in words.iter().map(|word| Some(*word)).chain(open) {
            let (context, mut gain) = self.rate(state, word);
            let mut state = State { word: ROOT, context, ..*state };
            if let Some(word) = word.filter(|_| all.is_word_level) {
                if let Some(phrases) = &all.phrases {
                    let Some(phrase) = phrases.next(state.phrase, word) else { continue };
                    state.phrase = phrase;
                }
                if let Some(hotwords) = &all.hotwords {
                    let step = hotwords.step(state.hot, word);
                    (state.hot, gain) = (step.state, gain + step.gain);
                }
            }
            out.push(Ending { word: word.filter(|_| all.has_words()).unwrap_or(NONE), gain, state });
        }
    }

    /// `next` and `gain` are what the other sources made of the label.
    fn extend(&self, next: State, gain: f64, class: u32, ends: &[Ending], all: &Fusion, out: &mut Vec<Extension>) {
        let node = next.word;
        let is_between = all.separators.has(class);
        let inside = match self.tree.child(node, class) {
            _ if is_between => (node == ROOT).then_some(ROOT),
            None if self.is_open => Some(OUTSIDE),
            child => child,
        };
        out.extend(inside.map(|to| {
            let gain = gain + self.ahead(to) - self.ahead(node);
            Extension { word: NONE, gain, state: State { word: to, ..next } }
        }));
        // Without a label between words, the next word may begin at once.
        let after_word =
            if is_between { Some(ROOT) } else { self.tree.child(ROOT, class).filter(|_| !all.separators.has_space()) };
        let Some(to) = after_word.filter(|_| node != ROOT) else { return };
        out.extend(ends.iter().map(|end| {
            let others = if all.is_word_level { end.state } else { State { context: end.state.context, ..next } };
            let gain = gain + end.gain + self.ahead(to);
            Extension { word: end.word, gain, state: State { word: to, ..others } }
        }));
    }
}

/// For every node a bit for each class that may follow it.
fn next_classes(tree: &WordTree, separators: &Separators) -> Vec<u64> {
    let between = separators.classes().fold(0, |bits, class| bits | 1u64 << class);
    let inside = |node: u32| tree.children(node).fold(0, |bits, child| bits | 1u64 << tree.classes[child as usize]);
    let after_word = between | if separators.has_space() { 0 } else { inside(ROOT) };
    let nodes = 0..tree.n_nodes() as u32;
    let of = |node| inside(node) | if node == ROOT || !tree.words(node).is_empty() { after_word } else { 0 };
    nodes.map(of).collect()
}

/// For every word of a lexicon its word in a language model.
pub(crate) fn ids(words: &Lexicon, model: &NgramModel) -> Vec<WordId> {
    if words.stamp == model.stamp && words.ids.len() == words.n_words() {
        return words.ids.iter().map(|id| WordId(*id)).collect();
    }
    let folded = |word: &str| model.word(&word.to_lowercase()).or_else(|| model.word(&word.to_uppercase()));
    words.names.iter().map(|word| model.word(word).or_else(|| folded(word)).unwrap_or(model.unknown())).collect()
}

#[cfg(test)]
mod tests;
