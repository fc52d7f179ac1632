//! The inner product of everything convolutional: rows of the input times panels of weights, in registers.
//!
//! Weights come packed in panels of [`BLOCK`] lanes, `[panel][tap][lane]`, so that a tile streams through them in
//! order; inputs are read where they lie, one broadcast at a time.

use crate::BLOCK;
use crate::simd::Vector;

/// A run of inputs that lie one after another, and the panel rows they meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First input, counted from the start of the row.
    pub(crate) input: usize,
    /// First panel row.
    pub(crate) tap: usize,
    /// How many.
    pub(crate) len: usize,
}

/// The sums of `R` rows by `N` vectors; each is one chain of fused multiply-adds in the order of the segments.
///
/// # Safety
/// Every row is readable at every input of the segments, every panel (at its vector's lanes) at every tap.
#[inline(always)]
pub(crate) unsafe fn tile<V: Vector, const R: usize, const N: usize>(
    rows: &[*const f32; R],
    segments: &[Segment],
    panels: &[*const f32; N],
) -> [[V; N]; R] {
    let mut sums = [[V::zero(); N]; R];
    for segment in segments {
        for k in 0..segment.len {
            let mut weights = [V::zero(); N];
            for (weight, panel) in weights.iter_mut().zip(panels) {
                // SAFETY: the caller's promise for panels.
                *weight = unsafe { V::load(panel.add((segment.tap + k) * BLOCK)) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: the caller's promise for rows.
                let input = V::splat(unsafe { *row.add(segment.input + k) });
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = input.mul_add(weight, *sum);
                }
            }
        }
    }
    sums
}
