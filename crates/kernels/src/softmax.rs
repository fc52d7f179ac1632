//! Log-softmax of each row: `y[k] = x[k] - log(sum over j of exp(x[j]))`.
//!
//! There is no backward pass: the loss has its own gradient with respect to x, see [`ctc`](crate::ctc()).

use crate::Element;

/// The log-probabilities of the rows of `n_classes` logits.
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
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_keep_their_ratios() {
        let logits = [1.0f64, -2.0, 0.5, 1000.0, 1001.0, 999.0];
        let mut log_probs = [0.0; 6];
        log_softmax(&logits, 3, &mut log_probs);
        for (logits, log_probs) in logits.chunks(3).zip(log_probs.chunks(3)) {
            assert!((log_probs.iter().map(|p| p.exp()).sum::<f64>() - 1.0).abs() < 1e-14);
            assert!((log_probs[0] - log_probs[1] - (logits[0] - logits[1])).abs() < 1e-12);
        }
    }
}
