//! From agreements to couplings: a row of numbers for one input capsule in, its shares in the output capsules out.
//!
//! ```text
//! softmax   c_j = exp(r_j) / Σ_k exp(r_k)
//! min-max   c_j = (r_j - min r + ε) / Σ_k (r_k - min r + ε)
//! ```
//!
//! A softmax of small agreements is nearly uniform however they differ; Zhao et al. (2019) map them linearly onto 0 to 1
//! instead, the smallest to 0 and the largest to 1, whatever their scale.
//! Their shares need not sum to 1. Here they are divided by their sum, for two reasons: a window has many votes, whose
//! sum with couplings near 1 would make every capsule as long as squash allows, so that the lengths of classes would
//! say nothing; and a coupling stays what the rest of the project takes it for, a share. (The range, largest minus
//! smallest, cancels in that division.)
//! ε keeps couplings equal where all agreements are, as at the start of an utterance, and their slope finite.
//!
//! The padding class, and lanes beyond the last class, never get a share.

use super::lanes::{Lanes, add2, fold, map, map2, total};
use crate::{BLOCK, Element};

/// How agreements become couplings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normaliser {
    /// Exponentials over their sum.
    Softmax,
    /// Distances from the smallest over their sum.
    MinMax,
}

/// What min-max adds to a distance.
const EPSILON: f64 = 0.1;

impl Normaliser {
    /// Couplings `c` of the agreements `r` of one input capsule; `valid` is 1 for lanes that may have a share, else 0.
    #[inline(always)]
    pub(super) fn forward<E: Element>(self, r: &[Lanes<E>], valid: &[Lanes<E>], c: &mut [Lanes<E>]) {
        match self {
            Self::Softmax => exponentials(r, valid, c),
            Self::MinMax => distances(r, valid, c),
        }
        let scale = E::ONE / total(c);
        for c in c {
            *c = map(c, |c| c * scale);
        }
    }

    /// Adds to the gradient of `r` from the couplings and their gradient.
    ///
    /// Softmax: dr = c (dc - Σ c dc). Min-max: with Q the sum of distances, dr = (dc - Σ c dc) / Q, of which the
    /// smallest pays back the total; it has the coupling ε / Q, from which Q is known.
    #[inline(always)]
    pub(super) fn backward<E: Element>(
        self,
        c: &[Lanes<E>],
        d_c: &[Lanes<E>],
        valid: &[Lanes<E>],
        d_r: &mut [Lanes<E>],
    ) {
        let mean = mean(c, d_c);
        match self {
            Self::Softmax => {
                for (d_r, (c, d_c)) in d_r.iter_mut().zip(c.iter().zip(d_c)) {
                    add2(d_r, c, d_c, |c, d_c| c * (d_c - mean));
                }
            }
            Self::MinMax => {
                let (lane, least) = smallest(c, valid);
                let inverse = least / E::from_f64(EPSILON);
                for (d_r, (d_c, valid)) in d_r.iter_mut().zip(d_c.iter().zip(valid)) {
                    add2(d_r, d_c, valid, |d_c, valid| valid * (d_c - mean) * inverse);
                }
                let slopes = d_c.iter().zip(valid).map(|(d_c, v)| map2(d_c, v, |d_c, v| v * (d_c - mean) * inverse));
                let paid: E = slopes.map(|slopes| total(&[slopes])).sum();
                d_r[lane / BLOCK][lane % BLOCK] -= paid;
            }
        }
    }
}

#[inline(always)]
fn mean<E: Element>(c: &[Lanes<E>], d_c: &[Lanes<E>]) -> E {
    let mut sums = [E::ZERO; BLOCK];
    for (c, d_c) in c.iter().zip(d_c) {
        add2(&mut sums, c, d_c, |c, d_c| c * d_c);
    }
    total(&[sums])
}

#[inline(always)]
fn exponentials<E: Element>(r: &[Lanes<E>], valid: &[Lanes<E>], c: &mut [Lanes<E>]) {
    let largest = fold(r, E::NEG_INFINITY, E::max);
    for (c, (r, valid)) in c.iter_mut().zip(r.iter().zip(valid)) {
        let mut powers = map(r, |r| r - largest);
        E::exp_lanes(&mut powers);
        *c = map2(&powers, valid, |power, valid| power * valid);
    }
}

#[inline(always)]
fn distances<E: Element>(r: &[Lanes<E>], valid: &[Lanes<E>], c: &mut [Lanes<E>]) {
    // The largest of the negated agreements, of lanes that count.
    for (c, (r, valid)) in c.iter_mut().zip(r.iter().zip(valid)) {
        *c = map2(r, valid, |r, valid| if valid > E::ZERO { -r } else { E::NEG_INFINITY });
    }
    let least = -fold(c, E::NEG_INFINITY, E::max);
    let epsilon = E::from_f64(EPSILON);
    for (c, (r, valid)) in c.iter_mut().zip(r.iter().zip(valid)) {
        *c = map2(r, valid, |r, valid| if valid > E::ZERO { r - least + epsilon } else { E::ZERO });
    }
}

/// The first lane with the smallest coupling of those that may have one, and that coupling.
#[inline(always)]
fn smallest<E: Element>(c: &[Lanes<E>], valid: &[Lanes<E>]) -> (usize, E) {
    let mut least = (0, -E::NEG_INFINITY);
    for (lane, (c, valid)) in c.as_flattened().iter().zip(valid.as_flattened()).enumerate() {
        if *valid > E::ZERO && *c < least.1 {
            least = (lane, *c);
        }
    }
    least
}
