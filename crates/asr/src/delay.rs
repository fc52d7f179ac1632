//! When a slice was said and when it was known: the times of a model in, the delay of every label out.
//!
//! Slice t belongs to feature frame t·n (n frames a slice), whose window is centred at t·n·shift + window / 2.
//! It can be computed when the samples of the last frame it depends on are complete, which is
//! `shift · look_ahead + window / 2` later: the *algorithmic* delay, the paper's column.
//! *Buffering* is how long the last of these samples had been waiting for the call that brought it, because samples
//! come in chunks and resampling gathers some; *compute* is how long the call took until the slice was decoded.

use srf_audio::features::FeaturesConfig;
use srf_model::inference::Inference;
use srf_text::words::Clock;

/// The arithmetic of times of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clockwork {
    slice_s: f64,
    shift_s: f64,
    window_s: f64,
    /// Filterbank frames after its own that a slice waits for; none if for the last of the utterance.
    look_ahead_frames: Option<usize>,
}

impl Clockwork {
    pub(crate) fn new(front_end: &FeaturesConfig, network: &Inference<f32>) -> Self {
        let reach_frames = front_end.look_ahead_frames();
        Self {
            slice_s: network.frames_per_slice() as f64 * front_end.shift_ms / 1000.0,
            shift_s: front_end.shift_ms / 1000.0,
            window_s: front_end.frame_ms / 1000.0,
            look_ahead_frames: network.look_ahead_frames().map(|frames| frames + reach_frames),
        }
    }

    /// From one slice to the next.
    pub fn slice_s(&self) -> f64 {
        self.slice_s
    }

    /// The algorithmic delay; none for a model that needs the whole utterance.
    pub fn algorithmic_ms(&self) -> Option<f64> {
        let frames = self.look_ahead_frames?;
        Some(1000.0 * (frames as f64 * self.shift_s) + 1000.0 * self.window_s / 2.0)
    }

    /// When slices are: each is centred on the window of its frame.
    pub fn clock(&self) -> Clock {
        Clock { start_s: (self.window_s - self.slice_s) / 2.0, slice_s: self.slice_s }
    }

    /// The window of a frame.
    pub(crate) fn window_ms(&self) -> f64 {
        1000.0 * self.window_s
    }

    /// How much must have been heard before a slice can be known.
    pub(crate) fn needed_s(&self, slice: usize) -> f64 {
        let look_ahead_s = self.look_ahead_frames.unwrap_or(0) as f64 * self.shift_s;
        slice as f64 * self.slice_s + look_ahead_s + self.window_s
    }
}
