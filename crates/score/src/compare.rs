//! Significance tests between two scored systems.
//!
//! Four tests as NIST's `sc_stats` defines them, and a bootstrap. Each test asks how probable a difference at least
//! this large would be if both systems were equally good; that probability is its `p`.
//!
//! ```
//! use srf_score::compare::{
//!     Bootstrap, FEWEST_SEGMENTS, Interval, Outcome, Paired, SIGNIFICANT, Side, bootstrap, mapsswe, mcnemar, sign, tosses,
//!     wilcoxon,
//! };
//! use srf_score::files::{FileOptions, score};
//! use srf_score::formats::Source;
//!
//! let trn = |is_right: fn(usize) -> bool| {
//!     let line = |n| format!("the cat sat {} (ann-{n})\n", if is_right(n) { "down" } else { "town" });
//!     Source { path: "file.trn".into(), bytes: (0..100).map(line).collect::<String>().into_bytes() }
//! };
//! let reference = trn(|_| true);
//! let score = |is_right| score(&reference, &trn(is_right), "system", FileOptions::default());
//! let (good, bad) = (score(|n| n % 5 > 0)?.system, score(|n| n % 5 == 0)?.system);
//! let paired = Paired::new(&good, &bad);
//! assert!(paired.unmatched.is_empty());
//!
//! let test: Outcome = mapsswe(&paired);
//! assert!(test.n_compared >= FEWEST_SEGMENTS, "enough for its normal distribution");
//! assert_eq!(test.winner(), Some(Side::First));
//! for test in [mcnemar(&paired), sign(&paired), wilcoxon(&paired)] {
//!     println!("p {:.3}, {}", test.p, if test.p < SIGNIFICANT { "significant" } else { "may be chance" });
//! }
//! // A coin that shows heads 9 of 10 times.
//! assert!(tosses(9, 1, 10).p < SIGNIFICANT);
//!
//! let Bootstrap { difference: Interval { measured, low, high }, .. } = bootstrap(&paired, 1000, 1);
//! assert!(low <= measured && measured <= high);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::f64::consts::{LN_2, SQRT_2};

use rayon::prelude::*;
use srf_base::random::{SplitMix64, scramble};

use crate::align::{Pair, Verdict};
use crate::formats::id_name;
use crate::report::{Spread, percent};
use crate::system::{ScoredUtterance, System};

/// One of two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Side {
    First,
    Second,
}

impl Side {
    fn other(self) -> Self {
        if self == Self::First { Self::Second } else { Self::First }
    }

    /// The side with the larger value; `None` if they are equal.
    fn of_larger(first: usize, second: usize) -> Option<Self> {
        match first.cmp(&second) {
            Ordering::Greater => Some(Self::First),
            Ordering::Less => Some(Self::Second),
            Ordering::Equal => None,
        }
    }
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The probability of a difference this large between equally good systems.
    pub p: f64,
    /// The difference in standard deviations, if the test is on a mean.
    pub z: Option<f64>,
    /// The better system, significant or not; `None` if they are level.
    pub better: Option<Side>,
    /// How many segments, utterances or speakers were compared.
    pub n_compared: usize,
}

/// With fewer segments than this, the normal distribution behind [`mapsswe`] does not hold.
pub const FEWEST_SEGMENTS: usize = 50;

/// Differences with a `p` below this are significant.
pub const SIGNIFICANT: f64 = 0.05;

impl Outcome {
    /// The significantly better system.
    pub fn winner(&self) -> Option<Side> {
        self.better.filter(|_| self.p < SIGNIFICANT)
    }
}

/// The utterances two systems have in common.
pub struct Paired<'a> {
    /// In the order of the first system.
    pub utterances: Vec<(&'a ScoredUtterance, &'a ScoredUtterance)>,
    /// Errors and reference words of both systems, by speaker.
    speakers: Vec<[(usize, usize); 2]>,
    /// Ids that only one of the systems has.
    pub unmatched: Vec<String>,
}

impl<'a> Paired<'a> {
    /// Pairs the utterances of the same id.
    pub fn new(first: &'a System, second: &'a System) -> Self {
        let by_id: HashMap<&[u8], &ScoredUtterance> = second.utterances().map(|u| (&*u.id, u)).collect();
        let mut paired = Self { utterances: Vec::new(), speakers: Vec::new(), unmatched: Vec::new() };
        for speaker in &first.speakers {
            let mut sums = [(0, 0); 2];
            for utterance in &speaker.utterances {
                let Some(other) = by_id.get(&*utterance.id) else {
                    paired.unmatched.push(id_name(&utterance.id).into_owned());
                    continue;
                };
                for (sum, u) in sums.iter_mut().zip([utterance, other]) {
                    let counts = u.counts();
                    *sum = (sum.0 + counts.n_errors(), sum.1 + counts.n_reference());
                }
                paired.utterances.push((utterance, other));
            }
            paired.speakers.push(sums);
        }
        let firsts: HashSet<&[u8]> = first.utterances().map(|u| &*u.id).collect();
        let only_second = second.utterances().filter(|u| !firsts.contains(&*u.id));
        paired.unmatched.extend(only_second.map(|u| id_name(&u.id).into_owned()));
        paired
    }
}

/// The probability that a normal variable is below `z`, for `z` of at least 0.
///
/// NIST looks `z` up in a table with steps of 0.01 that ends at 5.14, and takes the lower entry.
fn normal_below(z: f64) -> f64 {
    let step = |k: f64| k / 100.0;
    let nearest = (z * 100.0).round();
    let lower = if step(nearest) <= z { nearest } else { nearest - 1.0 };
    1.0 - 0.5 * libm::erfc(step(lower).min(5.14) / SQRT_2)
}

/// The probability of a normal variable at least as far from 0 as `z`.
fn two_tailed(z: f64) -> f64 {
    1.0 - 2.0 * (normal_below(z.abs()) - 0.5)
}

/// The probability of at most `n_heads` heads in `n` throws of a coin.
fn at_most(n_heads: usize, n: usize) -> f64 {
    let ln_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    let ln_ways = |k: usize| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    (0..=n_heads).map(|k| (ln_ways(k) - n as f64 * LN_2).exp()).sum()
}

/// Two-tailed test of a fair coin that fell `a` times on one side and `b` times on the other.
fn fair_coin(a: usize, b: usize) -> f64 {
    if a == b { 1.0 } else { (2.0 * at_most(a.min(b), a + b)).min(1.0) }
}

/// McNemar's test: utterances that only one system got right are throws of a coin.
pub fn mcnemar(paired: &Paired<'_>) -> Outcome {
    let only = |pick: fn(bool, bool) -> bool| {
        paired.utterances.iter().filter(|(a, b)| pick(a.has_errors(), b.has_errors())).count()
    };
    tosses(only(|a, b| !a && b), only(|a, b| a && !b), paired.utterances.len())
}

/// Tests whether both sides win equally often: of `n_compared` the first won `n_first` and the second `n_second`.
pub fn tosses(n_first: usize, n_second: usize, n_compared: usize) -> Outcome {
    Outcome { p: fair_coin(n_first, n_second), z: None, better: Side::of_larger(n_first, n_second), n_compared }
}

/// Error rates nearer than this, in percent, are equal.
const EQUAL: f64 = 0.005;

/// Error rates of the speakers, in percent, the worse system first; and which one that is.
fn speaker_rates(paired: &Paired<'_>) -> (Vec<(f64, f64)>, Side) {
    let rate = |(n_errors, n_reference): (usize, usize)| percent(n_errors, n_reference);
    let rates: Vec<(f64, f64)> = paired.speakers.iter().map(|[a, b]| (rate(*a), rate(*b))).collect();
    let (sum_a, sum_b) = rates.iter().fold((0.0, 0.0), |sum, rate| (sum.0 + rate.0, sum.1 + rate.1));
    if sum_a > sum_b { (rates, Side::First) } else { (rates.into_iter().map(|(a, b)| (b, a)).collect(), Side::Second) }
}

/// Sign test: does each system win with as many speakers?
pub fn sign(paired: &Paired<'_>) -> Outcome {
    let (rates, worse) = speaker_rates(paired);
    let n_equal = rates.iter().filter(|(a, b)| (a - b).abs() <= EQUAL).count();
    let n_minus = rates.iter().filter(|(a, b)| b - a > EQUAL).count();
    let n_plus = rates.len() - n_equal - n_minus;
    // Ties are split between the sides; an odd one counts against a difference.
    let p = fair_coin(n_plus + n_equal / 2, n_minus + n_equal.div_ceil(2));
    let better = (n_plus != n_minus).then(|| worse.other());
    Outcome { p, z: None, better, n_compared: rates.len() }
}

/// Wilcoxon's signed rank test: do the ranks of the differences balance?
pub fn wilcoxon(paired: &Paired<'_>) -> Outcome {
    let (rates, worse) = speaker_rates(paired);
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
        Ordering::Less => Some(worse),
        Ordering::Equal if z == 0.0 => None,
        _ => Some(worse.other()),
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
        group.iter().for_each(|at| ranks[*at] = rank);
        start += group.len();
    }
    ranks
}

/// How many right words in a row end a segment.
const N_RIGHT: usize = 2;

/// Matched pairs of sentence segments, word errors.
///
/// An utterance is cut where both systems got two words in a row right, so that the errors of one segment hardly
/// depend on those of another; then the differences of errors are tested for a mean of 0.
pub fn mapsswe(paired: &Paired<'_>) -> Outcome {
    let mut segments = Vec::new();
    for (first, second) in &paired.utterances {
        cut(&first.alignment.pairs, &second.alignment.pairs, &mut segments);
    }
    let differences: Vec<f64> = segments.iter().map(|(a, b)| *a as f64 - *b as f64).collect();
    let Spread { mean, deviation, .. } = Spread::of(&differences);
    let z = if deviation == 0.0 { 0.0 } else { mean / (deviation / (differences.len() as f64).sqrt()) };
    let (n_first, n_second) = segments.iter().fold((0, 0), |sum, (a, b)| (sum.0 + a, sum.1 + b));
    let better = Side::of_larger(n_second, n_first);
    Outcome { p: two_tailed(z), z: Some(z), better, n_compared: segments.len() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CutState {
    /// No error since the last segment.
    Right,
    /// Inside a segment.
    Wrong,
    /// Inside a segment, after this many right words.
    Recovering(usize),
}

/// Adds the errors of both systems in each segment.
fn cut(first: &[Pair], second: &[Pair], segments: &mut Vec<(usize, usize)>) {
    let is = |pairs: &[Pair], at: usize, verdict| pairs.get(at).is_some_and(|pair| pair.verdict == verdict);
    let (mut a, mut b) = (0, 0);
    let (mut right_a, mut right_b) = (0, 0);
    let mut state = CutState::Right;
    while a < first.len() {
        while is(first, a, Verdict::Insertion) {
            a += 1;
            state = CutState::Wrong;
        }
        while is(second, b, Verdict::Insertion) {
            b += 1;
            state = CutState::Wrong;
        }
        let both_right = is(first, a, Verdict::Correct) && is(second, b, Verdict::Correct);
        state = match state {
            CutState::Right if both_right => {
                (right_a, right_b) = (a, b);
                CutState::Right
            }
            CutState::Recovering(n) if both_right && n + 1 == N_RIGHT => {
                count(&first[start_after(right_a)..=a], &second[start_after(right_b)..=b], segments);
                (right_a, right_b) = (a, b);
                CutState::Right
            }
            CutState::Recovering(n) if both_right => CutState::Recovering(n + 1),
            CutState::Wrong if both_right => CutState::Recovering(1),
            _ => CutState::Wrong,
        };
        a += usize::from(a < first.len());
        b += usize::from(b < second.len());
    }
    // Words that the second system added at the very end are a segment of their own.
    if state != CutState::Right || b < second.len() {
        let (from_a, from_b) = (start_after(right_a).min(first.len()), start_after(right_b).min(second.len()));
        count(&first[from_a..], &second[from_b..], segments);
    }
}

/// A segment begins with the right words before it.
fn start_after(last_right: usize) -> usize {
    (last_right + 1).saturating_sub(N_RIGHT)
}

fn count(first: &[Pair], second: &[Pair], segments: &mut Vec<(usize, usize)>) {
    let n_errors = |pairs: &[Pair]| pairs.iter().filter(|pair| pair.verdict != Verdict::Correct).count();
    let segment = (n_errors(first), n_errors(second));
    if segment != (0, 0) {
        segments.push(segment);
    }
}

/// A measured value and the middle 95 % of the draws.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Interval {
    pub measured: f64,
    pub low: f64,
    pub high: f64,
}

/// Spread of the error rates over bootstrap draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Error rate of the first system.
    pub first: Interval,
    /// Error rate of the second system.
    pub second: Interval,
    /// Error rate of the second minus that of the first.
    pub difference: Interval,
    /// The share of draws in which the second system had the lower error rate.
    pub probability_of_improvement: f64,
}

/// Draws `n_replications` tests of the same size with replacement; the draws depend on the seed only, not on threads.
pub fn bootstrap(paired: &Paired<'_>, n_replications: usize, seed: u64) -> Bootstrap {
    let errors_and_words = |(a, b): &(&ScoredUtterance, &ScoredUtterance)| {
        // With alternatives the systems may read the reference differently.
        let (a, b) = (a.counts(), b.counts());
        [a.n_errors() as u32, a.n_reference() as u32, b.n_errors() as u32, b.n_reference() as u32]
    };
    let utterances: Vec<[u32; 4]> = paired.utterances.iter().map(errors_and_words).collect();
    let draw = |replication: usize| {
        // Scrambled twice: seeds that differ by few steps of the generator would give shifted copies of one stream.
        let mut random = SplitMix64::new(scramble(scramble(seed) ^ replication as u64));
        rates((0..utterances.len()).map(|_| utterances[random.below(utterances.len() as u64) as usize]))
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
    let mut sums = [0_u64; 4];
    utterances.for_each(|utterance| sums.iter_mut().zip(utterance).for_each(|(sum, n)| *sum += u64::from(n)));
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

#[cfg(test)]
mod tests;
