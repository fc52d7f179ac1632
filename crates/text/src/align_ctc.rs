//! Forced alignment: finds when each label of a known sequence was spoken.
//!
//! The labels with blanks around them are the states of a lattice; a path stays, goes on by one, or skips the blank
//! between two different labels. [`align`] finds the best path, [`pronunciation`] weighs all of them.
//!
//! ```
//! use srf_text::align_ctc::pronunciation::{self, Heard, Pronunciation};
//! use srf_text::align_ctc::{AlignCtcError, CtcAlignment, align};
//!
//! // Classes: padding, a, b, blank; the network is sure of blank, a, b.
//! let log_probs: Vec<f32> = [[0.0, 0.1, 0.1, 0.8], [0.0, 0.8, 0.1, 0.1], [0.0, 0.1, 0.8, 0.1]]
//!     .as_flattened()
//!     .iter()
//!     .map(|p: &f32| p.ln())
//!     .collect();
//! let found: CtcAlignment = align(&log_probs, 4, &[1, 2])?;
//! assert_eq!(found.tokens.iter().map(|token| token.start_slice).collect::<Vec<_>>(), [1, 2]);
//! for Pronunciation { token, score, heard, .. } in pronunciation::score(&log_probs, 4, &[1, 2])? {
//!     println!("class {}: {score:.0} of 100", token.class);
//!     assert_eq!(heard, Heard::Label(token.class));
//!     assert_eq!(pronunciation::log_ratio(&log_probs, 4, &token), 0.0, "no label is more probable there");
//! }
//! assert!(matches!(align(&log_probs, 4, &[1, 2, 1, 2]), Err(AlignCtcError::TooShort { n_slices: 3, .. })));
//! # Ok::<(), AlignCtcError>(())
//! ```

mod lattice;
pub mod pronunciation;

use lattice::Lattice;

use crate::decode::Token;

/// The longest lattice: slices times states, one byte each.
const MAX_CELLS: usize = 1 << 29;

/// When each label was said.
#[derive(Clone, Debug, PartialEq)]
pub struct CtcAlignment {
    /// The labels with their times; the confidence is the posterior where the label peaks.
    pub tokens: Vec<Token>,
    /// For every label the mean log-probability of the slices of its run.
    pub log_probs: Vec<f64>,
    /// Natural logarithm of the probability of the best path.
    pub log_prob: f64,
}

/// Why labels cannot be aligned.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum AlignCtcError {
    #[error("{n_labels} labels need at least {n_needed} slices, but there are {n_slices}")]
    TooShort { n_labels: usize, n_needed: usize, n_slices: usize },
    #[error("label {position} is class {class}, expected one from 1 to {last}")]
    BadLabel { position: usize, class: usize, last: usize },
    #[error("{n_slices} slices and {n_labels} labels are too many to align at once")]
    TooLarge { n_slices: usize, n_labels: usize },
}

impl AlignCtcError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooShort { .. } => Some("is this the transcript of this recording?".into()),
            Self::TooLarge { .. } => Some("cut the recording and its transcript into parts".into()),
            _ => None,
        }
    }
}

/// The best path of `classes` through `log_probs` (`[slices][n_classes]`, the last class for the blank).
#[track_caller]
pub fn align(log_probs: &[f32], n_classes: usize, classes: &[usize]) -> Result<CtcAlignment, AlignCtcError> {
    let lattice = Lattice::new(log_probs, n_classes, classes)?;
    let n_states = lattice.n_states();
    let mut steps = vec![0u8; lattice.n_slices() * n_states];
    let mut scores = vec![f64::NEG_INFINITY; n_states];
    let mut before = scores.clone();
    for at in 0..lattice.n_slices() {
        std::mem::swap(&mut scores, &mut before);
        for state in 0..n_states {
            let (step, score) = best_step(&lattice, &before, at, state);
            steps[at * n_states + state] = step;
            scores[state] = score + lattice.log_prob(at, state);
        }
    }
    let may_end = lattice.ends(&scores);
    let log_prob = may_end.map_or(0.0, |state| scores[state]);
    Ok(read_path(&lattice, &steps, may_end, log_prob))
}

/// How many states back the best path into `state` was.
fn best_step(lattice: &Lattice<'_>, before: &[f64], at: usize, state: usize) -> (u8, f64) {
    if at == 0 {
        return (0, if state < 2 { 0.0 } else { f64::NEG_INFINITY });
    }
    let mut best = (0, before[state]);
    for step in 1..=lattice.max_step(state) {
        if best.1 < before[state - step] {
            best = (step as u8, before[state - step]);
        }
    }
    best
}

fn read_path(lattice: &Lattice<'_>, steps: &[u8], end: Option<usize>, log_prob: f64) -> CtcAlignment {
    let mut tokens: Vec<Token> = Vec::new();
    let mut sums: Vec<f64> = Vec::new();
    let mut path = vec![0; lattice.n_slices()];
    let mut state = end.unwrap_or(0);
    for at in (0..lattice.n_slices()).rev() {
        path[at] = state;
        state -= steps[at * lattice.n_states() + state] as usize;
    }
    for (at, state) in path.iter().enumerate().filter(|(_, state)| *state % 2 == 1) {
        let here = lattice.log_prob(at, *state);
        let confidence = here.exp().min(1.0) as f32;
        if tokens.len() == state / 2 {
            tokens.push(Token::new(lattice.class(*state), at, confidence));
            sums.push(here);
        } else {
            tokens[state / 2].extend(at, confidence);
            sums[state / 2] += here;
        }
    }
    let n_slices = tokens.iter().map(|token| (token.end_slice - token.start_slice) as f64);
    let log_probs = sums.iter().zip(n_slices).map(|(sum, n)| sum / n).collect();
    CtcAlignment { tokens, log_probs, log_prob }
}

#[cfg(test)]
mod tests;
