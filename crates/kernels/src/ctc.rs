//! Connectionist temporal classification (CTC): the loss of a labelling, and its gradient; log-softmax.
//!
//! The loss is -log of the summed probability of all alignments: sequences of one class a frame that become the labels
//! when repeats are merged and blanks removed.
//! With z = blank, l_1, blank, l_2, ..., blank (S = 2 n + 1 states), `alpha[t][s]` is the log-probability of the first
//! t + 1 frames ending in state s, `beta[t][s]` that of the frames after t given state s at t; then
//!
//! ```text
//! d loss / d logit[t][k] = p[t][k] - sum over the s with z_s = k of exp(alpha[t][s] + beta[t][s] + loss)
//! ```
//!
//! Everything inside is in double precision and in logarithms: a path of 1e-300 a frame still counts.

use crate::Element;

/// What became of an utterance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CtcLoss {
    /// The loss.
    Value(f64),
    /// The labels need more frames than there are: no loss, zero gradient.
    Infeasible {
        /// Frames that the labels need.
        n_frames_needed: usize,
    },
    /// A label is the blank or no class at all: no loss, zero gradient.
    BadLabel {
        /// Which label.
        position: usize,
    },
}

/// Reused memory of [`ctc`].
#[derive(Clone, Debug, Default)]
pub struct CtcScratch {
    log_probs: Vec<f64>,
    alpha: Vec<f64>,
    beta: [Vec<f64>; 2],
}

/// Frames that `labels` need: one each, and one more between equal neighbours.
pub fn n_frames_needed(labels: &[u32]) -> usize {
    labels.len() + labels.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// The loss of `labels` given `logits` (`[frames][n_classes]`); writes its gradient with respect to them.
#[track_caller]
pub fn ctc<E: Element>(
    logits: &[E],
    n_classes: usize,
    blank: usize,
    labels: &[u32],
    scratch: &mut CtcScratch,
    d_logits: &mut [E],
) -> CtcLoss {
    assert!(blank < n_classes && logits.len().is_multiple_of(n_classes), "ctc: {n_classes} classes, blank {blank}");
    assert_eq!(logits.len(), d_logits.len(), "ctc: gradients");
    d_logits.fill(E::ZERO);
    if let Some(position) = labels.iter().position(|&l| l as usize == blank || l as usize >= n_classes) {
        return CtcLoss::BadLabel { position };
    }
    let n_frames = logits.len() / n_classes;
    if n_frames < n_frames_needed(labels) {
        return CtcLoss::Infeasible { n_frames_needed: n_frames_needed(labels) };
    }
    if n_frames == 0 {
        return CtcLoss::Value(0.0);
    }
    let lattice = Lattice { n_frames, n_classes, blank, labels };
    scratch.log_probs.clear();
    scratch.log_probs.extend(logits.iter().map(|logit| logit.to_f64()));
    lattice.normalize(&mut scratch.log_probs);
    let log_likelihood = lattice.forward(&scratch.log_probs, &mut scratch.alpha);
    lattice.backward(scratch, log_likelihood, d_logits);
    CtcLoss::Value(-log_likelihood)
}

/// The states of one utterance.
#[derive(Clone, Copy)]
struct Lattice<'a> {
    n_frames: usize,
    n_classes: usize,
    blank: usize,
    labels: &'a [u32],
}

impl Lattice<'_> {
    fn n_states(&self) -> usize {
        2 * self.labels.len() + 1
    }

    /// The class that state `s` emits.
    fn class(&self, s: usize) -> usize {
        if s.is_multiple_of(2) { self.blank } else { self.labels[s / 2] as usize }
    }

    /// Whether state `s` may be entered from `s - 2`, over a blank.
    fn may_skip(&self, s: usize) -> bool {
        s >= 3 && s % 2 == 1 && self.labels[s / 2] != self.labels[s / 2 - 1]
    }

    /// The states at frame `t` that can be reached from the start and from which the end can be reached, if only by
    /// skipping every blank.
    fn band(&self, t: usize) -> std::ops::Range<usize> {
        let left = 2 * (self.n_frames - t);
        self.n_states().saturating_sub(left)..self.n_states().min(2 * t + 2)
    }

    /// Logits to log-probabilities, in place.
    fn normalize(&self, logits: &mut [f64]) {
        for row in logits.chunks_exact_mut(self.n_classes) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_sum = row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln();
            for x in row {
                *x = *x - largest - log_sum;
            }
        }
    }

    /// Fills alpha and returns the log-likelihood.
    fn forward(&self, log_probs: &[f64], alpha: &mut Vec<f64>) -> f64 {
        let n_states = self.n_states();
        alpha.clear();
        alpha.resize(self.n_frames * n_states, f64::NEG_INFINITY);
        for s in self.band(0) {
            alpha[s] = log_probs[self.class(s)];
        }
        for t in 1..self.n_frames {
            let (before, now) = alpha[(t - 1) * n_states..(t + 1) * n_states].split_at_mut(n_states);
            for s in self.band(t) {
                let stay = before[s];
                let step = if s >= 1 { before[s - 1] } else { f64::NEG_INFINITY };
                let skip = if self.may_skip(s) { before[s - 2] } else { f64::NEG_INFINITY };
                now[s] = log_add(stay, step, skip) + log_probs[t * self.n_classes + self.class(s)];
            }
        }
        let last = &alpha[(self.n_frames - 1) * n_states..];
        let before_blank = if n_states >= 2 { last[n_states - 2] } else { f64::NEG_INFINITY };
        log_add(last[n_states - 1], before_blank, f64::NEG_INFINITY)
    }

    /// Runs beta backwards, one frame kept at a time, and writes the gradient.
    fn backward<E: Element>(&self, scratch: &mut CtcScratch, log_likelihood: f64, d_logits: &mut [E]) {
        let CtcScratch { log_probs, alpha, beta: [beta, next] } = scratch;
        let n_states = self.n_states();
        for buffer in [&mut *beta, &mut *next] {
            buffer.clear();
            buffer.resize(n_states, f64::NEG_INFINITY);
        }
        for s in n_states.saturating_sub(2)..n_states {
            beta[s] = 0.0;
        }
        for t in (0..self.n_frames).rev() {
            let log_probs_now = &mut log_probs[t * self.n_classes..][..self.n_classes];
            let alpha = &alpha[t * n_states..][..n_states];
            let d_logits = &mut d_logits[t * self.n_classes..][..self.n_classes];
            self.write_gradient(log_probs_now, alpha, beta, log_likelihood, d_logits);
            for (s, next) in next.iter_mut().enumerate() {
                *next = beta[s] + log_probs_now[self.class(s)];
            }
            beta.fill(f64::NEG_INFINITY);
            for s in self.band(t.saturating_sub(1)) {
                let step = if s + 1 < n_states { next[s + 1] } else { f64::NEG_INFINITY };
                let skip = if s + 2 < n_states && self.may_skip(s + 2) { next[s + 2] } else { f64::NEG_INFINITY };
                beta[s] = log_add(next[s], step, skip);
            }
        }
    }

    /// Probabilities less the posterior of each class.
    fn write_gradient<E: Element>(
        &self,
        log_probs: &[f64],
        alpha: &[f64],
        beta: &[f64],
        log_likelihood: f64,
        d_logits: &mut [E],
    ) {
        for (d_logits, log_prob) in d_logits.iter_mut().zip(log_probs) {
            *d_logits = E::from_f64(log_prob.exp());
        }
        for (s, (alpha, beta)) in alpha.iter().zip(beta).enumerate() {
            let log_posterior = alpha + beta - log_likelihood;
            // Most states are out of reach at most frames.
            if log_posterior > -40.0 {
                d_logits[self.class(s)] -= E::from_f64(log_posterior.exp());
            }
        }
    }
}

/// log(e^a + e^b + e^c).
#[inline]
fn log_add(a: f64, b: f64, c: f64) -> f64 {
    let largest = a.max(b).max(c);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    // The largest of the three adds exactly 1; the others mostly nothing.
    let part = |x: f64| {
        if x - largest < -40.0 { 0.0 } else { (x - largest).exp() }
    };
    largest + (part(a) + part(b) + part(c)).ln()
}

/// The log-probabilities of rows of `n_classes` logits: `y[k] = x[k] - log(sum over j of exp(x[j]))`.
///
/// There is no backward pass: [`ctc`] has its own gradient with respect to logits.
pub fn log_softmax<E: Element>(logits: &[E], n_classes: usize, log_probs: &mut [E]) {
    for (logits, log_probs) in logits.chunks_exact(n_classes).zip(log_probs.chunks_exact_mut(n_classes)) {
        let largest = logits.iter().copied().fold(E::NEG_INFINITY, E::max);
        let sum: E = logits.iter().map(|&logit| (logit - largest).exp()).sum();
        let log_sum = sum.ln();
        for (log_prob, &logit) in log_probs.iter_mut().zip(logits) {
            *log_prob = logit - largest - log_sum;
        }
    }
}

#[cfg(test)]
mod tests;
