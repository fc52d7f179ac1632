//! Squash and length of capsules, rows of `depth` values.
//!
//! squash(s) = n / (1 + n) * s / sqrt(n + 1e-7) with n = |s|^2: long capsules come out just shorter than 1, short ones
//! near 0.
//! length(v) = sqrt(|v|^2 + 1e-7).
//! Saved for the backward passes: the inputs.

use crate::Element;

const EPSILON: f64 = 1e-7;

/// Squashes every capsule of `s` into `v`.
#[inline(always)]
pub(crate) fn forward<E: Element>(s: &[E], depth: usize, v: &mut [E]) {
    let epsilon = E::from_f64(EPSILON);
    for (s, v) in s.chunks_exact(depth).zip(v.chunks_exact_mut(depth)) {
        let n = square(s);
        let factor = n / (E::ONE + n) / (n + epsilon).sqrt();
        for (v, &s) in v.iter_mut().zip(s) {
            *v = s * factor;
        }
    }
}

/// Replaces dv by ds.
///
/// With v = f(n) s: ds = f dv + 2 f' <dv, s> s, where f' = (1 / (1 + n) - n / (2 (n + 1e-7))) / ((1 + n) sqrt(n + 1e-7)).
#[inline(always)]
pub(crate) fn backward<E: Element>(s: &[E], depth: usize, d_v: &mut [E]) {
    let epsilon = E::from_f64(EPSILON);
    let half = E::from_f64(0.5);
    for (s, d_v) in s.chunks_exact(depth).zip(d_v.chunks_exact_mut(depth)) {
        let n = square(s);
        let inverse = E::ONE / ((E::ONE + n) * (n + epsilon).sqrt());
        let slope = (E::ONE / (E::ONE + n) - half * n / (n + epsilon)) * inverse;
        let product: E = s.iter().zip(d_v.iter()).map(|(&s, &g)| s * g).sum();
        let along = (slope + slope) * product;
        for (d_v, &s) in d_v.iter_mut().zip(s) {
            *d_v = *d_v * (n * inverse) + s * along;
        }
    }
}

/// The length of every capsule.
#[inline(always)]
pub(crate) fn length<E: Element>(v: &[E], depth: usize, lengths: &mut [E]) {
    for (v, length) in v.chunks_exact(depth).zip(lengths) {
        *length = (square(v) + E::from_f64(EPSILON)).sqrt();
    }
}

/// The gradient of the capsules from that of their lengths: dv = dlength * v / length.
#[inline(always)]
pub(crate) fn length_backward<E: Element>(v: &[E], depth: usize, lengths: &[E], d_lengths: &[E], d_v: &mut [E]) {
    let rows = v.chunks_exact(depth).zip(d_v.chunks_exact_mut(depth));
    for ((v, d_v), (&length, &d_length)) in rows.zip(lengths.iter().zip(d_lengths)) {
        let factor = d_length / length;
        for (d_v, &v) in d_v.iter_mut().zip(v) {
            *d_v = v * factor;
        }
    }
}

#[inline(always)]
fn square<E: Element>(row: &[E]) -> E {
    row.iter().map(|&x| x * x).sum()
}

#[cfg(test)]
mod tests;
