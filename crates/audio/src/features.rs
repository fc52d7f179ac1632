//! Features: log-mel filterbank and energy as Kaldi computes them, with deltas and normalisation.
//!
//! The steps, one file each: cut into frames (`frame`), window (`window`), power spectrum (`fft`), mel bins and
//! their logarithm (`mel`), deltas (`delta`) and, on top, normalisation ([`cmvn`]).
//! [`Extractor`] runs them on a stream; [`extract`] feeds it everything at once, so that both give the same bits.

mod config;
mod delta;
mod extractor;
mod fft;
mod frame;
mod lanes;
mod mel;
mod window;

pub mod cmvn;

pub use config::{Cmvn, FeaturesConfig, FeaturesConfigError, WindowShape};
pub use extractor::{Extractor, extract};

/// Feature frames of one utterance.
///
/// # Shapes
/// - values `[time, dimension]`, row by row
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Frames {
    /// Values per frame.
    pub n_dims: usize,
    /// All frames, one after the other.
    pub values: Vec<f32>,
}

impl Frames {
    /// How many frames there are.
    pub fn n_frames(&self) -> usize {
        self.values.len().checked_div(self.n_dims).unwrap_or(0)
    }

    /// One frame after the other.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.n_dims.max(1))
    }
}
