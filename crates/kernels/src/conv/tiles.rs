//! Convolution and dense layers in vectors: tiles of several rows of the input by several vectors of filters, whose sums
//! stay in registers.
//!
//! Weights come packed in panels of [`BLOCK`] lanes, `[panel][tap][lane]`, so that a tile streams through them in
//! order; inputs are read where they lie, one broadcast at a time.

use super::{Conv, ConvWeights, MAX_TIME_TAPS, Span, check_forward, choice};
use crate::simd::Vector;
use crate::{BLOCK, Dropout};

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
unsafe fn tile<V: Vector, const R: usize, const N: usize>(
    rows: &[*const f32; R],
    segments: &[Segment],
    panels: &[*const f32; N],
) -> [[V; N]; R] {
    let mut sums = [[V::zero(); N]; R];
    for segment in segments {
        for k in 0..segment.len {
            let mut weights = [V::zero(); N];
            for (weight, panel) in weights.iter_mut().zip(panels) {
                // SAFETY: BOUNDS, by the caller.
                *weight = unsafe { V::load(panel.add((segment.tap + k) * BLOCK)) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: BOUNDS, by the caller.
                let input = V::splat(unsafe { *row.add(segment.input + k) });
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = input.mul_add(weight, *sum);
                }
            }
        }
    }
    sums
}

/// Most rows of a tile.
const ROWS: usize = 6;
/// Rows that pass over a panel while it is in cache: a panel of a layer with many inputs is read from afar, and the more
/// rows share that, the better.
const BLOCK_ROWS: usize = 16 * ROWS;
/// Room for the lanes of a tile: at most four vectors of at most 16.
const TILE_LANES: usize = 4 * 16;
type Sums = [[f32; TILE_LANES]; ROWS];

/// Positions on a grid, and where the values of each lie.
pub(crate) struct Grid {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) input: Steps,
    pub(crate) output: Steps,
}

/// Offsets on a grid.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) first: usize,
    pub(crate) row: usize,
    pub(crate) col: usize,
}

impl Steps {
    #[inline(always)]
    fn at(self, row: usize, col: usize) -> usize {
        self.first + row * self.row + col * self.col
    }
}

/// Panels of weights, and how the vectors of a tile are taken from them.
pub(crate) struct Panels<'a> {
    pub(crate) values: &'a [f32],
    /// Rows of a panel.
    pub(crate) n_taps: usize,
    /// Lanes of each branch, whole blocks.
    pub(crate) n_lanes: usize,
    /// How many of them are wanted.
    pub(crate) n_wanted: usize,
    /// One, or two whose vectors lie side by side in a tile.
    pub(crate) n_branches: usize,
}

impl Panels<'_> {
    /// Where vector `index` of a tile of `n` starts, the tile beginning at `lane` of each branch.
    #[inline(always)]
    fn start<V: Vector>(&self, lane: usize, index: usize, n: usize) -> usize {
        let of_branch = n / self.n_branches;
        let lane = lane + index % of_branch * V::LANES;
        let panel = index / of_branch * (self.n_lanes / BLOCK) + lane / BLOCK;
        panel * self.n_taps * BLOCK + lane % BLOCK
    }
}

/// Computes every position of `grid` at every lane, calling `finish` with where the position's output starts, the
/// first lane, the lanes of a branch in this tile, and their sums, branch after branch.
#[inline(always)]
pub(crate) fn sweep<V: Vector, const N: usize>(
    grid: &Grid,
    x: &[f32],
    segments: &[Segment],
    panels: &Panels<'_>,
    mut finish: impl FnMut(usize, usize, usize, &[f32; TILE_LANES]),
) {
    let n_positions = grid.n_rows * grid.n_cols;
    if n_positions == 0 {
        return;
    }
    check_reads(grid, x, segments, panels);
    let mut sums: Sums = [[0.0; TILE_LANES]; ROWS];
    let mut rows = [x.as_ptr(); BLOCK_ROWS];
    let mut outputs = [0; BLOCK_ROWS];
    let (mut row, mut col) = (0, 0);
    let mut done = 0;
    while done < n_positions {
        let n = BLOCK_ROWS.min(n_positions - done);
        for r in 0..n {
            rows[r] = x[grid.input.at(row, col)..].as_ptr();
            outputs[r] = grid.output.at(row, col);
            col += 1;
            if col == grid.n_cols {
                (row, col) = (row + 1, 0);
            }
        }
        let mut lane = 0;
        while lane < panels.n_wanted {
            let wide = N / panels.n_branches * V::LANES;
            let width = if lane + wide <= panels.n_lanes { wide } else { V::LANES };
            for (rows, outputs) in rows[..n].chunks(ROWS).zip(outputs[..n].chunks(ROWS)) {
                // SAFETY: BOUNDS, `check_reads` has seen that all positions of the grid may be read at all segments.
                unsafe { tile_rows::<V, N>(rows, segments, panels, lane, width == wide, &mut sums) };
                for (sums, &output) in sums.iter().zip(outputs) {
                    finish(output, lane, width, sums);
                }
            }
            lane += width;
        }
        done += n;
    }
}

/// Panics unless every read of a sweep lies inside its slices.
fn check_reads(grid: &Grid, x: &[f32], segments: &[Segment], panels: &Panels<'_>) {
    let last = grid.input.at(grid.n_rows - 1, grid.n_cols - 1);
    let reach = segments.iter().map(|s| s.input + s.len).max().unwrap_or(0);
    assert!(last + reach <= x.len(), "conv: reads {} of {} inputs", last + reach, x.len());
    let taps = segments.iter().map(|s| s.tap + s.len).max().unwrap_or(0);
    assert!(
        taps <= panels.n_taps && panels.n_lanes.is_multiple_of(BLOCK),
        "conv: reads {taps} of {} taps",
        panels.n_taps
    );
    assert!(panels.n_branches * panels.n_lanes * panels.n_taps <= panels.values.len(), "conv: panels");
}

/// The sums of at most [`ROWS`] rows, in tiles.
///
/// # Safety
/// The rows may be read at all segments, the panels at all taps.
#[inline(always)]
unsafe fn tile_rows<V: Vector, const N: usize>(
    rows: &[*const f32],
    segments: &[Segment],
    panels: &Panels<'_>,
    lane: usize,
    is_wide: bool,
    sums: &mut Sums,
) {
    let mut done = 0;
    while done < rows.len() {
        let here = match rows.len() - done {
            6.. => 6,
            3.. => 3,
            left => left,
        };
        let (rows, sums) = (&rows[done..], &mut sums[done..]);
        // SAFETY: BOUNDS, by the caller.
        unsafe {
            match (here, is_wide, panels.n_branches) {
                (6, true, _) => tile_into::<V, 6, N>(rows, segments, panels, lane, sums),
                (3, true, _) => tile_into::<V, 3, N>(rows, segments, panels, lane, sums),
                (2, true, _) => tile_into::<V, 2, N>(rows, segments, panels, lane, sums),
                (1, true, _) => tile_into::<V, 1, N>(rows, segments, panels, lane, sums),
                (6, false, 2) => tile_into::<V, 6, 2>(rows, segments, panels, lane, sums),
                (3, false, 2) => tile_into::<V, 3, 2>(rows, segments, panels, lane, sums),
                (2, false, 2) => tile_into::<V, 2, 2>(rows, segments, panels, lane, sums),
                (1, false, 2) => tile_into::<V, 1, 2>(rows, segments, panels, lane, sums),
                (6, false, _) => tile_into::<V, 6, 1>(rows, segments, panels, lane, sums),
                (3, false, _) => tile_into::<V, 3, 1>(rows, segments, panels, lane, sums),
                (2, false, _) => tile_into::<V, 2, 1>(rows, segments, panels, lane, sums),
                _ => tile_into::<V, 1, 1>(rows, segments, panels, lane, sums),
            }
        }
        done += here;
    }
}

/// One tile, its sums stored row by row.
///
/// # Safety
/// As [`tile_rows`].
#[inline(always)]
unsafe fn tile_into<V: Vector, const R: usize, const N: usize>(
    rows: &[*const f32],
    segments: &[Segment],
    panels: &Panels<'_>,
    lane: usize,
    sums: &mut [[f32; TILE_LANES]],
) {
    let rows: &[*const f32; R] = rows.first_chunk().expect("as many rows as the caller counted");
    let mut starts = [panels.values.as_ptr(); N];
    for (index, start) in starts.iter_mut().enumerate() {
        *start = panels.values[panels.start::<V>(lane, index, N)..].as_ptr();
    }
    // SAFETY: BOUNDS, by the caller for the reads; a row of sums holds N vectors.
    unsafe {
        let tile = tile::<V, R, N>(rows, segments, &starts);
        for (vectors, sums) in tile.iter().zip(sums) {
            for (index, vector) in vectors.iter().enumerate() {
                vector.store(sums.as_mut_ptr().add(index * V::LANES));
            }
        }
    }
}

/// As [`plain::forward`](super::plain::forward).
#[inline(always)]
pub(crate) fn forward<V: Vector, const N: usize>(
    weights: &ConvWeights<f32>,
    x: &[f32],
    dropout: Option<Dropout>,
    out: &mut [f32],
    choices: &mut [u8],
) {
    let conv = &weights.conv;
    let n_frames = check_forward(conv, x.len(), out.len(), choices.len());
    let dropout = dropout.map(|dropout| (dropout, dropout.scale()));
    let panels = Panels {
        values: &weights.forward,
        n_taps: conv.n_taps(),
        n_lanes: conv.n_lanes(),
        n_wanted: conv.n_filters,
        n_branches: 2,
    };
    for span in conv.spans() {
        let grid = forward_grid(conv, &span, n_frames);
        let mut segments = [Segment { input: 0, tap: 0, len: 0 }; MAX_TIME_TAPS];
        let segments = forward_segments(conv, &span, &mut segments);
        sweep::<V, N>(&grid, x, segments, &panels, |at, lane, width, sums| {
            let bias = [0, 1].map(|branch| &weights.bias[branch * conv.n_lanes() + lane..]);
            let width_kept = width.min(conv.n_filters - lane);
            let (out, first) = (&mut out[at + lane..][..width_kept], at + lane);
            let choices = if choices.is_empty() { &mut [] } else { &mut choices[first..][..width_kept] };
            match width {
                4 => maximum::<4>(sums, width, bias, dropout, first, out, choices),
                8 => maximum::<8>(sums, width, bias, dropout, first, out, choices),
                _ => maximum::<16>(sums, width, bias, dropout, first, out, choices),
            }
        });
    }
}

fn forward_grid(conv: &Conv, span: &Span, n_frames: usize) -> Grid {
    let input = Steps {
        first: conv.column(span.freqs.start, span.taps.start),
        row: conv.stride[0] * conv.width_in(),
        col: conv.stride[1] * conv.n_channels,
    };
    let output = Steps { first: span.freqs.start * conv.n_filters, row: conv.width_out(), col: conv.n_filters };
    Grid { n_rows: n_frames, n_cols: span.freqs.len(), input, output }
}

/// For each tap in time, the inputs of all taps in frequency lie one after another.
fn forward_segments<'a>(conv: &Conv, span: &Span, segments: &'a mut [Segment; MAX_TIME_TAPS]) -> &'a [Segment] {
    let segments = &mut segments[..conv.kernel[0]];
    for (i, segment) in segments.iter_mut().enumerate() {
        let tap = (i * conv.kernel[1] + span.taps.start) * conv.n_channels;
        *segment = Segment { input: i * conv.width_in(), tap, len: span.taps.len() * conv.n_channels };
    }
    segments
}

/// Bias, dropout and maximum of the lanes of one tile row, `L` at a time so that the compiler sees whole vectors.
#[inline(always)]
fn maximum<const L: usize>(
    sums: &[f32; TILE_LANES],
    width: usize,
    bias: [&[f32]; 2],
    dropout: Option<(Dropout, f32)>,
    first: usize,
    out: &mut [f32],
    choices: &mut [u8],
) {
    for start in (0..out.len()).step_by(L) {
        let mut keeps = [[u32::MAX; L]; 2];
        let mut scale = 1.0;
        if let Some((dropout, factor)) = dropout {
            keeps = dropout.keep_masks(first + start);
            scale = factor;
        }
        let mut values = [[0.0; L]; 2];
        for branch in 0..2 {
            let (sums, bias) = (&sums[branch * width + start..][..L], &bias[branch][start..][..L]);
            for i in 0..L {
                values[branch][i] = f32::from_bits(((sums[i] + bias[i]) * scale).to_bits() & keeps[branch][i]);
            }
        }
        let (mut larger, mut branch) = ([0.0; L], [0; L]);
        for i in 0..L {
            let from_a = values[0][i] >= values[1][i];
            larger[i] = if from_a { values[0][i] } else { values[1][i] };
            let kept = if from_a { keeps[0][i] & u32::from(choice::A) } else { keeps[1][i] & u32::from(choice::B) };
            branch[i] = kept as u8;
        }
        put(&larger, &mut out[start..]);
        if !choices.is_empty() {
            put(&branch, &mut choices[start..]);
        }
    }
}

/// Copies as many of `values` as fit; a whole vector without asking how many.
#[inline(always)]
fn put<T: Copy, const L: usize>(values: &[T; L], slots: &mut [T]) {
    if let Some(whole) = slots.first_chunk_mut() {
        *whole = *values;
    } else {
        slots.copy_from_slice(&values[..slots.len()]);
    }
}
