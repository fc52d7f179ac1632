//! The gradient of the maximum, spread over the branches: the gradient of the output and the choices in, the gradient
//! of both branches out.
//!
//! The spread gradient has zero frames and frequencies around it, so that the backward products need no edges.

use crate::conv::choice;
use crate::{Conv, Dropout, Element};

/// Where the values of a spread gradient lie.
///
/// # Shapes
/// - `[margin + n_frames + margin][margin + n_freq_out + margin][branch][lane]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// Zero frames before and after.
    pub(crate) frames: usize,
    /// Zero frequencies before the first.
    pub(crate) before: usize,
    /// Values in a frame.
    pub(crate) row: usize,
    /// Values at a frequency.
    pub(crate) col: usize,
}

impl Spread {
    pub(crate) fn new(conv: &Conv) -> Self {
        let margin = [0, 1].map(|axis| (conv.kernel[axis] - 1) / conv.stride[axis]);
        let n_freq_out = conv.n_freq_out();
        let last_read = (conv.pad_freq[0] + conv.n_freq).saturating_sub(1) / conv.stride[1];
        let after = (last_read + 1).saturating_sub(n_freq_out);
        let col = 2 * conv.n_lanes();
        Self { frames: margin[0], before: margin[1], row: (margin[1] + n_freq_out + after) * col, col }
    }

    /// Where frame `t`, frequency `f` starts.
    pub(crate) fn at(&self, t: usize, f: usize) -> usize {
        (self.frames + t) * self.row + (self.before + f) * self.col
    }
}

impl Conv {
    /// Values in the spread gradient of `n_frames` output frames.
    pub fn n_spread(&self, n_frames: usize) -> usize {
        let spread = Spread::new(self);
        (n_frames + 2 * spread.frames) * spread.row
    }
}

/// Spreads `grad_out` over the branches; every value of `spread` is written.
#[inline(always)]
pub(crate) fn spread<E: Element>(
    conv: &Conv,
    dropout: Option<Dropout>,
    grad_out: &[E],
    choices: &[u8],
    spread: &mut [E],
) {
    let shape = Spread::new(conv);
    let n_frames = grad_out.len() / conv.width_out();
    assert!(choices.len() == grad_out.len() && spread.len() == conv.n_spread(n_frames), "conv: spread gradient");
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
            let gradients = &grad_out[from..from + n_filters];
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
