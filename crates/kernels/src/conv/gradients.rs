//! The gradients of a convolution in vectors.

use std::ops::Range;

use super::tiles::{Grid, Panels, Segment, Steps, sweep};
use super::{Conv, ConvWeights, GROUP, Span, Spread, n_groups, scatters};
use crate::BLOCK;
use crate::simd::Vector;

/// Positions of a block: listed before the groups pass over them, and their gradients (256 bytes each in a tile of four
/// vectors of 16) stay in the first-level cache while all taps do.
const BLOCK_POSITIONS: usize = 64;

/// As [`plain::input_gradient`](super::plain::input_gradient).
///
/// `N` vectors make a tile, `G` a group.
#[inline(always)]
pub(crate) fn input_gradient<V: Vector, const N: usize, const G: usize>(
    weights: &ConvWeights<f32>,
    spread: &mut [f32],
    n_frames: usize,
    first_frame: usize,
    d_x: &mut [f32],
) {
    if scatters(&weights.conv) {
        scatter::<V, N>(weights, spread, n_frames, first_frame, d_x);
    } else {
        gather::<V, G>(weights, spread, n_frames, first_frame, d_x);
    }
}

/// Where the channels are few: the sums of all taps of an output, added to the inputs that they fall on.
#[inline(always)]
fn scatter<V: Vector, const N: usize>(
    weights: &ConvWeights<f32>,
    spread: &[f32],
    n_frames: usize,
    first_frame: usize,
    d_x: &mut [f32],
) {
    let conv = &weights.conv;
    let shape = Spread::new(conv);
    let (n_taps, n_freq_out) = (conv.n_taps(), conv.n_freq_out());
    d_x.fill(0.0);
    let input = Steps { first: shape.at(0, 0), row: shape.row, col: shape.col };
    // Outputs are numbered, not placed: `finish` finds their inputs.
    let grid =
        Grid { n_rows: n_frames, n_cols: n_freq_out, input, output: Steps { first: 0, row: n_freq_out, col: 1 } };
    let n_lanes = n_taps.next_multiple_of(BLOCK);
    let panels = Panels { values: &weights.backward, n_taps: shape.col, n_lanes, n_wanted: n_taps, n_branches: 1 };
    let segments = [Segment { input: 0, tap: 0, len: shape.col }];
    sweep::<V, N>(&grid, spread, &segments, &panels, |at, lane, width, sums| {
        let (t, f) = (at / n_freq_out, at % n_freq_out);
        add_taps(conv, (t, f), first_frame, lane..n_taps.min(lane + width), sums, d_x);
    });
}

/// Adds `sums`, which belong to the taps `taps` of the output at frame and frequency `at`, to the inputs they fall on.
#[inline(always)]
fn add_taps(conv: &Conv, at: (usize, usize), first_frame: usize, taps: Range<usize>, sums: &[f32], d_x: &mut [f32]) {
    let seen = conv.taps_at(at.1);
    let n_row = conv.kernel[1] * conv.n_channels;
    for i in taps.start / n_row..taps.end.div_ceil(n_row) {
        let Some(frame) = (at.0 * conv.stride[0] + i).checked_sub(first_frame) else {
            continue;
        };
        let first = (i * n_row + seen.start * conv.n_channels).max(taps.start);
        let last = (i * n_row + seen.end * conv.n_channels).min(taps.end);
        if last <= first {
            continue;
        }
        let column = conv.column(at.1, seen.start) + first - (i * n_row + seen.start * conv.n_channels);
        let start = frame * conv.width_in() + column;
        if let Some(slots) = d_x.get_mut(start..start + (last - first)) {
            for (slot, sum) in slots.iter_mut().zip(&sums[first - taps.start..]) {
                *slot += sum;
            }
        }
    }
}

/// Where the channels are many: by the outputs that have a gradient.
///
/// Of the two branches of an output at most one has a gradient, and with dropout often neither: of all products of the
/// spread gradient with the kernels less than half are not zero. So each position's gradients are first listed, value
/// and kernel row; the lists take the place of the spread gradient. Then, for a group of taps at a time (whose kernel
/// rows stay in the first-level cache), the listed rows are summed in registers and added to the inputs they read.
#[inline(always)]
fn gather<V: Vector, const G: usize>(
    weights: &ConvWeights<f32>,
    spread: &mut [f32],
    n_frames: usize,
    first_frame: usize,
    d_x: &mut [f32],
) {
    const { assert!(G * V::LANES == GROUP) }
    let conv = &weights.conv;
    assert_eq!(spread.len(), conv.n_spread(n_frames), "conv: values in the spread gradient");
    let (shape, n_positions) = (Spread::new(conv), n_frames * conv.n_freq_out());
    d_x.fill(0.0);
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
                // SAFETY: BOUNDS, `list` wrote `count` numbers of rows, of which there are `shape.col`.
                let sums = unsafe { sum_rows::<V, G>(rows, lists, listed.count) };
                add_group(conv, listed, first_frame, taps, &sums, d_x);
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
/// `count` is even, and the first `count` row numbers are those of rows.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const G: usize>(rows: &[f32], lists: &[f32], count: usize) -> [f32; GROUP] {
    let (values, numbers) = lists.split_at(lists.len() / 2);
    let mut sums = [[V::zero(); G]; 2];
    for (values, numbers) in values[..count].chunks_exact(2).zip(numbers[..count].chunks_exact(2)) {
        for (sums, (&value, number)) in sums.iter_mut().zip(values.iter().zip(numbers)) {
            let value = V::splat(value);
            for (g, sum) in sums.iter_mut().enumerate() {
                // SAFETY: BOUNDS, by the caller: the row lies in `rows` and has `GROUP` lanes.
                let weight = unsafe { V::load(rows.as_ptr().add(number.to_bits() as usize * GROUP + g * V::LANES)) };
                *sum = value.mul_add(weight, *sum);
            }
        }
    }
    let mut total = [0.0; GROUP];
    for g in 0..G {
        // SAFETY: BOUNDS, `G` vectors fill the group.
        unsafe { sums[0][g].add(sums[1][g]).store(total.as_mut_ptr().add(g * V::LANES)) };
    }
    total
}

/// Adds the sums of a group of taps to the inputs that they fall on.
#[inline(always)]
fn add_group(conv: &Conv, listed: &Listed, first_frame: usize, taps: Taps, sums: &[f32; GROUP], d_x: &mut [f32]) {
    let Some(frame) = (listed.t * conv.stride[0] + taps.i).checked_sub(first_frame) else {
        return;
    };
    let Some(frame) = d_x.get_mut(frame * conv.width_in()..(frame + 1) * conv.width_in()) else {
        return;
    };
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

/// As [`plain::weight_gradient`](super::plain::weight_gradient): for a few taps and a few vectors of filters, one pass
/// over the positions with the sums in registers.
#[inline(always)]
pub(crate) fn weight_gradient<V: Vector, const N: usize>(
    conv: &Conv,
    x: &[f32],
    spread: &[f32],
    n_frames: usize,
    d_weights: &mut [f32],
) {
    assert_eq!(spread.len(), conv.n_spread(n_frames), "conv: values in the spread gradient");
    assert_eq!(d_weights.len(), conv.n_gradient(), "conv: values in the weight gradient");
    assert!(x.len() >= conv.n_frames_read(n_frames) * conv.width_in(), "conv: input frames");
    bias_gradient(conv, spread, n_frames, d_weights);
    for span in conv.spans() {
        let n_block_frames = (BLOCK_POSITIONS / span.freqs.len()).max(1);
        for first in (0..n_frames).step_by(n_block_frames) {
            let frames = first..n_frames.min(first + n_block_frames);
            // SAFETY: BOUNDS, the lengths were checked above.
            unsafe { add_block::<V, N>(conv, x, spread, &span, frames, d_weights) };
        }
    }
}

#[inline(always)]
fn bias_gradient(conv: &Conv, spread: &[f32], n_frames: usize, d_weights: &mut [f32]) {
    let shape = Spread::new(conv);
    let (n_taps, n_lanes) = (conv.n_taps(), conv.n_lanes());
    for t in 0..n_frames {
        for f in 0..conv.n_freq_out() {
            let gradients = &spread[shape.at(t, f)..][..shape.col];
            for (branch, gradients) in gradients.chunks_exact(n_lanes).enumerate() {
                let sums = &mut d_weights[(branch * (n_taps + 1) + n_taps) * n_lanes..][..n_lanes];
                for (sum, &gradient) in sums.iter_mut().zip(gradients) {
                    *sum += gradient;
                }
            }
        }
    }
}

/// # Safety
/// The slices hold the frames.
#[inline(always)]
unsafe fn add_block<V: Vector, const N: usize>(
    conv: &Conv,
    x: &[f32],
    spread: &[f32],
    span: &Span,
    frames: Range<usize>,
    d_weights: &mut [f32],
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
            // SAFETY: BOUNDS, by the caller.
            unsafe { add_runs::<V, N>(conv, &patch, lane, is_wide, tap, run, d_weights) };
        }
        lane += if is_wide { wide } else { 2 * V::LANES };
    }
}

/// Taps `tap..tap + run`, whose inputs lie one after another.
///
/// # Safety
/// As [`add_block`].
#[inline(always)]
unsafe fn add_runs<V: Vector, const N: usize>(
    conv: &Conv,
    patch: &Patch<'_>,
    lane: usize,
    is_wide: bool,
    tap: usize,
    run: usize,
    d_weights: &mut [f32],
) {
    let mut k = 0;
    while k < run {
        // SAFETY: BOUNDS, by the caller.
        unsafe {
            match (run - k, is_wide) {
                (6.., true) => add_tile::<V, 6, N>(conv, patch, lane, tap, &mut k, d_weights),
                (3.., true) => add_tile::<V, 3, N>(conv, patch, lane, tap, &mut k, d_weights),
                (_, true) => add_tile::<V, 1, N>(conv, patch, lane, tap, &mut k, d_weights),
                (6.., false) => add_tile::<V, 6, 2>(conv, patch, lane, tap, &mut k, d_weights),
                (3.., false) => add_tile::<V, 3, 2>(conv, patch, lane, tap, &mut k, d_weights),
                (_, false) => add_tile::<V, 1, 2>(conv, patch, lane, tap, &mut k, d_weights),
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
    d_weights: &mut [f32],
) {
    let n_lanes = conv.n_lanes();
    let (d_weights, n_weights) = (d_weights.as_mut_ptr(), d_weights.len());
    let mut slots = [[d_weights; N]; R];
    let mut sums = [[V::zero(); N]; R];
    for r in 0..R {
        for n in 0..N {
            let lane = lane + n * V::LANES;
            let at = (lane / n_lanes * (conv.n_taps() + 1) + tap + *k + r) * n_lanes + lane % n_lanes;
            assert!(at + V::LANES <= n_weights, "conv: beyond the weight gradient");
            // SAFETY: BOUNDS, as asserted; all slots come from one pointer, so that taking one spoils no other.
            unsafe {
                slots[r][n] = d_weights.add(at);
                sums[r][n] = V::load(slots[r][n]);
            }
        }
    }
    for row in 0..patch.n_rows {
        // SAFETY: BOUNDS, by the caller.
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
            // SAFETY: BOUNDS, as asserted above.
            unsafe { sum.store(slot) };
        }
    }
    *k += R;
}
