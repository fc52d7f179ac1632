//! Decoding: finds the most probable label sequences, with times, in the log-probabilities of a CTC network.
//!
//! A [`Decoder`] holds the state of one utterance. It looks at one slice after the other and at nothing else, so the
//! result does not depend on how the slices were cut into calls of [`Decoder::accept`], to the bit.
//! Class 0 is padding and never written, the last class is the blank.
//!
//! ```
//! use srf_text::decode::{DEFAULT_BEAM, Decoder, DecoderConfig, Hypothesis, Search, Settled, Token, WordSpan};
//!
//! let config = DecoderConfig { search: Search::Beam { width: DEFAULT_BEAM }, fusion: None };
//! let mut decoder = Decoder::new(4, &config);
//! // Without alternatives, readings that differ only long ago are merged, so that a stream can run for hours.
//! decoder.merge_pasts(false);
//! for slice in [[0.0, 0.8, 0.1, 0.1], [0.0, 0.1, 0.1, 0.8], [0.0, 0.1, 0.8, 0.1]] {
//!     decoder.accept(&slice.map(|p: f32| p.ln()));
//! }
//! assert_eq!((decoder.n_slices(), decoder.last_token().map(|token: Token| token.class)), (3, Some(2)));
//! assert_eq!(decoder.best().classes(), [1, 2]);
//! // What every hypothesis agrees on can be written now.
//! let Settled { tokens, words } = decoder.take_settled();
//! assert!(tokens.len() <= 2 && words.iter().all(|word: &WordSpan| word.end_token <= tokens.len()));
//! let all: Vec<Hypothesis> = decoder.finish(3);
//! println!("{} readings, the best with score {:.2}", all.len(), all[0].score);
//! decoder.reset();
//! ```

mod beam;
mod greedy;
mod prefixes;
mod timing;

use std::sync::Arc;

use beam::Beam;
use greedy::Greedy;

use crate::fusion::Fusion;
use crate::labels::PADDING;

pub(crate) use prefixes::NONE;

/// The default width of the beam.
pub const DEFAULT_BEAM: usize = 100;

/// Log-probabilities below this, and NaN, count as this: exp(-10000) is 0 in every format.
pub(crate) const FLOOR: f32 = -1e4;

/// How hypotheses are searched for.
#[derive(Clone, Debug, PartialEq)]
pub enum Search {
    /// The most probable class of every slice; repeats are merged, blanks removed.
    Greedy,
    /// Prefix beam search: the most probable label sequences, each summed over its alignments.
    ///
    /// What is skipped for speed could not have entered the beam: the search is that of the definition.
    /// What is more than 1500 slices ago is settled as the best prefix has it.
    Beam {
        /// How many prefixes survive each slice, with a quarter more in reserve.
        width: usize,
    },
}

impl Default for Search {
    fn default() -> Self {
        Self::Beam { width: DEFAULT_BEAM }
    }
}

/// How a [`Decoder`] works.
#[derive(Clone, Debug, Default)]
pub struct DecoderConfig {
    /// Greedy or beam.
    pub search: Search,
    /// Language model, lexicon, hotwords and phrases that the beam takes into account; greedy search does not.
    pub fusion: Option<Arc<Fusion>>,
}

/// One label of a hypothesis and its slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Its class.
    pub class: usize,
    /// The first slice of its run on the best alignment, counted from the start of the stream.
    pub start_slice: usize,
    /// The slice after the last one of its run.
    pub end_slice: usize,
    /// The slice of its run where it is most probable.
    pub peak_slice: usize,
    /// Its posterior there, 0 to 1.
    pub confidence: f32,
}

/// A word that a lexicon found in the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSpan {
    /// Its number in the lexicon.
    pub word: u32,
    /// Its first token.
    pub first_token: usize,
    /// The token after its last one.
    pub end_token: usize,
}

/// A label sequence and its probability.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hypothesis {
    /// The labels with their times.
    pub tokens: Vec<Token>,
    /// The words, if there is a lexicon; empty otherwise.
    pub words: Vec<WordSpan>,
    /// Natural logarithm of what hypotheses are ranked by: [`Self::log_prob`] and what language model, words and
    /// hotwords add.
    pub score: f64,
    /// Natural logarithm of the probability of the tokens given the slices, summed over the alignments that stayed in
    /// the beam; of the one best alignment for [`Search::Greedy`].
    pub log_prob: f64,
}

impl Hypothesis {
    /// The classes alone.
    pub fn classes(&self) -> Vec<usize> {
        self.tokens.iter().map(|token| token.class).collect()
    }
}

/// The search through one utterance.
///
/// ```
/// use srf_text::decode::{Decoder, DecoderConfig, Search};
///
/// let p = |values: [f32; 4]| values.map(f32::ln);
/// let mut decoder = Decoder::new(4, &DecoderConfig { search: Search::Greedy, ..DecoderConfig::default() });
/// decoder.accept(&p([0.0, 0.9, 0.0, 0.1]));
/// decoder.accept(&p([0.0, 0.1, 0.0, 0.9]));
/// decoder.accept(&p([0.0, 0.1, 0.8, 0.1]));
/// assert_eq!(decoder.best().classes(), [1, 2]);
/// ```
pub struct Decoder {
    n_classes: usize,
    n_slices: usize,
    state: Searching,
}

enum Searching {
    Greedy(Greedy),
    Beam(Box<Beam>),
}

/// Tokens that no later slice can change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// The labels with their times.
    pub tokens: Vec<Token>,
    /// The words, if there is a lexicon; empty otherwise.
    pub words: Vec<WordSpan>,
}

impl Decoder {
    /// A decoder for slices of `n_classes` log-probabilities, the first for padding and the last for the blank.
    #[track_caller]
    pub fn new(n_classes: usize, config: &DecoderConfig) -> Self {
        assert!(2 <= n_classes, "decoder: {n_classes} classes, expected padding, blank and labels between");
        let state = match config.search {
            Search::Greedy => Searching::Greedy(Greedy::new(n_classes)),
            Search::Beam { width } => {
                Searching::Beam(Box::new(Beam::new(n_classes, width, PADDING + 1, config.fusion.clone())))
            }
        };
        Self { n_classes, n_slices: 0, state }
    }

    /// Goes on by whole slices of natural log-probabilities, `[slices][n_classes]`.
    #[track_caller]
    pub fn accept(&mut self, log_probs: &[f32]) {
        assert!(log_probs.len().is_multiple_of(self.n_classes), "decoder: slices of {} classes", self.n_classes);
        for slice in log_probs.chunks_exact(self.n_classes) {
            match &mut self.state {
                Searching::Greedy(greedy) => greedy.step(slice, self.n_slices),
                Searching::Beam(beam) => beam.step(slice, self.n_slices),
            }
            self.n_slices += 1;
        }
    }

    /// Slices seen since the start of the stream or the last [`Decoder::reset`].
    pub fn n_slices(&self) -> usize {
        self.n_slices
    }

    /// The most probable hypothesis so far.
    pub fn best(&self) -> Hypothesis {
        self.n_best(1).pop().unwrap_or_default()
    }

    /// Up to `n` hypotheses so far, the most probable first.
    pub fn n_best(&self, n: usize) -> Vec<Hypothesis> {
        match &self.state {
            Searching::Greedy(greedy) => Vec::from_iter((0 < n).then(|| greedy.best())),
            Searching::Beam(beam) => beam.n_best(n),
        }
    }

    /// Ends the utterance: up to `n` hypotheses, the most probable first, with what their ends add to their scores.
    ///
    /// The decoder is ready for the next utterance of the stream, whose slices count on.
    pub fn finish(&mut self, n: usize) -> Vec<Hypothesis> {
        let found = match &self.state {
            Searching::Greedy(_) => self.n_best(n),
            Searching::Beam(beam) => beam.finished(n),
        };
        self.clear();
        found
    }

    /// Forgets everything, the count of slices too.
    pub fn reset(&mut self) {
        self.clear();
        self.n_slices = 0;
    }

    fn clear(&mut self) {
        match &mut self.state {
            Searching::Greedy(greedy) => *greedy = Greedy::new(self.n_classes),
            Searching::Beam(beam) => beam.clear(),
        }
    }

    /// With a lexicon, lets only the best hypothesis of those with the same future survive, or a few of them if
    /// `alternatives` are wanted: more accurate and faster at the same beam than keeping all. Other searches ignore it.
    pub fn merge_pasts(&mut self, alternatives: bool) {
        if let Searching::Beam(beam) = &mut self.state {
            beam.merge_pasts(alternatives);
        }
    }

    /// The last token of the most probable hypothesis so far, without the cost of the others: what endpoints need.
    pub fn last_token(&self) -> Option<Token> {
        match &self.state {
            Searching::Greedy(greedy) => greedy.last_token(),
            Searching::Beam(beam) => beam.last_token(),
        }
    }

    /// Takes tokens that no later slice can change any more out of the decoder, so that an utterance without end
    /// needs no memory without end. Later results begin after them.
    ///
    /// The beam looks for them after every 64th slice, so that what is settled, and the times of it, do not depend on
    /// when they are taken.
    pub fn take_settled(&mut self) -> Settled {
        match &mut self.state {
            Searching::Greedy(greedy) => Settled { tokens: greedy.take_settled(), words: Vec::new() },
            Searching::Beam(beam) => beam.take_settled(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
