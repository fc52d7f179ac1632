//! Numbers of right and wrong words: alignments in, sums out.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use super::align::{Alignment, Verdict};

/// How many words were right, and how many wrong in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Words that were right.
    pub correct: usize,
    /// Words taken for others.
    pub substitutions: usize,
    /// Words left out.
    pub deletions: usize,
    /// Words too many.
    pub insertions: usize,
}

impl Counts {
    /// Words of the reference.
    pub fn n_reference(&self) -> usize {
        self.correct + self.substitutions + self.deletions
    }

    /// Words of the hypothesis.
    pub fn n_hypothesis(&self) -> usize {
        self.correct + self.substitutions + self.insertions
    }

    /// Wrong words of all kinds.
    pub fn n_errors(&self) -> usize {
        self.substitutions + self.deletions + self.insertions
    }

    /// Wrong words for each word of the reference; `None` where there is no reference.
    pub fn error_rate(&self) -> Option<f64> {
        (self.n_reference() > 0).then(|| self.n_errors() as f64 / self.n_reference() as f64)
    }

    fn add(mut self, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Correct => self.correct += 1,
            Verdict::Substitution => self.substitutions += 1,
            Verdict::Deletion => self.deletions += 1,
            Verdict::Insertion => self.insertions += 1,
        }
        self
    }
}

impl From<&Alignment> for Counts {
    fn from(alignment: &Alignment) -> Self {
        alignment.pairs.iter().fold(Self::default(), |counts, pair| counts.add(pair.verdict))
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            correct: self.correct + other.correct,
            substitutions: self.substitutions + other.substitutions,
            deletions: self.deletions + other.deletions,
            insertions: self.insertions + other.insertions,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}
