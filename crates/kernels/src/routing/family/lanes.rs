//! Blocks of output capsules side by side: the loops over them are what the compiler turns into vectors.
//!
//! All lanes are read before the first is written, so that nothing keeps it from that.
//! Loops over blocks count through indices, or through flat values: of a loop over iterators of blocks the compiler is
//! apt to make vectors across the blocks, with gathers, and closures handed to `for_each` it compiles without the
//! instruction set of the row.

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
pub(super) fn fold<E: Element>(blocks: &[Lanes<E>], start: E, f: impl Fn(E, E) -> E) -> E {
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
