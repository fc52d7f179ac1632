//! McNemar's test on whole utterances: those only one system got right are tosses of a coin.

use super::normal::fair_coin;
use super::{Outcome, Paired, Side};

/// Tests whether utterances that only one system got right fall to both alike.
pub fn mcnemar(paired: &Paired<'_>) -> Outcome {
    let only = |pick: fn(bool, bool) -> bool| {
        paired.utterances.iter().filter(|(a, b)| pick(a.has_errors(), b.has_errors())).count()
    };
    let only_first_right = only(|a, b| !a && b);
    let only_second_right = only(|a, b| a && !b);
    let better = match only_first_right.cmp(&only_second_right) {
        std::cmp::Ordering::Greater => Some(Side::First),
        std::cmp::Ordering::Less => Some(Side::Second),
        std::cmp::Ordering::Equal => None,
    };
    let p = fair_coin(only_first_right, only_second_right);
    Outcome { p, z: None, better, n_compared: paired.utterances.len() }
}
