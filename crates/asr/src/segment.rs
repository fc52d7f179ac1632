//! What comes out of a stream: text with its labels, their times and what speaks for them.

use crate::delay::Delay;
use crate::endpoint::EndReason;
use crate::evidence::Evidence;

/// A stretch of speech between two endpoints, or as much of it as is known so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// What was said.
    pub text: String,
    /// Where the first label starts, in seconds from the start of the stream.
    pub start_s: f64,
    /// Where the last label ends.
    pub end_s: f64,
    /// The labels.
    pub tokens: Vec<Token>,
    /// The words, where a lexicon is in use; empty otherwise.
    pub words: Vec<Word>,
    /// Natural logarithm of what hypotheses are ranked by.
    pub score: f64,
    /// Natural logarithm of the probability of the labels.
    pub log_prob: f64,
    /// Other hypotheses, the likeliest first.
    pub alternatives: Vec<Alternative>,
    /// Why it ended; none while it goes on.
    pub ended_by: Option<EndReason>,
}

/// A label of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Its class.
    pub class: usize,
    /// Its name.
    pub symbol: String,
    /// Where it starts, in seconds from the start of the stream.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// How much later than said it was known.
    pub delay: Delay,
    /// What the routing decided, if the stream was asked to tell.
    pub evidence: Option<Evidence>,
}

/// A word of a lexicon.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// Its first token.
    pub first_token: usize,
    /// The token behind its last one.
    pub end_token: usize,
}

/// Another reading of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// What was said.
    pub text: String,
    /// Natural logarithm of what hypotheses are ranked by.
    pub score: f64,
    /// Natural logarithm of the probability of the labels.
    pub log_prob: f64,
}
