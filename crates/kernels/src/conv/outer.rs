//! The gradient of the weights in vectors: for a few taps and a few vectors of filters, one pass over the positions
//! with the sums in registers.

use super::spread::Spread;
use super::{Conv, Span};
use crate::simd::Vector;

/// Positions of a block: their gradients (256 bytes each in a tile of four vectors of 16) stay in the nearest cache
/// while all taps pass over them.
const BLOCK_POSITIONS: usize = 64;

/// Positions to sum over, and what the tile sums.
struct Patch<'a> {
    x: &'a [f32],
    spread: &'a [f32],
    n_rows: usize,
    n_cols: usize,
    /// Offsets of the first position, and from row to row and column to column, in `x` and `spread`.
    x_steps: [usize; 3],
    spread_steps: [usize; 3],
}

/// As [`plain::weight_gradient`](super::plain::weight_gradient).
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn weight_gradient<V: Vector, const N: usize>(
    conv: &Conv,
    x: &[f32],
    spread: &[f32],
    n_frames: usize,
    grad: &mut [f32],
) {
    assert_eq!(spread.len(), conv.n_spread(n_frames), "conv: values in the spread gradient");
    assert_eq!(grad.len(), conv.n_gradient(), "conv: values in the weight gradient");
    assert!(x.len() >= conv.n_frames_read(n_frames) * conv.width_in(), "conv: input frames");
    bias_gradient(conv, spread, n_frames, grad);
    for span in conv.spans() {
        let n_block_frames = (BLOCK_POSITIONS / span.freqs.len()).max(1);
        for first in (0..n_frames).step_by(n_block_frames) {
            let frames = first..n_frames.min(first + n_block_frames);
            // SAFETY: the caller's promise; the lengths were checked above.
            unsafe { add_block::<V, N>(conv, x, spread, &span, frames, grad) };
        }
    }
}

#[inline(always)]
fn bias_gradient(conv: &Conv, spread: &[f32], n_frames: usize, grad: &mut [f32]) {
    let shape = Spread::new(conv);
    let (n_taps, n_lanes) = (conv.n_taps(), conv.n_lanes());
    for t in 0..n_frames {
        for f in 0..conv.n_freq_out() {
            let gradients = &spread[shape.at(t, f)..][..shape.col];
            for (branch, gradients) in gradients.chunks_exact(n_lanes).enumerate() {
                let sums = &mut grad[(branch * (n_taps + 1) + n_taps) * n_lanes..][..n_lanes];
                for (sum, &gradient) in sums.iter_mut().zip(gradients) {
                    *sum += gradient;
                }
            }
        }
    }
}

/// # Safety
/// The processor has the instructions of `V`; the slices hold the frames.
#[inline(always)]
unsafe fn add_block<V: Vector, const N: usize>(
    conv: &Conv,
    x: &[f32],
    spread: &[f32],
    span: &Span,
    frames: std::ops::Range<usize>,
    grad: &mut [f32],
) {
    let shape = Spread::new(conv);
    let run = span.taps.len() * conv.n_channels;
    let mut lane = 0;
    while lane < shape.col {
        let wide = N * V::LANES;
        let is_wide = lane + wide <= shape.col;
        for i in 0..conv.kernel[0] {
            let x_first =
                (frames.start * conv.stride[0] + i) * conv.width_in() + conv.column(span.freqs.start, span.taps.start);
            let patch = Patch {
                x,
                spread,
                n_rows: frames.len(),
                n_cols: span.freqs.len(),
                x_steps: [x_first, conv.stride[0] * conv.width_in(), conv.stride[1] * conv.n_channels],
                spread_steps: [shape.at(frames.start, span.freqs.start) + lane, shape.row, shape.col],
            };
            let tap = (i * conv.kernel[1] + span.taps.start) * conv.n_channels;
            // SAFETY: the caller's promise.
            unsafe { add_taps::<V, N>(conv, &patch, lane, is_wide, tap, run, grad) };
        }
        lane += if is_wide { wide } else { 2 * V::LANES };
    }
}

/// Taps `tap..tap + run`, whose inputs lie one after another.
///
/// # Safety
/// As [`add_block`].
#[inline(always)]
unsafe fn add_taps<V: Vector, const N: usize>(
    conv: &Conv,
    patch: &Patch<'_>,
    lane: usize,
    is_wide: bool,
    tap: usize,
    run: usize,
    grad: &mut [f32],
) {
    let mut k = 0;
    while k < run {
        // SAFETY: the caller's promise.
        unsafe {
            match (run - k, is_wide) {
                (6.., true) => add_tile::<V, 6, N>(conv, patch, lane, tap, &mut k, grad),
                (3.., true) => add_tile::<V, 3, N>(conv, patch, lane, tap, &mut k, grad),
                (_, true) => add_tile::<V, 1, N>(conv, patch, lane, tap, &mut k, grad),
                (6.., false) => add_tile::<V, 6, 2>(conv, patch, lane, tap, &mut k, grad),
                (3.., false) => add_tile::<V, 3, 2>(conv, patch, lane, tap, &mut k, grad),
                (_, false) => add_tile::<V, 1, 2>(conv, patch, lane, tap, &mut k, grad),
            }
        }
    }
}

/// `R` taps from `tap + k` on by `N` vectors of lanes; moves `k` on.
///
/// # Safety
/// As [`add_block`].
#[inline(always)]
unsafe fn add_tile<V: Vector, const R: usize, const N: usize>(
    conv: &Conv,
    patch: &Patch<'_>,
    lane: usize,
    tap: usize,
    k: &mut usize,
    grad: &mut [f32],
) {
    let n_lanes = conv.n_lanes();
    let mut slots = [[std::ptr::null_mut(); N]; R];
    let mut sums = [[V::zero(); N]; R];
    for r in 0..R {
        for n in 0..N {
            let lane = lane + n * V::LANES;
            let at = (lane / n_lanes * (conv.n_taps() + 1) + tap + *k + r) * n_lanes + lane % n_lanes;
            let slot = &mut grad[at..at + V::LANES];
            slots[r][n] = slot.as_mut_ptr();
            // SAFETY: the slot was sliced to a vector's length.
            sums[r][n] = unsafe { V::load(slot.as_ptr()) };
        }
    }
    for row in 0..patch.n_rows {
        // SAFETY: positions of the block lie inside the slices, whose lengths `weight_gradient` checked.
        unsafe {
            let mut x = patch.x.as_ptr().add(patch.x_steps[0] + *k + row * patch.x_steps[1]);
            let mut spread = patch.spread.as_ptr().add(patch.spread_steps[0] + row * patch.spread_steps[1]);
            for _ in 0..patch.n_cols {
                let mut gradients = [V::zero(); N];
                for (n, gradient) in gradients.iter_mut().enumerate() {
                    *gradient = V::load(spread.add(n * V::LANES));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let input = V::splat(*x.add(r));
                    for (sum, gradient) in sums.iter_mut().zip(gradients) {
                        *sum = input.mul_add(gradient, *sum);
                    }
                }
                x = x.wrapping_add(patch.x_steps[2]);
                spread = spread.wrapping_add(patch.spread_steps[2]);
            }
        }
    }
    for (sums, slots) in sums.iter().zip(slots) {
        for (sum, slot) in sums.iter().zip(slots) {
            // SAFETY: the slot was sliced to a vector's length.
            unsafe { sum.store(slot) };
        }
    }
    *k += R;
}
