//! Alignments and scores against listing all paths and all sequences.

use proptest::prelude::*;

use super::pronunciation::{self, Heard};
use super::{AlignCtcError, align};
use crate::decode::Token;
use crate::decode::tests::{log_softmax, sequence_log_prob};

fn case() -> impl Strategy<Value = (Vec<f32>, Vec<usize>)> {
    (1usize..=7).prop_flat_map(|n_slices| {
        let logits = proptest::collection::vec(-3.0f32..3.0, n_slices * 5);
        (logits.prop_map(|logits| log_softmax(&logits, 5)), proptest::collection::vec(1usize..4, 0..4))
    })
}

/// The best path by listing all of them.
fn best_path(log_probs: &[f32], classes: &[usize]) -> f64 {
    let n_slices = log_probs.len() / 5;
    let mut best = f64::NEG_INFINITY;
    for number in 0..5usize.pow(n_slices as u32) {
        let path: Vec<usize> = (0..n_slices).map(|at| number / 5usize.pow(at as u32) % 5).collect();
        let mut written = path.clone();
        written.dedup();
        written.retain(|class| *class != 4);
        if written == classes {
            let sum = path.iter().enumerate().map(|(at, class)| f64::from(log_probs[at * 5 + class])).sum();
            best = best.max(sum);
        }
    }
    best
}

proptest! {
    #[test]
    fn the_alignment_is_the_best_of_all_paths((log_probs, classes) in case()) {
        match align(&log_probs, 5, &classes) {
            Ok(found) => {
                prop_assert!((found.log_prob - best_path(&log_probs, &classes)).abs() < 1e-9);
                prop_assert_eq!(found.tokens.iter().map(|token| token.class).collect::<Vec<_>>(), classes);
                prop_assert!(found.tokens.is_sorted_by(|a, b| a.end_slice <= b.start_slice));
            }
            Err(AlignCtcError::TooShort { .. }) => {
                prop_assert_eq!(best_path(&log_probs, &classes), f64::NEG_INFINITY);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn a_score_is_the_share_among_all_sequences_that_differ_in_one_label((log_probs, classes) in case()) {
        let Ok(found) = pronunciation::score(&log_probs, 5, &classes) else { return Ok(()) };
        for (index, scored) in found.iter().enumerate() {
            let with = |middle: &[usize]| {
                let sequence = [&classes[..index], middle, &classes[index + 1..]].concat();
                sequence_log_prob(&log_probs, 5, &sequence).exp()
            };
            let all: f64 = with(&[]) + (1..4).map(|class| with(&[class])).sum::<f64>();
            let expected = 100.0 * with(&[classes[index]]) / all;
            prop_assert!((f64::from(scored.score) - expected).abs() < 1e-3, "{} {expected}", scored.score);
            prop_assert!(scored.score <= scored.heard_score);
        }
    }
}

#[test]
fn labels_said_score_high_and_labels_never_said_score_low() {
    let p = |values: [f32; 5]| values.map(f32::ln);
    let blank = p([0.01, 0.01, 0.01, 0.01, 0.96]);
    let said = |class: usize| p(std::array::from_fn(|k| if k == class { 0.9 } else { 0.025 }));
    let log_probs = [blank, said(1), blank, said(2), blank, blank].concat();
    let scores = |classes: &[usize]| {
        let found = pronunciation::score(&log_probs, 5, classes).unwrap();
        found.into_iter().map(|p| (p.score, p.heard)).collect::<Vec<_>>()
    };
    assert!(scores(&[1, 2]).iter().all(|(score, _)| 90.0 < *score));
    let replaced = scores(&[1, 3]);
    assert!(80.0 < replaced[0].0 && replaced[1].0 < 5.0 && replaced[1].1 == Heard::Label(2), "{replaced:?}");
    let left_out = scores(&[1, 2, 3]);
    assert!(left_out[2].0 < 10.0 && left_out[2].1 == Heard::Nothing, "{left_out:?}");
}

#[test]
fn the_usual_ratio_compares_with_the_most_probable_label_and_not_with_the_blank() {
    let log_probs = [[0.0, 0.2, 0.1, 0.1, 0.6], [0.0, 0.1, 0.4, 0.1, 0.4]].concat().into_iter().map(f32::ln);
    let token = Token { end_slice: 2, ..Token::new(1, 0, 0.2) };
    let ratio = pronunciation::log_ratio(&log_probs.collect::<Vec<_>>(), 5, &token);
    assert!((ratio - 0.25_f32.ln() / 2.0).abs() < 1e-6, "{ratio}");
}

#[test]
fn labels_that_cannot_be_aligned_are_refused() {
    let log_probs = log_softmax(&[0.0; 10], 5);
    let error = |classes: &[usize]| align(&log_probs, 5, classes).unwrap_err().to_string();
    assert_eq!(error(&[1, 1]), "2 labels need at least 3 slices, but there are 2");
    assert_eq!(error(&[1, 4]), "label 2 is class 4, expected one from 1 to 3");
    assert_eq!(error(&[0]), "label 1 is class 0, expected one from 1 to 3");
    assert!(align(&[], 5, &[]).unwrap().tokens.is_empty());
    assert!(pronunciation::score(&[], 5, &[]).unwrap().is_empty());
}
