//! What the variants compute with: blocks of output capsules, poses from sums of votes, couplings from agreements.
//!
//! Loops over the lanes of a block are what the compiler turns into vectors: all lanes are read before the first is
//! written, so that nothing keeps it from that.
//! Loops over blocks count through indices, or through flat values: of a loop over iterators of blocks the compiler is
//! apt to make vectors across the blocks, with gathers, and closures handed to `for_each` it compiles without the
//! instruction set of the row.

use crate::routing::SQUASH_EPSILON;
use crate::{BLOCK, Element};

/// One number for each output capsule of a block.
pub(super) type Lanes<E> = [E; BLOCK];

/// A slice whose length is a multiple of [`BLOCK`] as blocks.
#[inline(always)]
pub(super) fn blocks<E>(values: &[E]) -> &[Lanes<E>] {
    values.as_chunks().0
}

/// As [`blocks`], to be written.
#[inline(always)]
pub(super) fn blocks_mut<E>(values: &mut [E]) -> &mut [Lanes<E>] {
    values.as_chunks_mut().0
}

/// `f` of each lane of two blocks.
#[inline(always)]
pub(super) fn map2<E: Element>(a: &Lanes<E>, b: &Lanes<E>, f: impl Fn(E, E) -> E) -> Lanes<E> {
    let (a, b) = (*a, *b);
    let mut result = [E::ZERO; BLOCK];
    for l in 0..BLOCK {
        result[l] = f(a[l], b[l]);
    }
    result
}

/// `f` of each lane.
#[inline(always)]
pub(super) fn map<E: Element>(a: &Lanes<E>, f: impl Fn(E) -> E) -> Lanes<E> {
    map2(a, a, |a, _| f(a))
}

/// `to += f(a, b)`, lane by lane.
#[inline(always)]
pub(super) fn add2<E: Element>(to: &mut Lanes<E>, a: &Lanes<E>, b: &Lanes<E>, f: impl Fn(E, E) -> E) {
    let (a, b, mut sum) = (*a, *b, *to);
    for l in 0..BLOCK {
        sum[l] += f(a[l], b[l]);
    }
    *to = sum;
}

/// `to += a * b`, lane by lane.
#[inline(always)]
pub(super) fn add_product<E: Element>(to: &mut Lanes<E>, a: &Lanes<E>, b: &Lanes<E>) {
    add2(to, a, b, |a, b| a * b);
}

/// `to += from`, block by block.
#[inline(always)]
pub(super) fn add<E: Element>(to: &mut [Lanes<E>], from: &[Lanes<E>]) {
    for (to, &from) in to.as_flattened_mut().iter_mut().zip(from.as_flattened()) {
        *to += from;
    }
}

/// The sum over `o` of `a[o] * b[o]`, lane by lane.
#[inline(always)]
pub(super) fn dot<E: Element>(a: &[Lanes<E>], b: &[Lanes<E>]) -> Lanes<E> {
    let mut sum = [E::ZERO; BLOCK];
    for (a, b) in a.iter().zip(b) {
        add_product(&mut sum, a, b);
    }
    sum
}

/// One number of all lanes of some blocks, halves upon halves: the same order for every instruction set.
#[inline(always)]
fn fold<E: Element>(blocks: &[Lanes<E>], start: E, f: impl Fn(E, E) -> E) -> E {
    let mut lanes = [start; BLOCK];
    for block in blocks {
        lanes = map2(&lanes, block, &f);
    }
    let mut n = BLOCK;
    while n > 1 {
        n /= 2;
        for l in 0..n {
            lanes[l] = f(lanes[l], lanes[l + n]);
        }
    }
    lanes[0]
}

/// The sum of all lanes.
#[inline(always)]
pub(super) fn total<E: Element>(blocks: &[Lanes<E>]) -> E {
    fold(blocks, E::ZERO, |a, b| a + b)
}

/// Added to the variance of a layer norm, as everywhere in the network.
const NORM_EPSILON: f64 = 1e-3;

/// How the sum of its votes becomes the pose of an output capsule.
///
/// ```text
/// squash      v = |s|²/(1+|s|²) · s/√(|s|²+ε)      the length says how well votes agree
/// layer norm  v = (s - mean s) / √(var s + ε)      all capsules alike in length
/// ```
#[derive(Clone, Copy)]
pub(super) enum Pose {
    Squash,
    LayerNorm,
}

impl Pose {
    /// Poses `v` of the sums `s`, packed, `depth` blocks for each block of capsules.
    #[inline(always)]
    pub(super) fn forward<E: Element>(self, depth: usize, s: &[Lanes<E>], v: &mut [Lanes<E>]) {
        for (s, v) in s.chunks_exact(depth).zip(v.chunks_exact_mut(depth)) {
            match self {
                Self::Squash => squash(s, v),
                Self::LayerNorm => layer_norm(s, v),
            }
        }
    }

    /// Adds to the gradient of the sums from that of the poses.
    #[inline(always)]
    pub(super) fn backward<E: Element>(self, depth: usize, s: &[Lanes<E>], d_v: &[Lanes<E>], d_s: &mut [Lanes<E>]) {
        let capsules = s.chunks_exact(depth).zip(d_v.chunks_exact(depth));
        for ((s, d_v), d_s) in capsules.zip(d_s.chunks_exact_mut(depth)) {
            match self {
                Self::Squash => squash_backward(s, d_v, d_s),
                Self::LayerNorm => layer_norm_backward(s, d_v, d_s),
            }
        }
    }
}

#[inline(always)]
fn squash<E: Element>(s: &[Lanes<E>], v: &mut [Lanes<E>]) {
    let epsilon = E::from_f64(SQUASH_EPSILON);
    let factor = map(&dot(s, s), |n| n / ((E::ONE + n) * (n + epsilon).sqrt()));
    for (s, v) in s.iter().zip(v) {
        *v = map2(s, &factor, |s, factor| s * factor);
    }
}

/// With n = |s|² and g = √(n+ε): ds = f dv + 2 f' <s, dv> s, f = n/((1+n)g), f' = (n + 2ε - n²) / (2 g³ (1+n)²).
#[inline(always)]
fn squash_backward<E: Element>(s: &[Lanes<E>], d_v: &[Lanes<E>], d_s: &mut [Lanes<E>]) {
    let epsilon = E::from_f64(SQUASH_EPSILON);
    let square = dot(s, s);
    let factor = map(&square, |n| n / ((E::ONE + n) * (n + epsilon).sqrt()));
    let slope = map(&square, |n| {
        let (root, wide) = ((n + epsilon).sqrt(), E::ONE + n);
        (n + epsilon + epsilon - n * n) / (root * root * root * wide * wide)
    });
    let along = map2(&slope, &dot(s, d_v), |slope, product| slope * product);
    for (d_s, (s, d_v)) in d_s.iter_mut().zip(s.iter().zip(d_v)) {
        add_product(d_s, &factor, d_v);
        add_product(d_s, &along, s);
    }
}

/// Mean over the depth, and one over the standard deviation.
#[inline(always)]
fn moments<E: Element>(s: &[Lanes<E>]) -> (Lanes<E>, Lanes<E>) {
    let share = E::ONE / E::from_f64(s.len() as f64);
    let mut mean = [E::ZERO; BLOCK];
    for s in s {
        add2(&mut mean, s, s, |s, _| share * s);
    }
    let mut variance = [E::from_f64(NORM_EPSILON); BLOCK];
    for s in s {
        add2(&mut variance, s, &mean, |s, mean| share * (s - mean) * (s - mean));
    }
    (mean, map(&variance, |variance| E::ONE / variance.sqrt()))
}

#[inline(always)]
fn layer_norm<E: Element>(s: &[Lanes<E>], v: &mut [Lanes<E>]) {
    let (mean, inverse) = moments(s);
    for (s, v) in s.iter().zip(v) {
        *v = map2(&map2(s, &mean, |s, mean| s - mean), &inverse, |s, inverse| s * inverse);
    }
}

/// ds = (dv - mean dv - v mean(v dv)) / deviation, means over the depth.
#[inline(always)]
fn layer_norm_backward<E: Element>(s: &[Lanes<E>], d_v: &[Lanes<E>], d_s: &mut [Lanes<E>]) {
    let (mean, inverse) = moments(s);
    let share = E::ONE / E::from_f64(s.len() as f64);
    let pose = |s: &Lanes<E>| map2(&map2(s, &mean, |s, mean| s - mean), &inverse, |s, inverse| s * inverse);
    let (mut of_mean, mut of_scale) = ([E::ZERO; BLOCK], [E::ZERO; BLOCK]);
    for (s, d_v) in s.iter().zip(d_v) {
        add2(&mut of_mean, d_v, d_v, |d_v, _| share * d_v);
        add2(&mut of_scale, &pose(s), d_v, |v, d_v| share * v * d_v);
    }
    for (d_s, (s, d_v)) in d_s.iter_mut().zip(s.iter().zip(d_v)) {
        let along = map2(&pose(s), &of_scale, |v, of_scale| v * of_scale);
        let across = map2(d_v, &of_mean, |d_v, of_mean| d_v - of_mean);
        add_product(d_s, &map2(&across, &along, |across, along| across - along), &inverse);
    }
}

/// How the agreements of one input capsule become its shares in the output capsules.
///
/// ```text
/// softmax   c_j = exp(r_j) / Σ_k exp(r_k)
/// min-max   c_j = (r_j - min r + ε) / Σ_k (r_k - min r + ε)
/// ```
///
/// A softmax of small agreements is nearly uniform however they differ; Zhao et al. (2019) map them linearly onto 0 to 1
/// instead, the smallest to 0 and the largest to 1, whatever their scale.
/// Their shares need not sum to 1. Here they are divided by their sum, for two reasons: a window has many votes, whose
/// sum with couplings near 1 would make every capsule as long as squash allows, so that the lengths of classes would
/// say nothing; and a coupling stays what the rest of the project takes it for, a share. (The range, largest minus
/// smallest, cancels in that division.)
/// ε keeps couplings equal where all agreements are, as at the start of an utterance, and their slope finite.
///
/// The padding class, and lanes beyond the last class, never get a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalizer {
    /// Exponentials over their sum.
    Softmax,
    /// Distances from the smallest over their sum.
    MinMax,
}

/// What min-max adds to a distance.
const MIN_MAX_EPSILON: f64 = 0.1;

impl Normalizer {
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
                let inverse = least / E::from_f64(MIN_MAX_EPSILON);
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
    let epsilon = E::from_f64(MIN_MAX_EPSILON);
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
