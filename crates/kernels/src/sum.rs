//! Sums over slices in a fixed order that fills vectors: sixteen running sums, then halves upon halves.

use crate::{BLOCK, Element};

/// The sum of `term(x[i], y[i])`.
#[inline(always)]
pub(crate) fn sum<E: Element>(x: &[E], y: &[E], term: impl Fn(E, E) -> E) -> E {
    let mut sums = [E::ZERO; BLOCK];
    let (x_blocks, x_rest) = x.as_chunks::<BLOCK>();
    let (y_blocks, y_rest) = y.as_chunks::<BLOCK>();
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for i in 0..BLOCK {
            sums[i] += term(x[i], y[i]);
        }
    }
    for (sum, (&x, &y)) in sums.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *sum += term(x, y);
    }
    let mut n = BLOCK;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            let upper = sums[i + n];
            sums[i] += upper;
        }
    }
    sums[0]
}

/// Adds `from` to `to`, element by element.
#[inline(always)]
pub(crate) fn accumulate<E: Element>(from: &[E], to: &mut [E]) {
    assert_eq!(from.len(), to.len(), "accumulate: lengths");
    for (to, &from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
