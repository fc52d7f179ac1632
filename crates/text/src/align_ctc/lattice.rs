//! The CTC lattice of a label sequence (blank, first label, blank, second label and so on) and sums over its paths.

use super::{AlignCtcError, MAX_CELLS};

/// Log-probabilities and the states that a path goes through.
pub(super) struct Lattice<'a> {
    log_probs: &'a [f32],
    n_classes: usize,
    states: Vec<usize>,
}

impl<'a> Lattice<'a> {
    #[track_caller]
    pub(super) fn new(log_probs: &'a [f32], n_classes: usize, classes: &[usize]) -> Result<Self, AlignCtcError> {
        assert!(
            2 <= n_classes && log_probs.len().is_multiple_of(n_classes),
            "alignment: slices of {n_classes} classes"
        );
        let blank = n_classes - 1;
        let (n_slices, n_labels) = (log_probs.len() / n_classes, classes.len());
        if let Some(index) = classes.iter().position(|class| *class == 0 || blank <= *class) {
            let (position, class) = (index + 1, classes[index]);
            return Err(AlignCtcError::BadLabel { position, class, last: blank - 1 });
        }
        let n_needed = n_labels + classes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        if n_slices < n_needed {
            return Err(AlignCtcError::TooShort { n_labels, n_needed, n_slices });
        }
        if MAX_CELLS / (2 * n_labels + 1) < n_slices {
            return Err(AlignCtcError::TooLarge { n_slices, n_labels });
        }
        let mut states = vec![blank; 2 * n_labels + 1];
        classes.iter().enumerate().for_each(|(index, class)| states[2 * index + 1] = *class);
        Ok(Self { log_probs, n_classes, states })
    }

    pub(super) fn n_slices(&self) -> usize {
        self.log_probs.len() / self.n_classes
    }

    pub(super) fn n_states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn class(&self, state: usize) -> usize {
        self.states[state]
    }

    pub(super) fn log_prob(&self, at: usize, state: usize) -> f64 {
        self.log_prob_of(at, self.states[state])
    }

    pub(super) fn log_prob_of(&self, at: usize, class: usize) -> f64 {
        f64::from(self.log_probs[at * self.n_classes + class].max(crate::decode::FLOOR))
    }

    /// How far back a path into `state` may have been: over the blank between two different labels at most.
    pub(super) fn max_step(&self, state: usize) -> usize {
        let skips = state % 2 == 1 && 3 <= state && self.states[state - 2] != self.states[state];
        if skips { 2 } else { state.min(1) }
    }

    /// The better of the last two states, if there are slices at all.
    pub(super) fn ends(&self, scores: &[f64]) -> Option<usize> {
        let last = self.n_states() - 1;
        let label = last.checked_sub(1).filter(|label| scores[last] < scores[*label]);
        (0 < self.n_slices()).then_some(label.unwrap_or(last))
    }

    /// `[slices][states]`: log-sum of all paths from the start into a state, with its slice.
    pub(super) fn forward(&self) -> Vec<f64> {
        let n = self.n_states();
        let mut alpha = vec![f64::NEG_INFINITY; self.n_slices() * n];
        for at in 0..self.n_slices() {
            for state in 0..n {
                let into = match at {
                    0 if state < 2 => 0.0,
                    0 => f64::NEG_INFINITY,
                    _ => log_sum((0..=self.max_step(state)).map(|step| alpha[(at - 1) * n + state - step])),
                };
                alpha[at * n + state] = into + self.log_prob(at, state);
            }
        }
        alpha
    }

    /// `[slices][states]`: log-sum of all paths from a state, with its slice, to the end.
    pub(super) fn backward(&self) -> Vec<f64> {
        let (n, n_slices) = (self.n_states(), self.n_slices());
        let mut beta = vec![f64::NEG_INFINITY; n_slices * n];
        for at in (0..n_slices).rev() {
            for state in 0..n {
                let out = if at + 1 == n_slices {
                    if n <= state + 2 { 0.0 } else { f64::NEG_INFINITY }
                } else {
                    let next = (state..n.min(state + 3)).filter(|next| next - state <= self.max_step(*next));
                    log_sum(next.map(|next| beta[(at + 1) * n + next]))
                };
                beta[at * n + state] = out + self.log_prob(at, state);
            }
        }
        beta
    }
}

/// log of the sum of exponentials.
pub(super) fn log_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.map(|value| (value - largest).exp()).sum::<f64>().ln()
}
