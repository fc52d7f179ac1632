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

pub(crate) mod fast;
pub(crate) mod outer;
pub(crate) mod plain;
pub(crate) mod sparse;
pub(crate) mod spread;
pub(crate) mod tile;
mod weights;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use weights::{Branch, ConvWeights};
pub(crate) use weights::{GROUP, pack_panels, scatters};

use crate::{BLOCK, Element};

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
pub(crate) struct Span {
    /// Output frequencies.
    pub(crate) freqs: Range<usize>,
    /// Taps in frequency that fall on the input.
    pub(crate) taps: Range<usize>,
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
    pub(crate) fn n_taps(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.n_channels
    }

    /// Filters of a branch, rounded up to whole blocks.
    pub(crate) fn n_lanes(&self) -> usize {
        self.n_filters.next_multiple_of(BLOCK)
    }

    /// Values in an utterance's weight gradient: for each branch its taps and its bias, filters in whole blocks.
    pub fn n_gradient(&self) -> usize {
        2 * (self.n_taps() + 1) * self.n_lanes()
    }

    /// The taps in frequency that fall on the input at output frequency `freq`.
    fn taps_at(&self, freq: usize) -> Range<usize> {
        let start = freq * self.stride[1];
        let first = self.pad_freq[0].saturating_sub(start).min(self.kernel[1]);
        let last = (self.pad_freq[0] + self.n_freq).saturating_sub(start).clamp(first, self.kernel[1]);
        first..last
    }

    /// The output frequencies, grouped by the taps they see.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> + use<> {
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
    pub(crate) fn column(&self, freq: usize, tap: usize) -> usize {
        (freq * self.stride[1] + tap - self.pad_freq[0]) * self.n_channels
    }
}

/// The larger of two branch sums after dropout, and where its gradient goes.
#[inline(always)]
pub(crate) fn pick<E: Element>(keeps: [bool; 2], scale: E, a: E, b: E) -> (E, u8) {
    let a = if keeps[0] { a * scale } else { E::ZERO };
    let b = if keeps[1] { b * scale } else { E::ZERO };
    let from_a = if keeps[0] { choice::A } else { choice::NONE };
    let from_b = if keeps[1] { choice::B } else { choice::NONE };
    if a >= b { (a, from_a) } else { (b, from_b) }
}

/// Checks the slices of a forward call and returns its number of output frames.
#[track_caller]
pub(crate) fn check_forward(conv: &Conv, n_x: usize, n_out: usize, n_choices: usize) -> usize {
    let n_frames = n_out / conv.width_out();
    assert_eq!(n_frames * conv.width_out(), n_out, "conv: output of whole frames");
    assert!(n_choices == 0 || n_choices == n_out, "conv: {n_choices} choices for {n_out} outputs");
    let n_read = conv.n_frames_read(n_frames) * conv.width_in();
    assert!(n_x >= n_read, "conv: {n_x} inputs, {n_frames} output frames read {n_read}");
    n_frames
}
