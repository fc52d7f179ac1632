//! The loss against all alignments listed one by one, the gradient against finite differences, and the edge cases.

use proptest::prelude::*;

use super::*;
use crate::check::gradient_error;
use crate::log_softmax;
use crate::tests::Random;

fn loss_of(logits: &[f64], n_classes: usize, blank: usize, labels: &[u32]) -> (CtcLoss, Vec<f64>) {
    let mut grad = vec![f64::NAN; logits.len()];
    let loss = ctc(logits, n_classes, blank, labels, &mut CtcScratch::default(), &mut grad);
    (loss, grad)
}

/// What an alignment says: repeats merged, then blanks removed.
fn said(alignment: &[usize], blank: usize) -> Vec<u32> {
    let mut labels = Vec::new();
    for (t, &class) in alignment.iter().enumerate() {
        if class != blank && (t == 0 || alignment[t - 1] != class) {
            labels.push(class as u32);
        }
    }
    labels
}

/// The summed probability of every alignment that says `labels`.
fn by_enumeration(logits: &[f64], n_classes: usize, blank: usize, labels: &[u32]) -> f64 {
    let n_frames = logits.len() / n_classes;
    let mut log_probs = vec![0.0; logits.len()];
    log_softmax(logits, n_classes, &mut log_probs);
    let mut total = 0.0;
    for code in 0..n_classes.pow(n_frames as u32) {
        let alignment: Vec<usize> = (0..n_frames).map(|t| code / n_classes.pow(t as u32) % n_classes).collect();
        if said(&alignment, blank) == labels {
            total += alignment.iter().enumerate().map(|(t, &k)| log_probs[t * n_classes + k]).sum::<f64>().exp();
        }
    }
    total
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_loss_is_the_sum_over_all_alignments(
        n_frames in 0usize..7, n_classes in 2usize..5, blank in 0usize..5,
        labels in prop::collection::vec(0u32..5, 0..5), seed in 0u64..10_000,
    ) {
        let blank = blank % n_classes;
        let labels: Vec<u32> = labels.iter().map(|l| l % n_classes as u32).filter(|&l| l as usize != blank).collect();
        let logits: Vec<f64> = Random::new(seed).numbers(n_frames * n_classes, 3.0);
        let expected = by_enumeration(&logits, n_classes, blank, &labels);
        match loss_of(&logits, n_classes, blank, &labels).0 {
            CtcLoss::Value(loss) => prop_assert!((loss + expected.ln()).abs() < 1e-11, "{loss} {}", -expected.ln()),
            CtcLoss::Infeasible { n_frames_needed } => {
                prop_assert_eq!(expected, 0.0);
                prop_assert!(n_frames < n_frames_needed);
            }
            CtcLoss::BadLabel { .. } => prop_assert!(false),
        }
    }
}

#[test]
fn the_gradient_equals_finite_differences() {
    for (labels, blank) in [(vec![1, 1, 2], 0), (vec![0, 2, 2, 1], 3), (vec![], 2)] {
        let logits: Vec<f64> = Random::new(5).numbers(7 * 4, 1.0);
        let (_, grad) = loss_of(&logits, 4, blank, &labels);
        let error = gradient_error(&logits, &grad, |logits| match loss_of(logits, 4, blank, &labels).0 {
            CtcLoss::Value(loss) => loss,
            other => panic!("{other:?}"),
        });
        assert!(error < 1e-8, "{labels:?}: {error}");
    }
}

#[test]
fn labels_that_do_not_fit_are_reported_with_zero_gradient() {
    let logits = vec![0.5; 3 * 4];
    for (labels, expected) in [
        (vec![1, 2, 1, 2], CtcLoss::Infeasible { n_frames_needed: 4 }),
        (vec![1, 1, 2], CtcLoss::Infeasible { n_frames_needed: 4 }),
        (vec![1, 3], CtcLoss::BadLabel { position: 1 }),
        (vec![4], CtcLoss::BadLabel { position: 0 }),
    ] {
        let (loss, grad) = loss_of(&logits, 4, 3, &labels);
        assert_eq!(loss, expected);
        assert!(grad.iter().all(|&g| g == 0.0));
    }
    assert_eq!(loss_of(&[], 4, 3, &[1]).0, CtcLoss::Infeasible { n_frames_needed: 1 });
    assert_eq!(loss_of(&[], 4, 3, &[]).0, CtcLoss::Value(0.0));
}

#[test]
fn very_unlikely_labels_still_have_a_loss_and_a_gradient() {
    let n_frames = 50;
    let logits: Vec<f64> = (0..n_frames).flat_map(|_| [1000.0, 0.0, 0.0]).collect();
    let (loss, grad) = loss_of(&logits, 3, 0, &[1, 2, 1]);
    let CtcLoss::Value(loss) = loss else { panic!("{loss:?}") };
    // Three frames of 1000 each, less the logarithm of the number of placements.
    assert!((2980.0..3000.0).contains(&loss), "{loss}");
    assert!(grad.iter().all(|g| g.is_finite()));
    let frame: f64 = grad[..3].iter().sum();
    assert!(frame.abs() < 1e-12, "{frame}");
}

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
