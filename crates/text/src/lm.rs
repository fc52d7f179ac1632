//! N-gram language models: an ARPA file in, log-probabilities of words given the words before them out.
//!
//! With n-grams as a tree (w1, then w2 below it) a context is a node, and p(w | context) is
//!
//! ```text
//! p(w | c) = prob(c w)                        where the n-gram is in the file
//!          = backoff(c) + p(w | c without its first word)   otherwise
//! ```
//!
//! in logarithms. Each node knows the node of its own words without the first one, so that a query follows links and
//! never holds the words themselves.

mod arpa;

use std::collections::HashMap;
use std::fmt;

pub use arpa::{Limits, LoadArpaError, ParseArpaError};

use crate::edges::Edges;

/// The longest n-grams.
pub const MAX_ORDER: usize = 5;

const ROOT: u32 = 0;
const UNKNOWN: &str = "<unk>";
const SENTENCE_START: &str = "<s>";
const SENTENCE_END: &str = "</s>";
/// Base-10 logarithm for unknown words where the file has no `<unk>`.
const UNKNOWN_LOG10: f32 = -100.0;

/// What was said before, as far as the model looks back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context(u32);

/// A word of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordId(u32);

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Base-10 logarithms; no number where the file has longer n-grams that begin so, but not this one.
    prob: f32,
    backoff: f32,
    /// The node of the same words without the first one, or of as many of them as there is a node for.
    shorter: u32,
}

/// An n-gram model with back-off.
pub struct NgramModel {
    order: usize,
    n_ngrams: usize,
    /// Root, then one node for each word in the order of the file, then the longer n-grams.
    nodes: Vec<Node>,
    edges: Edges,
    words: HashMap<Box<str>, u32>,
    unknown: u32,
}

impl fmt::Debug for NgramModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NgramModel {{ order: {}, n_ngrams: {} }}", self.order, self.n_ngrams)
    }
}

impl NgramModel {
    /// Words of the longest n-grams.
    pub fn order(&self) -> usize {
        self.order
    }

    /// N-grams of all lengths.
    pub fn n_ngrams(&self) -> usize {
        self.n_ngrams
    }

    /// The words, in no order, with their ids.
    pub fn words(&self) -> impl Iterator<Item = (&str, WordId)> {
        self.words.iter().map(|(word, id)| (&**word, WordId(*id)))
    }

    /// The id of a word; none where the model does not know it.
    pub fn word(&self, word: &str) -> Option<WordId> {
        self.words.get(word).copied().filter(|id| *id != self.unknown).map(WordId)
    }

    /// What stands for words that the model does not know.
    pub fn unknown(&self) -> WordId {
        WordId(self.unknown)
    }

    /// The end of a sentence, where the model has it.
    pub fn sentence_end(&self) -> Option<WordId> {
        self.word(SENTENCE_END)
    }

    /// The context at the start of a sentence.
    pub fn start(&self) -> Context {
        self.word(SENTENCE_START).map_or(Context(ROOT), |word| self.next(Context(ROOT), word).0)
    }

    /// The context of no words at all.
    pub fn nothing(&self) -> Context {
        Context(ROOT)
    }

    /// The natural logarithm of p(word | context).
    pub fn log_prob(&self, context: Context, word: WordId) -> f64 {
        self.next(context, word).1
    }

    /// The context behind `word`, and the natural logarithm of p(word | context).
    pub fn next(&self, context: Context, word: WordId) -> (Context, f64) {
        let mut at = context.0;
        let mut log10 = 0.0;
        let mut longest = None;
        loop {
            if let Some(child) = self.child(at, word.0) {
                let longest = *longest.get_or_insert(child);
                let node = self.nodes[child as usize];
                if !node.prob.is_nan() {
                    log10 += f64::from(node.prob);
                    return (Context(longest), log10 * std::f64::consts::LN_10);
                }
            }
            // Every word has a node below the root with a probability, so that the root never backs off.
            log10 += f64::from(self.nodes[at as usize].backoff);
            at = self.nodes[at as usize].shorter;
        }
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

    fn child(&self, node: u32, word: u32) -> Option<u32> {
        if node == ROOT { Some(word) } else { self.edges.get(node, word) }
    }
}

#[cfg(test)]
mod tests;
