//! Tests on the error rates of speakers: on which side they fall, and by how much.

use super::normal::{fair_coin, two_tailed};
use super::{Outcome, Paired, Side};

/// Rates nearer than this, in percent, count as equal.
const EQUAL: f64 = 0.005;

/// Error rates of the speakers, in percent, the worse system first; and which one that is.
fn rates(paired: &Paired<'_>) -> (Vec<(f64, f64)>, Side) {
    let rate = |(n_errors, n_reference): (usize, usize)| super::super::report::percent(n_errors, n_reference);
    let rates: Vec<(f64, f64)> = paired.speakers.iter().map(|[a, b]| (rate(*a), rate(*b))).collect();
    let (sum_a, sum_b) = rates.iter().fold((0.0, 0.0), |sum, rate| (sum.0 + rate.0, sum.1 + rate.1));
    if sum_a > sum_b { (rates, Side::First) } else { (rates.into_iter().map(|(a, b)| (b, a)).collect(), Side::Second) }
}

fn other(side: Side) -> Side {
    match side {
        Side::First => Side::Second,
        Side::Second => Side::First,
    }
}

/// Sign test: does each system win with as many speakers?
pub fn sign(paired: &Paired<'_>) -> Outcome {
    let (rates, worse) = rates(paired);
    let n_equal = rates.iter().filter(|(a, b)| (a - b).abs() <= EQUAL).count();
    let n_minus = rates.iter().filter(|(a, b)| b - a > EQUAL).count();
    let n_plus = rates.len() - n_equal - n_minus;
    // Ties are shared out; an odd one speaks against a difference.
    let p = fair_coin(n_plus + n_equal / 2, n_minus + n_equal.div_ceil(2));
    let better = if n_plus == n_minus { None } else { Some(other(worse)) };
    Outcome { p, z: None, better, n_compared: rates.len() }
}

/// Wilcoxon's signed rank test: do the ranks of the differences balance?
pub fn wilcoxon(paired: &Paired<'_>) -> Outcome {
    let (rates, worse) = rates(paired);
    let differences: Vec<f64> = rates.iter().map(|(a, b)| a - b).collect();
    let ranks = ranks(&differences.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let (mut plus, mut minus) = ((0_usize, 0.0), (0_usize, 0.0));
    let mut n_ties = 0;
    for (difference, rank) in differences.iter().zip(ranks) {
        let is_tie = difference.abs() <= EQUAL;
        let is_minus = if is_tie { n_ties % 2 == 1 } else { *difference < 0.0 };
        n_ties += usize::from(is_tie);
        let side = if is_minus { &mut minus } else { &mut plus };
        *side = (side.0 + 1, side.1 + rank);
    }
    let n = rates.len() as f64;
    let fewer = if plus.0 < minus.0 { plus.1 } else { minus.1 };
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    let z = if variance == 0.0 { 0.0 } else { (fewer - n * (n + 1.0) / 4.0) / variance.sqrt() };
    let better = match plus.0.cmp(&minus.0) {
        std::cmp::Ordering::Less => Some(worse),
        std::cmp::Ordering::Equal if z == 0.0 => None,
        _ => Some(other(worse)),
    };
    Outcome { p: two_tailed(z), z: Some(z), better, n_compared: rates.len() }
}

/// The rank of each value from 1 up; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = (2 * start + group.len() + 1) as f64 / 2.0;
        for at in group {
            ranks[*at] = rank;
        }
        start += group.len();
    }
    ranks
}
