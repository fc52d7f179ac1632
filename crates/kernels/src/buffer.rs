//! A growable buffer whose first element lies on a cache line: a vector load of a block never touches two lines.

use std::ops::{Deref, DerefMut};

use crate::{BLOCK, Element};

/// A cache line of elements (two for `f64`).
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line<E>([E; BLOCK]);

/// Elements that start on a cache line; a slice for all purposes.
#[derive(Clone, Default)]
pub struct Buffer<E> {
    lines: Vec<Line<E>>,
    len: usize,
}

impl<E: Element> Buffer<E> {
    /// An empty buffer.
    pub const fn new() -> Self {
        Self { lines: Vec::new(), len: 0 }
    }

    /// A buffer of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let mut buffer = Self::new();
        buffer.resize(len);
        buffer
    }

    /// Makes the length `len`, reusing the memory; what the elements hold is unspecified, but new ones are zero.
    pub fn resize(&mut self, len: usize) {
        let n_lines = len.div_ceil(BLOCK);
        if n_lines > self.lines.len() {
            self.lines.resize(n_lines, Line([E::ZERO; BLOCK]));
        }
        self.len = len;
    }
}

impl<E: Element> Deref for Buffer<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: BOUNDS, `Line` is `repr(C)` around an array, so the lines are `BLOCK` times as many elements in a row, and
        // `resize` keeps `len` within them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<E: Element> DerefMut for Buffer<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: as in `deref`; DISJOINT, the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
