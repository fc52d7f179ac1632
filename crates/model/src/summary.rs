//! What a recipe amounts to: parameters, receptive field, look-ahead, delay and the shape of every layer.
//!
//! Everything here comes from the [`Layout`] that also allocates the parameters.
//!
//! # Look-ahead of a network of capsules
//! Slice t of the first convolution of the stack reads frames 2t-1 to 2t+1 of its input, so it looks 1 frame ahead; the
//! second reads slices 2t-1 to 2t+1 of the first, 2 frames further; slices are then 4 frames apart, and the
//! convolution of the primary capsules reads one slice ahead, 4 frames further: 1 + 2 + 4 = 7.
//! A capsule layer adds 4 frames for each slice of its right context, and the deltas of the features add theirs,
//! 4 for double deltas over 2 frames to either side.
//!
//! ```
//! use srf_model::config::{FeaturesConfig, ModelConfig, Recipe, SrfConfig};
//! use srf_model::summary::{LayerSummary, ParameterCount, Summary};
//!
//! let model = ModelConfig::Srf(SrfConfig::new(63));
//! let ParameterCount { total, trainable } = model.parameters();
//! println!("{total} parameters, {trainable} trained, {} operations per second of audio", model.flops(100));
//! assert_eq!(model.frames_per_slice(), 4);
//! let summary: Summary = Recipe { model, features: FeaturesConfig::default(), training: None }.summary();
//! assert_eq!(summary.look_ahead_frames, Some(39));
//! for layer in &summary.layers {
//!     let layer: &LayerSummary = layer;
//!     println!("{layer:?}");
//! }
//! ```

use serde::Serialize;

use crate::config::{ModelConfig, Recipe};
pub use crate::params::LayerSummary;
use crate::params::Layout;

/// How many numbers a model holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ParameterCount {
    /// All of them, as the paper counts.
    pub total: u64,
    /// Those that gradients change: all but the moving statistics of the batch norms.
    pub trainable: u64,
}

/// What a recipe amounts to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The value of `model.architecture`.
    pub architecture: &'static str,
    /// Numbers in the model.
    pub parameters: ParameterCount,
    /// Filterbank frames that one output slice depends on; `None` if on all of the utterance, or on all before it.
    pub receptive_field_frames: Option<usize>,
    /// Those of them that come after its own first one; `None` if the last frame is among them.
    pub look_ahead_frames: Option<usize>,
    /// The delay that the look-ahead causes: its frames and half of a frame's window.
    pub delay_ms: Option<f64>,
    /// The layers in order, the input first.
    pub layers: Vec<LayerSummary>,
}

impl Recipe {
    /// What this recipe amounts to.
    pub fn summary(&self) -> Summary {
        let layout = Layout::new(&self.model);
        let with_deltas = |frames: Option<usize>| Some(frames? + self.features.look_ahead_frames());
        let [look_back_frames, look_ahead_frames] = layout.context().map(with_deltas);
        let delay = |frames: usize| self.features.shift_ms * frames as f64 + self.features.window_ms / 2.0;
        Summary {
            architecture: self.model.architecture(),
            parameters: layout.count(),
            receptive_field_frames: look_back_frames.zip(look_ahead_frames).map(|(back, ahead)| back + 1 + ahead),
            look_ahead_frames,
            delay_ms: look_ahead_frames.map(delay),
            layers: layout.layers().to_vec(),
        }
    }
}

impl Layout {
    /// Numbers in the model.
    pub fn count(&self) -> ParameterCount {
        ParameterCount { total: self.n_values() as u64, trainable: self.n_trainable() as u64 }
    }
}

impl ModelConfig {
    /// Numbers in the model.
    pub fn parameters(&self) -> ParameterCount {
        Layout::new(self).count()
    }

    /// Feature frames that become one slice.
    pub fn frames_per_slice(&self) -> usize {
        Layout::new(self).frames_per_slice()
    }

    /// Floating-point operations of the products of a forward pass over `n_frames` frames.
    pub fn flops(&self, n_frames: usize) -> u64 {
        Layout::new(self).flops(n_frames)
    }
}
