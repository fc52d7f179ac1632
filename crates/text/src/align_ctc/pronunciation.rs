//! Goodness of pronunciation: a score from 0 to 100 for each label of a known sequence.
//!
//! The question for each label is: between its neighbours, was it this label that was said, or another one, or none?
//! With P(...) the probability of a label sequence, summed over all its alignments,
//!
//! ```text
//! score(i) = 100 * P(l_1 .. l_n) / (P(l_1 .. l_i-1, l_i+1 .. l_n) + sum over k of P(l_1 .. l_i-1, k, l_i+1 .. l_n))
//! ```
//!
//! which is a posterior as a percentage: 100 where nothing else is plausible, 50 where something else is as likely,
//! near 0 where the label was left out or replaced. It needs no alignment to be chosen first, so that the narrow peaks
//! of CTC do no harm. As forward and backward sums meet at label i, all n * k sequences cost one pass over the slices
//! each, not one lattice each.

use super::lattice::{Lattice, log_sum};
use super::{AlignCtcError, align};
use crate::decode::{FLOOR, Token};

/// How well one label was said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pronunciation {
    /// The label and when it was said, by the best alignment.
    pub token: Token,
    /// 0 to 100: the posterior of the label between its neighbours, as a percentage.
    pub score: f32,
    /// The most probable alternative in its place; the label itself if it was pronounced well.
    pub heard: Heard,
    /// The share of `heard`, 0 to 100.
    pub heard_score: f32,
}

/// What was recognised in the place of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A class.
    Label(usize),
    /// Nothing: the label was left out.
    Nothing,
}

/// Scores every label of `classes`, said in `log_probs` (`[slices][n_classes]`, the last class for the blank).
#[track_caller]
pub fn score(log_probs: &[f32], n_classes: usize, classes: &[usize]) -> Result<Vec<Pronunciation>, AlignCtcError> {
    let aligned = align(log_probs, n_classes, classes)?;
    let lattice = Lattice::new(log_probs, n_classes, classes)?;
    let sums = Sums { alpha: lattice.forward(), beta: lattice.backward(), lattice };
    let scored = aligned.tokens.iter().enumerate().map(|(index, token)| {
        let nothing = (Heard::Nothing, sums.without(index));
        let instead = (1..n_classes - 1).map(|class| (Heard::Label(class), sums.with(index, class)));
        let all: Vec<(Heard, f64)> = instead.chain([nothing]).collect();
        let total = log_sum(all.iter().map(|(_, sum)| *sum));
        let percent = |sum: f64| (100.0 * (sum - total).exp()).clamp(0.0, 100.0) as f32;
        let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("nothing is always among them");
        Pronunciation {
            token: *token,
            score: percent(all[token.class - 1].1),
            heard: best.0,
            heard_score: percent(best.1),
        }
    });
    Ok(scored.collect())
}

/// The goodness of pronunciation that is usual for hybrid networks, as in Kaldi: the mean over the slices of the label,
/// by the best alignment, of the log-probability of the label minus that of the most probable label there; at most 0.
#[track_caller]
pub fn log_ratio(log_probs: &[f32], n_classes: usize, token: &Token) -> f32 {
    let slices = log_probs.chunks_exact(n_classes).take(token.end_slice).skip(token.start_slice);
    let ratio = |slice: &[f32]| {
        let best = slice[1..n_classes - 1].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        slice[token.class].max(FLOOR) - best.max(FLOOR)
    };
    slices.map(ratio).sum::<f32>() / (token.end_slice - token.start_slice).max(1) as f32
}

struct Sums<'a> {
    lattice: Lattice<'a>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

impl Sums<'_> {
    fn alpha(&self, at: usize, state: usize) -> f64 {
        self.alpha[at * self.lattice.n_states() + state]
    }

    /// Paths that are in `state` at slice `at` and go to the end; none behind the last state.
    fn beta(&self, at: usize, state: usize) -> f64 {
        let is_state = state < self.lattice.n_states();
        if is_state { self.beta[at * self.lattice.n_states() + state] } else { f64::NEG_INFINITY }
    }

    /// Paths up to slice `at` (none of them for slice 0) that `class` may follow in the place of label `index`.
    fn before(&self, at: usize, index: usize, class: usize) -> f64 {
        let Some(last) = at.checked_sub(1) else {
            return if index == 0 { 0.0 } else { f64::NEG_INFINITY };
        };
        let from_label = index.checked_sub(1).map(|_| 2 * index - 1).filter(|s| self.lattice.class(*s) != class);
        let by_label = from_label.map_or(f64::NEG_INFINITY, |state| self.alpha(last, state));
        log_sum([self.alpha(last, 2 * index), by_label].into_iter())
    }

    /// Paths from slice `at` on that may follow `class` in the place of label `index`.
    fn behind(&self, at: usize, index: usize, class: usize) -> f64 {
        if at == self.lattice.n_slices() {
            let is_last = 2 * index + 3 == self.lattice.n_states();
            return if is_last { 0.0 } else { f64::NEG_INFINITY };
        }
        let next = 2 * index + 3;
        let may_follow = next < self.lattice.n_states() && self.lattice.class(next) != class;
        let by_label = if may_follow { self.beta(at, next) } else { f64::NEG_INFINITY };
        log_sum([self.beta(at, 2 * index + 2), by_label].into_iter())
    }

    /// The labels with `class` in the place of label `index`.
    fn with(&self, index: usize, class: usize) -> f64 {
        let n_slices = self.lattice.n_slices();
        let mut inside = f64::NEG_INFINITY;
        let mut sums = Vec::with_capacity(n_slices);
        for at in 0..n_slices {
            let entering = self.before(at, index, class);
            inside = log_sum([inside, entering].into_iter()) + self.lattice.log_prob_of(at, class);
            sums.push(inside + self.behind(at + 1, index, class));
        }
        log_sum(sums.iter().copied())
    }

    /// The labels without label `index`.
    fn without(&self, index: usize) -> f64 {
        let n_slices = self.lattice.n_slices();
        let next = 2 * index + 3;
        if next < self.lattice.n_states() {
            // Paths meet where they enter the label behind; all blanks before it are those before label `index`.
            let class = self.lattice.class(next);
            let sums: Vec<f64> = (0..n_slices).map(|at| self.before(at, index, class) + self.beta(at, next)).collect();
            return log_sum(sums.iter().copied());
        }
        let by_label = (0 < index).then(|| self.alpha(n_slices - 1, 2 * index - 1));
        log_sum([self.alpha(n_slices - 1, 2 * index), by_label.unwrap_or(f64::NEG_INFINITY)].into_iter())
    }
}
