//! What an output capsule makes of the sum of its votes: sums in, poses out, and the way back.
//!
//! ```text
//! squash      v = |s|²/(1+|s|²) · s/√(|s|²+ε)      the length tells how well votes agree
//! layer norm  v = (s - mean s) / √(var s + ε)      all capsules alike in length
//! ```

use super::lanes::{Lanes, add_product, add2, dot, map, map2};
use crate::routing::SQUASH_EPSILON;
use crate::{BLOCK, Element};

/// Added to the variance of a layer norm, as everywhere in the network.
const NORM_EPSILON: f64 = 1e-3;

/// How a sum becomes a pose.
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
