//! Convolution over time and frequency in two branches, dropout on each, and their elementwise maximum (maxout).
//!
//! With x the input, k_a and k_b the kernels, z the padding and s the strides:
//!
//! ```text
//! y_a[t][f][o] = bias_a[o] + sum over (i, j, c) of x[s_t t + i][s_f f + j - z][c] * k_a[i][j][c][o]
//! out[t][f][o] = max(drop(y_a[t][f][o]), drop(y_b[t][f][o]))
//! ```
//!
//! The frequency axis is padded with zeros here; the time axis is what the caller hands over (its padding frames are
//! part of the slice), so that a stream computes exactly the frames it has.
//! Saved for the backward pass: the input, and for each output one byte, the [`choice`].
//! An output is computed by the same operations in the same order whatever else the call computes: any split of the
//! time axis gives the same bits.

pub(crate) mod gradients;
pub(crate) mod plain;
pub(crate) mod tiles;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{BLOCK, Buffer, Dropout, Element};

/// Lanes of a group: a group of the 128 rows of the second convolution of SRF-7L fits the first-level cache.
pub(crate) const GROUP: usize = 48;
/// Most taps in time.
const MAX_TIME_TAPS: usize = 16;

/// Which branch an output's gradient flows to.
pub mod choice {
    /// To neither: the larger one was dropped.
    pub const NONE: u8 = 0;
    /// To the first branch, which also wins ties.
    pub const A: u8 = 1;
    /// To the second branch.
    pub const B: u8 = 2;
}

/// The shape of a convolution.
///
/// # Shapes
/// - input `[frames][n_freq][n_channels]`, output `[n_frames][n_freq_out][n_filters]`, the last axis fastest
/// - kernel of a branch `[time][freq][n_channels][n_filters]`, bias `[n_filters]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Taps in time and frequency.
    pub kernel: [usize; 2],
    /// Steps in time and frequency.
    pub stride: [usize; 2],
    /// Frequencies of the input.
    pub n_freq: usize,
    /// Zeros before the first and after the last frequency.
    pub pad_freq: [usize; 2],
    /// Channels of the input.
    pub n_channels: usize,
    /// Channels of the output.
    pub n_filters: usize,
}

/// Output frequencies that see the same taps: all of them in the middle, fewer at the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    /// Output frequencies.
    freqs: Range<usize>,
    /// Taps in frequency that fall on the input.
    taps: Range<usize>,
}

impl Conv {
    /// Frequencies of the output.
    pub fn n_freq_out(&self) -> usize {
        let padded = self.pad_freq[0] + self.n_freq + self.pad_freq[1];
        if padded < self.kernel[1] { 0 } else { (padded - self.kernel[1]) / self.stride[1] + 1 }
    }

    /// Values in a frame of the input.
    pub fn width_in(&self) -> usize {
        self.n_freq * self.n_channels
    }

    /// Values in a frame of the output.
    pub fn width_out(&self) -> usize {
        self.n_freq_out() * self.n_filters
    }

    /// Input frames that `n_frames` output frames read.
    pub fn n_frames_read(&self, n_frames: usize) -> usize {
        if n_frames == 0 { 0 } else { (n_frames - 1) * self.stride[0] + self.kernel[0] }
    }

    /// Input values that an output reads where no tap falls on padding.
    fn n_taps(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.n_channels
    }

    /// Filters of a branch, rounded up to whole blocks.
    fn n_lanes(&self) -> usize {
        self.n_filters.next_multiple_of(BLOCK)
    }

    /// Values in an utterance's weight gradient: for each branch its taps and its bias, filters in whole blocks.
    pub fn n_gradient(&self) -> usize {
        2 * (self.n_taps() + 1) * self.n_lanes()
    }

    /// Values in the spread gradient of `n_frames` output frames.
    pub fn n_spread(&self, n_frames: usize) -> usize {
        let spread = Spread::new(self);
        (n_frames + 2 * spread.frames) * spread.row
    }

    /// The taps in frequency that fall on the input at output frequency `freq`.
    fn taps_at(&self, freq: usize) -> Range<usize> {
        let start = freq * self.stride[1];
        let first = self.pad_freq[0].saturating_sub(start).min(self.kernel[1]);
        let last = (self.pad_freq[0] + self.n_freq).saturating_sub(start).clamp(first, self.kernel[1]);
        first..last
    }

    /// The output frequencies, grouped by the taps they see.
    fn spans(&self) -> impl Iterator<Item = Span> + use<> {
        let conv = *self;
        let n_freq_out = conv.n_freq_out();
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = next;
            if start >= n_freq_out {
                return None;
            }
            let taps = conv.taps_at(start);
            while next < n_freq_out && conv.taps_at(next) == taps {
                next += 1;
            }
            Some(Span { freqs: start..next, taps })
        })
    }

    /// Where in an input frame the first value seen by output frequency `freq` lies, whose first tap is `tap`.
    fn column(&self, freq: usize, tap: usize) -> usize {
        (freq * self.stride[1] + tap - self.pad_freq[0]) * self.n_channels
    }
}

/// The larger of two branch sums after dropout, and where its gradient goes.
#[inline(always)]
fn pick<E: Element>(keeps: [bool; 2], scale: E, a: E, b: E) -> (E, u8) {
    let a = if keeps[0] { a * scale } else { E::ZERO };
    let b = if keeps[1] { b * scale } else { E::ZERO };
    let from_a = if keeps[0] { choice::A } else { choice::NONE };
    let from_b = if keeps[1] { choice::B } else { choice::NONE };
    if a >= b { (a, from_a) } else { (b, from_b) }
}

/// Checks the slices of a forward call and returns its number of output frames.
#[track_caller]
fn check_forward(conv: &Conv, n_x: usize, n_out: usize, n_choices: usize) -> usize {
    let n_frames = n_out / conv.width_out();
    assert_eq!(n_frames * conv.width_out(), n_out, "conv: output of whole frames");
    assert!(n_choices == 0 || n_choices == n_out, "conv: {n_choices} choices for {n_out} outputs");
    let n_read = conv.n_frames_read(n_frames) * conv.width_in();
    assert!(n_x >= n_read, "conv: {n_x} inputs, {n_frames} output frames read {n_read}");
    n_frames
}

/// The parameters of one branch.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a, E> {
    /// `[time][freq][n_channels][n_filters]`.
    pub kernel: &'a [E],
    /// `[n_filters]`, or none.
    pub bias: Option<&'a [E]>,
}

/// The weights of a convolution, packed once a step (or once at load) and shared by all utterances.
#[derive(Clone)]
pub struct ConvWeights<E> {
    conv: Conv,
    /// `[branch][panel][tap][lane]`: lanes are filters.
    forward: Buffer<E>,
    /// `[branch][lane]`.
    bias: Buffer<E>,
    /// For the gradient of the input. With many channels the phases one after another, `[phase][panel][row][lane]`,
    /// lanes are channels; with few, see [`scatters`], `[panel][filter of either branch][lane]`, lanes are taps.
    backward: Buffer<E>,
}

/// Panels that hold `n` lanes.
fn n_panels(n: usize) -> usize {
    n.div_ceil(BLOCK)
}

impl<E: Element> ConvWeights<E> {
    /// The convolution they belong to.
    pub fn conv(&self) -> &Conv {
        &self.conv
    }

    /// Room for the weights of `conv`; nothing is packed yet.
    pub fn new(conv: Conv) -> Self {
        let lanes = 2 * conv.n_lanes();
        assert!(conv.pad_freq.iter().all(|&pad| pad < conv.kernel[1]), "conv: an output that reads only padding");
        assert!(conv.kernel[0] <= MAX_TIME_TAPS, "conv: {} taps in time", conv.kernel[0]);
        let n_rows =
            if scatters(&conv) { n_panels(conv.n_taps()) * BLOCK } else { conv.kernel[0] * n_groups(&conv) * GROUP };
        let forward = Buffer::zeros(lanes * conv.n_taps());
        Self { conv, forward, bias: Buffer::zeros(lanes), backward: Buffer::zeros(lanes * n_rows) }
    }

    /// Packs what the forward pass reads.
    #[track_caller]
    pub fn pack(&mut self, branches: [Branch<'_, E>; 2]) {
        let conv = self.conv;
        let (n_taps, n_lanes, n_filters) = (conv.n_taps(), conv.n_lanes(), conv.n_filters);
        for (index, branch) in branches.iter().enumerate() {
            assert_eq!(branch.kernel.len(), n_taps * n_filters, "conv: values in the kernel of branch {index}");
            let panels = &mut self.forward[index * n_taps * n_lanes..][..n_taps * n_lanes];
            pack_panels(branch.kernel, n_filters, panels);
            let bias = &mut self.bias[index * n_lanes..][..n_filters];
            match branch.bias {
                Some(values) => bias.copy_from_slice(values),
                None => bias.fill(E::ZERO),
            }
        }
    }

    /// Packs what the gradient with respect to the input reads.
    #[track_caller]
    pub fn pack_backward(&mut self, branches: [Branch<'_, E>; 2]) {
        let conv = self.conv;
        if scatters(&conv) {
            for (index, branch) in branches.iter().enumerate() {
                let (first_row, n_rows) = (index * conv.n_lanes(), 2 * conv.n_lanes());
                pack_transposed::<E, BLOCK>(branch.kernel, conv.n_filters, first_row, n_rows, &mut self.backward);
            }
            return;
        }
        let n_run = conv.kernel[1] * conv.n_channels * conv.n_filters;
        for (index, branch) in branches.iter().enumerate() {
            let first_row = index * conv.n_lanes();
            let n_panel = n_groups(&conv) * GROUP * 2 * conv.n_lanes();
            for (kernel, panels) in branch.kernel.chunks_exact(n_run).zip(self.backward.chunks_exact_mut(n_panel)) {
                pack_transposed::<E, GROUP>(kernel, conv.n_filters, first_row, 2 * conv.n_lanes(), panels);
            }
        }
    }
}

/// Packs `[row][lane]` into `[panel][row][lane]`.
pub(crate) fn pack_panels<E: Element>(matrix: &[E], n_lanes: usize, panels: &mut [E]) {
    let n_rows = matrix.len() / n_lanes;
    for (panel, first) in panels.chunks_exact_mut(n_rows * BLOCK).zip((0..n_lanes).step_by(BLOCK)) {
        let width = BLOCK.min(n_lanes - first);
        for (row, values) in panel.chunks_exact_mut(BLOCK).enumerate() {
            values[..width].copy_from_slice(&matrix[row * n_lanes + first..][..width]);
        }
    }
}

/// Packs `[lane][filter]` into panels of `L` lanes whose rows are filters, from `first_row` on, of `n_rows`.
fn pack_transposed<E: Element, const L: usize>(
    kernel: &[E],
    n_filters: usize,
    first_row: usize,
    n_rows: usize,
    panels: &mut [E],
) {
    for (lane, filters) in kernel.chunks_exact(n_filters).enumerate() {
        let start = (lane / L * n_rows + first_row) * L + lane % L;
        for (filter, &weight) in filters.iter().enumerate() {
            panels[start + filter * L] = weight;
        }
    }
}

/// Whether the gradient of the input is scattered: with few channels, the taps of an output fill vectors better than
/// the channels of an input do.
fn scatters(conv: &Conv) -> bool {
    conv.n_channels < BLOCK
}

/// Groups that the taps of one frame fill, all frequencies and channels.
fn n_groups(conv: &Conv) -> usize {
    (conv.kernel[1] * conv.n_channels).div_ceil(GROUP)
}

/// Where the values of a spread gradient lie: the gradient of the maximum, spread over both branches, with zero frames
/// and frequencies around it, so that the backward products need no edges.
///
/// # Shapes
/// - `[margin + n_frames + margin][margin + n_freq_out + margin][branch][lane]`
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// Zero frames before and after.
    frames: usize,
    /// Zero frequencies before the first.
    before: usize,
    /// Values in a frame.
    row: usize,
    /// Values at a frequency.
    col: usize,
}

impl Spread {
    fn new(conv: &Conv) -> Self {
        let margin = [0, 1].map(|axis| (conv.kernel[axis] - 1) / conv.stride[axis]);
        let n_freq_out = conv.n_freq_out();
        let last_read = (conv.pad_freq[0] + conv.n_freq).saturating_sub(1) / conv.stride[1];
        let after = (last_read + 1).saturating_sub(n_freq_out);
        let col = 2 * conv.n_lanes();
        Self { frames: margin[0], before: margin[1], row: (margin[1] + n_freq_out + after) * col, col }
    }

    /// Where frame `t`, frequency `f` starts.
    fn at(&self, t: usize, f: usize) -> usize {
        (self.frames + t) * self.row + (self.before + f) * self.col
    }
}

/// Spreads `d_out` over the branches; every value of `spread` is written.
#[inline(always)]
pub(crate) fn spread<E: Element>(conv: &Conv, dropout: Option<Dropout>, d_out: &[E], choices: &[u8], spread: &mut [E]) {
    let shape = Spread::new(conv);
    let n_frames = d_out.len() / conv.width_out();
    assert!(choices.len() == d_out.len() && spread.len() == conv.n_spread(n_frames), "conv: spread gradient");
    let scale = dropout.map_or(E::ONE, Dropout::scale);
    spread[..shape.frames * shape.row].fill(E::ZERO);
    spread[(shape.frames + n_frames) * shape.row..].fill(E::ZERO);
    let (n_freq_out, n_filters, n_lanes) = (conv.n_freq_out(), conv.n_filters, conv.n_lanes());
    for t in 0..n_frames {
        let frame = &mut spread[(shape.frames + t) * shape.row..][..shape.row];
        frame[..shape.before * shape.col].fill(E::ZERO);
        frame[(shape.before + n_freq_out) * shape.col..].fill(E::ZERO);
        for f in 0..n_freq_out {
            let from = (t * n_freq_out + f) * n_filters;
            let (a, b) = frame[(shape.before + f) * shape.col..][..shape.col].split_at_mut(n_lanes);
            let gradients = &d_out[from..from + n_filters];
            let choices = &choices[from..from + n_filters];
            for (((a, b), &gradient), &choice) in a.iter_mut().zip(&mut *b).zip(gradients).zip(choices) {
                let gradient = gradient * scale;
                *a = if choice == choice::A { gradient } else { E::ZERO };
                *b = if choice == choice::B { gradient } else { E::ZERO };
            }
            a[n_filters..].fill(E::ZERO);
            b[n_filters..].fill(E::ZERO);
        }
    }
}
