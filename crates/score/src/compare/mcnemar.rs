//! McNemar's test on whole utterances: those only one system got right are tosses of a coin.

use super::normal::fair_coin;
use super::{Outcome, Paired, Side};

/// Tests whether utterances that only one system got right fall to both alike.
pub fn mcnemar(paired: &Paired<'_>) -> Outcome {
    let only = |pick: fn(bool, bool) -> bool| {
        paired.utterances.iter().filter(|(a, b)| pick(a.has_errors(), b.has_errors())).count()
    };
    tosses(only(|a, b| !a && b), only(|a, b| a && !b), paired.utterances.len())
}

/// Tests whether both sides win alike, where of `n_compared` things the first won `n_first` and the second `n_second`.
pub fn tosses(n_first: usize, n_second: usize, n_compared: usize) -> Outcome {
    let better = match n_first.cmp(&n_second) {
        std::cmp::Ordering::Greater => Some(Side::First),
        std::cmp::Ordering::Less => Some(Side::Second),
        std::cmp::Ordering::Equal => None,
    };
    Outcome { p: fair_coin(n_first, n_second), z: None, better, n_compared }
}
