//! N-gram language models with back-off: log-probabilities of words given the words before them.
//!
//! With n-grams as a tree (w1, then w2 below it) a context is a node, and p(w | context) is
//!
//! ```text
//! p(w | c) = prob(c w)                                     if the n-gram is in the model
//!          = backoff(c) + p(w | c without its first word)  otherwise
//! ```
//!
//! in logarithms. Nodes are sorted by their parent and word, so that a child is found by bisection and a model can be
//! read as it lies in a file. Each context knows the node of its own words without the first one.
//!
//! ```
//! use srf_text::lm::{Context, Limits, LoadArpaError, MAX_ORDER, NgramModel, ParseArpaError, WordId};
//!
//! let arpa = "\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n-1 <unk>\n-0.3 yes -0.2\n-0.6 </s>\n-99 <s> -0.1\n\n\
//!             \\2-grams:\n-0.1 <s> yes\n\n\\end\\\n";
//! let model = NgramModel::read(arpa.as_bytes(), Limits::default())?;
//! assert_eq!((model.order(), model.n_ngrams()), (2, 5));
//! assert!(model.order() <= MAX_ORDER);
//! let yes: WordId = model.word("yes").unwrap_or(model.unknown());
//! let (after_yes, log_prob): (Context, f64) = model.next(model.start(), yes);
//! assert_eq!(log_prob, model.log_prob(model.start(), yes));
//! let end = model.log_prob(after_yes, model.sentence_end().expect("the model has `</s>`"));
//! assert!((model.sentence_log_prob(&["yes"]) - log_prob - end).abs() < 1e-6);
//! assert!(matches!(NgramModel::load("no.arpa".as_ref()), Err(LoadArpaError::Open { .. })));
//! assert!(matches!(NgramModel::read(&b"text"[..], Limits::default()), Err(ParseArpaError::NoData { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arpa;

use std::collections::HashMap;
use std::fmt;

pub use arpa::{Limits, LoadArpaError, ParseArpaError};

/// The longest n-grams.
pub const MAX_ORDER: usize = 5;

pub(crate) const ROOT: u32 = 0;
pub(crate) const UNKNOWN: &str = "<unk>";
pub(crate) const SENTENCE_START: &str = "<s>";
pub(crate) const SENTENCE_END: &str = "</s>";
/// Base-10 logarithm for unknown words if the file has no `<unk>`.
const UNKNOWN_LOG10: f32 = -100.0;

/// The words before the next one, as far as the model looks back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context(pub(crate) u32);

/// A word of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordId(pub(crate) u32);

/// What a node has if longer n-grams may begin with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Inner {
    /// Base-10 logarithm.
    pub(crate) backoff: f32,
    pub(crate) first_child: u32,
    /// The node of the same words without the first one, or of as many of them as there is a node for.
    pub(crate) shorter: u32,
}

/// An n-gram model with back-off.
#[derive(Default)]
pub struct NgramModel {
    pub(crate) order: usize,
    pub(crate) n_ngrams: usize,
    /// For every node its last word: the root, one node for each word, then the longer n-grams by length, parent, word.
    pub(crate) words: Vec<u32>,
    /// Base-10 logarithms; NaN for the beginning of longer n-grams that is not in the model itself.
    pub(crate) probs: Vec<f32>,
    /// For all nodes but those of the longest n-grams, and one more.
    pub(crate) inner: Vec<Inner>,
    pub(crate) names: HashMap<Box<str>, u32>,
    pub(crate) unknown: u32,
    /// The checksum of the file it was read from together with a lexicon; 0 otherwise.
    pub(crate) stamp: u32,
}

impl fmt::Debug for NgramModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NgramModel {{ order: {}, n_ngrams: {} }}", self.order, self.n_ngrams)
    }
}

impl NgramModel {
    /// Number of words of the longest n-grams.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Number of n-grams of all lengths.
    pub fn n_ngrams(&self) -> usize {
        self.n_ngrams
    }

    /// The words, in no order, with their ids.
    pub fn words(&self) -> impl Iterator<Item = (&str, WordId)> {
        self.names.iter().map(|(word, id)| (&**word, WordId(*id)))
    }

    /// The id of a word; `None` if the model does not know it.
    pub fn word(&self, word: &str) -> Option<WordId> {
        self.names.get(word).copied().filter(|id| *id != self.unknown).map(WordId)
    }

    /// The word for all words that the model does not know.
    pub fn unknown(&self) -> WordId {
        WordId(self.unknown)
    }

    /// The end of a sentence, if the model has it.
    pub fn sentence_end(&self) -> Option<WordId> {
        self.word(SENTENCE_END)
    }

    /// The context at the start of a sentence.
    pub fn start(&self) -> Context {
        self.word(SENTENCE_START).map_or(Context(ROOT), |word| self.next(Context(ROOT), word).0)
    }

    /// The empty context.
    pub fn nothing(&self) -> Context {
        Context(ROOT)
    }

    /// The natural logarithm of p(word | context).
    pub fn log_prob(&self, context: Context, word: WordId) -> f64 {
        self.next(context, word).1
    }

    /// The context after `word`, and the natural logarithm of p(word | context).
    pub fn next(&self, context: Context, word: WordId) -> (Context, f64) {
        let mut at = context.0;
        let mut log10 = 0.0;
        let mut longest = None;
        loop {
            if let Some(child) = self.child(at, word.0) {
                let longest = *longest.get_or_insert((at, child));
                let prob = self.probs[child as usize];
                if !prob.is_nan() {
                    let log_prob = (log10 + f64::from(prob)) * std::f64::consts::LN_10;
                    return (Context(self.context_after(longest, word.0)), log_prob);
                }
            }
            // Every word has a node below the root with a probability, so that the root never backs off.
            let inner = &self.inner[at as usize];
            log10 += f64::from(inner.backoff);
            at = inner.shorter;
        }
    }

    /// The longest context that ends in `word`, which was found as `child` of `from`.
    fn context_after(&self, (mut from, child): (u32, u32), word: u32) -> u32 {
        let mut found = Some(child);
        loop {
            match found {
                Some(node) if self.is_inner(node) => return self.shortest_equal(node),
                _ if from == ROOT => return ROOT,
                _ => from = self.inner[from as usize].shorter,
            }
            found = self.child(from, word);
        }
    }

    /// The shortest context with the same future: one that is never continued only backs off.
    fn shortest_equal(&self, mut node: u32) -> u32 {
        loop {
            let inner = &self.inner[node as usize];
            if node == ROOT || inner.backoff != 0.0 || inner.first_child < self.inner[node as usize + 1].first_child {
                return node;
            }
            node = inner.shorter;
        }
    }

    fn is_inner(&self, node: u32) -> bool {
        (node as usize) < self.inner.len() - 1
    }

    /// The natural logarithm of the probability of a sentence, its end included.
    pub fn sentence_log_prob(&self, words: &[&str]) -> f64 {
        let mut context = self.start();
        let mut sum = 0.0;
        let ids = words.iter().map(|word| self.word(word).unwrap_or(self.unknown()));
        for id in ids.chain(self.sentence_end()) {
            let (next, log_prob) = self.next(context, id);
            (context, sum) = (next, sum + log_prob);
        }
        sum
    }

    pub(crate) fn child(&self, node: u32, word: u32) -> Option<u32> {
        if node == ROOT {
            return Some(word);
        }
        let (start, end) = (self.inner[node as usize].first_child, self.inner[node as usize + 1].first_child);
        let children = &self.words[start as usize..end as usize];
        children.binary_search(&word).ok().map(|at| start + at as u32)
    }

    /// Fills in the links to shorter contexts; children and words must be right.
    pub(crate) fn link(&mut self) {
        let n_inner = self.inner.len() as u32 - 1;
        for node in 0..n_inner {
            let (start, end) = (self.inner[node as usize].first_child, self.inner[node as usize + 1].first_child);
            for child in start..end.min(n_inner) {
                let word = self.words[child as usize];
                let mut at = node;
                let mut shorter = ROOT;
                while at != ROOT {
                    at = self.inner[at as usize].shorter;
                    if let Some(found) = self.child(at, word) {
                        shorter = found;
                        break;
                    }
                }
                self.inner[child as usize].shorter = shorter;
            }
        }
    }
}

#[cfg(test)]
mod tests;
