//! Matched pairs of sentence segments, word errors.
//!
//! An utterance is cut where both systems got two words in a row right, so that errors in one piece
//! hardly depend on those in another; then the differences of errors are tested for a mean of 0.

use super::normal::two_tailed;
use super::{Outcome, Paired, Side};
use crate::align::{Pair, Verdict};

/// How many right words in a row end a segment.
const N_RIGHT: usize = 2;

/// Errors of both systems in one segment.
type Segment = (usize, usize);

/// Tests the differences of errors by segment.
pub fn mapsswe(paired: &Paired<'_>) -> Outcome {
    let mut segments = Vec::new();
    for (first, second) in &paired.utterances {
        cut(&first.alignment.pairs, &second.alignment.pairs, &mut segments);
    }
    let differences: Vec<f64> = segments.iter().map(|(a, b)| *a as f64 - *b as f64).collect();
    let n = differences.len() as f64;
    let mean = if differences.is_empty() { 0.0 } else { differences.iter().sum::<f64>() / n };
    let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    let z = if squares == 0.0 { 0.0 } else { mean / ((squares / (n - 1.0)).sqrt() / n.sqrt()) };
    let better = match mean {
        m if m < 0.0 => Some(Side::First),
        m if m > 0.0 => Some(Side::Second),
        _ => None,
    };
    Outcome { p: two_tailed(z), z: Some(z), better, n_compared: segments.len() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No error since the last segment.
    Right,
    /// Inside a segment.
    Wrong,
    /// Inside a segment, behind this many right words.
    Recovering(usize),
}

fn cut(first: &[Pair], second: &[Pair], segments: &mut Vec<Segment>) {
    let is = |pairs: &[Pair], at: usize, verdict| pairs.get(at).is_some_and(|pair| pair.verdict == verdict);
    let (mut a, mut b) = (0, 0);
    let (mut right_a, mut right_b) = (0, 0);
    let mut state = State::Right;
    while a < first.len() {
        while is(first, a, Verdict::Insertion) {
            a += 1;
            state = State::Wrong;
        }
        while is(second, b, Verdict::Insertion) {
            b += 1;
            state = State::Wrong;
        }
        let both_right = is(first, a, Verdict::Correct) && is(second, b, Verdict::Correct);
        state = match state {
            State::Right if both_right => {
                (right_a, right_b) = (a, b);
                State::Right
            }
            State::Recovering(n) if both_right && n + 1 == N_RIGHT => {
                count(&first[from(right_a)..=a], &second[from(right_b)..=b], segments);
                (right_a, right_b) = (a, b);
                State::Right
            }
            State::Recovering(n) if both_right => State::Recovering(n + 1),
            State::Wrong if both_right => State::Recovering(1),
            _ => State::Wrong,
        };
        a += usize::from(a < first.len());
        b += usize::from(b < second.len());
    }
    // Words the second system added at the very end are a segment of their own.
    if state != State::Right || b < second.len() {
        count(&first[from(right_a).min(first.len())..], &second[from(right_b).min(second.len())..], segments);
    }
}

/// A segment begins with the right words before it.
fn from(last_right: usize) -> usize {
    (last_right + 1).saturating_sub(N_RIGHT)
}

fn count(first: &[Pair], second: &[Pair], segments: &mut Vec<Segment>) {
    let n_errors = |pairs: &[Pair]| pairs.iter().filter(|pair| pair.verdict != Verdict::Correct).count();
    let segment = (n_errors(first), n_errors(second));
    if segment != (0, 0) {
        segments.push(segment);
    }
}
