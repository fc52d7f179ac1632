//! The bootstrap: utterances drawn again and again with replacement, and how the error rates spread.

use rayon::prelude::*;

use super::Paired;

/// The middle 95 % of what was drawn, and what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// What was measured on the test itself.
    pub measured: f64,
    /// 2.5 % of the draws lie below.
    pub low: f64,
    /// 2.5 % of the draws lie above.
    pub high: f64,
}

/// What the draws showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Error rate of the first system.
    pub first: Interval,
    /// Error rate of the second system.
    pub second: Interval,
    /// Error rate of the second minus that of the first.
    pub difference: Interval,
    /// In how many of the draws the second had the lower error rate.
    pub probability_of_improvement: f64,
}

/// Draws `n_replications` tests of the same size; the same seed gives the same draws on any number of threads.
pub fn bootstrap(paired: &Paired<'_>, n_replications: usize, seed: u64) -> Bootstrap {
    let utterances: Vec<[u32; 4]> = paired
        .utterances
        .iter()
        .map(|(a, b)| {
            let (a, b) = (a.counts(), b.counts());
            // With alternatives the systems may read the reference differently.
            [a.n_errors() as u32, a.n_reference() as u32, b.n_errors() as u32, b.n_reference() as u32]
        })
        .collect();
    let draw = |replication: usize| {
        let mut random = Random::of_replication(seed, replication);
        rates((0..utterances.len()).map(|_| utterances[random.below(utterances.len())]))
    };
    let draws: Vec<(f64, f64)> = (0..n_replications).into_par_iter().map(draw).collect();
    let measured = rates(utterances.iter().copied());
    let n_better = draws.iter().filter(|(a, b)| b < a).count();
    Bootstrap {
        first: interval(measured.0, draws.iter().map(|(a, _)| *a)),
        second: interval(measured.1, draws.iter().map(|(_, b)| *b)),
        difference: interval(measured.1 - measured.0, draws.iter().map(|(a, b)| b - a)),
        probability_of_improvement: n_better as f64 / n_replications.max(1) as f64,
    }
}

fn rates(utterances: impl Iterator<Item = [u32; 4]>) -> (f64, f64) {
    let sums = utterances.fold([0_u64; 4], |mut sums, utterance| {
        sums.iter_mut().zip(utterance).for_each(|(sum, n)| *sum += u64::from(n));
        sums
    });
    let rate = |n_errors: u64, n_reference: u64| n_errors as f64 / n_reference.max(1) as f64;
    (rate(sums[0], sums[1]), rate(sums[2], sums[3]))
}

fn interval(measured: f64, draws: impl Iterator<Item = f64>) -> Interval {
    let mut draws: Vec<f64> = draws.collect();
    if draws.is_empty() {
        return Interval { measured, low: measured, high: measured };
    }
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((draws.len() - 1) as f64 * share).round() as usize];
    Interval { measured, low: at(0.025), high: at(0.975) }
}

/// SplitMix64: small, and good enough to draw utterances.
struct Random(u64);

impl Random {
    /// A stream for each replication. Its start is mixed twice, since starts that differ by few steps of the counter
    /// would give streams that are shifted copies of one another, and draws that hardly differ.
    fn of_replication(seed: u64, replication: usize) -> Self {
        let mixed = Self(seed).next();
        Self(Self(mixed ^ replication as u64).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}
