//! Greedy search: the most probable class of every slice, repeats merged and blanks removed.

use super::{Hypothesis, Token};
use crate::labels::PADDING;

/// The state after some slices.
pub(super) struct Greedy {
    blank: usize,
    last_class: usize,
    tokens: Vec<Token>,
    log_prob: f64,
}

impl Greedy {
    pub(super) fn new(n_classes: usize) -> Self {
        let blank = n_classes - 1;
        Self { blank, last_class: blank, tokens: Vec::new(), log_prob: 0.0 }
    }

    pub(super) fn step(&mut self, slice: &[f32], at: usize) {
        let (class, log_prob) = most_probable(slice, self.blank);
        self.log_prob += f64::from(log_prob);
        let confidence = log_prob.exp().min(1.0);
        if class == self.blank {
        } else if class == self.last_class {
            self.tokens.last_mut().expect("a repeated label was written once").extend(at, confidence);
        } else {
            self.tokens.push(Token::new(class, at, confidence));
        }
        self.last_class = class;
    }

    pub(super) fn best(&self) -> Hypothesis {
        let (score, log_prob) = (self.log_prob, self.log_prob);
        Hypothesis { tokens: self.tokens.clone(), words: Vec::new(), score, log_prob }
    }

    pub(super) fn last_token(&self) -> Option<Token> {
        self.tokens.last().copied()
    }

    /// All tokens but one whose run may go on.
    pub(super) fn take_settled(&mut self) -> Vec<Token> {
        let is_running = self.last_class != self.blank;
        self.tokens.drain(..self.tokens.len() - usize::from(is_running)).collect()
    }
}

impl Token {
    pub(crate) fn new(class: usize, at: usize, confidence: f32) -> Self {
        Self { class, start_slice: at, end_slice: at + 1, peak_slice: at, confidence }
    }

    /// The run goes on by one slice.
    pub(crate) fn extend(&mut self, at: usize, confidence: f32) {
        self.end_slice = at + 1;
        if self.confidence < confidence {
            (self.confidence, self.peak_slice) = (confidence, at);
        }
    }
}

/// The first of the most probable classes but padding; the blank if all are NaN.
fn most_probable(slice: &[f32], blank: usize) -> (usize, f32) {
    let mut best = (blank, slice[blank].max(super::FLOOR));
    for (class, log_prob) in slice.iter().enumerate().filter(|(class, _)| *class != PADDING && *class != blank) {
        if best.1 < *log_prob {
            best = (class, *log_prob);
        }
    }
    best
}
