//! The gradient of the input in vectors, by the outputs that have one.
//!
//! Of the two branches of an output at most one has a gradient, and with dropout often neither: of all products of
//! the spread gradient with the kernels less than half are not zero.
//! So each position's gradients are first listed, value and kernel row, and then, for a group of taps at a time (whose
//! kernel rows stay in the nearest cache), the listed rows are summed in registers and added to the inputs they read.

use super::spread::Spread;
use super::weights::{ConvWeights, GROUP, n_groups};
use crate::Conv;
use crate::simd::Vector;

/// Positions listed before the groups pass over them.
const BLOCK_POSITIONS: usize = 64;

/// As [`plain::input_gradient`](super::plain::input_gradient); the lists take the place of the spread gradient.
///
/// `G` vectors make a group.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn input_gradient<V: Vector, const G: usize>(
    weights: &ConvWeights<f32>,
    spread: &mut [f32],
    n_frames: usize,
    first_frame: usize,
    grad_x: &mut [f32],
) {
    const { assert!(G * V::LANES == GROUP) }
    let conv = &weights.conv;
    assert_eq!(spread.len(), conv.n_spread(n_frames), "conv: values in the spread gradient");
    let (shape, n_positions) = (Spread::new(conv), n_frames * conv.n_freq_out());
    grad_x.fill(0.0);
    let mut block = [Listed::default(); BLOCK_POSITIONS];
    for first in (0..n_positions).step_by(BLOCK_POSITIONS) {
        let block = &mut block[..BLOCK_POSITIONS.min(n_positions - first)];
        for (index, listed) in block.iter_mut().enumerate() {
            let (t, f) = ((first + index) / conv.n_freq_out(), (first + index) % conv.n_freq_out());
            let at = shape.at(t, f);
            *listed = Listed { t, f, at, count: list(&mut spread[at..at + shape.col]) };
        }
        for group in 0..conv.kernel[0] * n_groups(conv) {
            let taps = Taps { i: group / n_groups(conv), first: group % n_groups(conv) * GROUP };
            let rows = &weights.backward[group * shape.col * GROUP..][..shape.col * GROUP];
            for listed in &*block {
                let lists = &spread[listed.at..][..shape.col];
                // SAFETY: the caller's promise; `list` wrote `count` numbers of rows, of which there are `shape.col`.
                let sums = unsafe { sum_rows::<V, G>(rows, lists, listed.count) };
                add_group(conv, listed, first_frame, taps, &sums, grad_x);
            }
        }
    }
}

/// A position whose gradients were listed.
#[derive(Clone, Copy, Default)]
struct Listed {
    t: usize,
    f: usize,
    /// Where its list starts.
    at: usize,
    count: usize,
}

/// A group of taps: those of tap `i` in time from `first` on.
#[derive(Clone, Copy)]
struct Taps {
    i: usize,
    first: usize,
}

/// Replaces the gradients of a position, branch after branch, by the list of those that are not zero: values first,
/// the numbers of their kernel rows (as bits) in the second half; an even number, filled up with a zero.
#[inline(always)]
fn list(gradients: &mut [f32]) -> usize {
    let n_lanes = gradients.len() / 2;
    let (values, rows) = gradients.split_at_mut(n_lanes);
    let mut n = 0;
    for lane in 0..n_lanes {
        let (a, b) = (values[lane], rows[lane]);
        let row = if b == 0.0 { lane } else { n_lanes + lane };
        values[n] = a + b;
        rows[n] = f32::from_bits(row as u32);
        n += usize::from(a != 0.0 || b != 0.0);
    }
    // The number of lanes is even, so there is room.
    if n % 2 == 1 {
        values[n] = 0.0;
        rows[n] = f32::from_bits(0);
        n += 1;
    }
    n
}

/// The sum of `count` listed rows, each times its value; even and odd ones apart, so that sums need not wait.
///
/// # Safety
/// The processor has the instructions of `V`; `count` is even, and the first `count` row numbers are those of rows.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const G: usize>(rows: &[f32], lists: &[f32], count: usize) -> [f32; GROUP] {
    let (values, numbers) = lists.split_at(lists.len() / 2);
    let mut sums = [[V::zero(); G]; 2];
    for (values, numbers) in values[..count].chunks_exact(2).zip(numbers[..count].chunks_exact(2)) {
        for (sums, (&value, number)) in sums.iter_mut().zip(values.iter().zip(numbers)) {
            let value = V::splat(value);
            for (g, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise: the row lies in `rows` and has `GROUP` lanes.
                let weight = unsafe { V::load(rows.as_ptr().add(number.to_bits() as usize * GROUP + g * V::LANES)) };
                *sum = value.mul_add(weight, *sum);
            }
        }
    }
    let mut total = [0.0; GROUP];
    for g in 0..G {
        // SAFETY: `G` vectors fill the group.
        unsafe { sums[0][g].add(sums[1][g]).store(total.as_mut_ptr().add(g * V::LANES)) };
    }
    total
}

/// Adds the sums of a group of taps to the inputs that they fall on.
#[inline(always)]
fn add_group(conv: &Conv, listed: &Listed, first_frame: usize, taps: Taps, sums: &[f32; GROUP], grad_x: &mut [f32]) {
    let Some(frame) = (listed.t * conv.stride[0] + taps.i).checked_sub(first_frame) else { return };
    let Some(frame) = grad_x.get_mut(frame * conv.width_in()..(frame + 1) * conv.width_in()) else { return };
    // Columns count from the first padding column here; taps on padding fall away at both ends.
    let start = listed.f * conv.stride[1] * conv.n_channels + taps.first;
    let (before, n_run) = (conv.pad_freq[0] * conv.n_channels, conv.kernel[1] * conv.n_channels - taps.first);
    let skipped = before.saturating_sub(start).min(GROUP);
    let column = (start + skipped).saturating_sub(before).min(frame.len());
    let n = (GROUP.min(n_run)).saturating_sub(skipped).min(frame.len() - column);
    if n == GROUP {
        let slots: &mut [f32; GROUP] = frame[column..].first_chunk_mut().expect("a whole group is left");
        for (slot, sum) in slots.iter_mut().zip(sums) {
            *slot += sum;
        }
    } else {
        for (slot, sum) in frame[column..][..n].iter_mut().zip(&sums[skipped..]) {
            *slot += sum;
        }
    }
}
