//! Is one recogniser better than another: two scored systems in, tests of significance out.
//!
//! Four tests as NIST's `sc_stats` defines them, and a bootstrap. Each test asks how likely a
//! difference at least this large would be if both were equally good; that probability is its `p`.

mod bootstrap;
mod by_speaker;
mod mapsswe;
mod mcnemar;
mod normal;

use std::collections::HashMap;

pub use bootstrap::{Bootstrap, Interval, bootstrap};
pub use by_speaker::{sign, wilcoxon};
pub use mapsswe::mapsswe;
pub use mcnemar::{mcnemar, tosses};

use super::system::{System, Utterance};

/// Which of two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    First,
    /// The second.
    Second,
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// How likely a difference this large is between equals.
    pub p: f64,
    /// How many standard deviations the difference is from none, where the test is on a mean.
    pub z: Option<f64>,
    /// Which one is better, whether or not that is significant; none where they are level.
    pub better: Option<Side>,
    /// How many things were compared: segments, utterances or speakers.
    pub n_compared: usize,
}

/// Of fewer segments than this, the normal distribution behind [`mapsswe`] does not hold.
pub const FEWEST_SEGMENTS: usize = 50;

/// Below this `p` a difference counts as significant.
pub const SIGNIFICANT: f64 = 0.05;

impl Outcome {
    /// Which one is significantly better.
    pub fn winner(&self) -> Option<Side> {
        self.better.filter(|_| self.p < SIGNIFICANT)
    }
}

/// The utterances two systems have in common, with the speaker of each.
pub struct Paired<'a> {
    /// In the order of the first system.
    pub utterances: Vec<(&'a Utterance, &'a Utterance)>,
    /// Errors and reference words of both systems, by speaker.
    speakers: Vec<[(usize, usize); 2]>,
    /// Ids only one of the systems has.
    pub unmatched: Vec<String>,
}

impl<'a> Paired<'a> {
    /// Pairs the utterances of the same id.
    pub fn new(first: &'a System, second: &'a System) -> Self {
        let by_id: HashMap<&[u8], &Utterance> = second.utterances().map(|u| (&*u.id, u)).collect();
        let mut paired = Self { utterances: Vec::new(), speakers: Vec::new(), unmatched: Vec::new() };
        for speaker in &first.speakers {
            let mut sums = [(0, 0); 2];
            for utterance in &speaker.utterances {
                let Some(other) = by_id.get(&*utterance.id) else {
                    paired.unmatched.push(super::trn::name(&utterance.id).into_owned());
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
        let firsts: std::collections::HashSet<&[u8]> = first.utterances().map(|u| &*u.id).collect();
        let only_second = second.utterances().filter(|u| !firsts.contains(&*u.id));
        paired.unmatched.extend(only_second.map(|u| super::trn::name(&u.id).into_owned()));
        paired
    }
}

#[cfg(test)]
mod tests;
