//! What a configuration amounts to: parameters, receptive field, look-ahead, delay and the shape of every layer.
//!
//! Everything here is arithmetic on the configuration, done without laying out a single tensor; the tests hold it
//! against the actual layout and against the paper's tables.
//!
//! # Look-ahead of a network of capsules
//! Slice t of the first strided convolution reads frames 2t-1 to 2t+1 of its input, so it looks 1 frame ahead; the
//! second reads slices 2t-1 to 2t+1 of the first, 2 frames further; slices are then 4 frames apart, and the
//! convolution of the capsulation block reads one slice ahead, 4 frames further: 1 + 2 + 4 = 7.
//! A capsule layer adds 4 frames for each slice of its right context, and the differences in the features add theirs,
//! 4 for double deltas over 2 frames to either side.

mod baselines;
mod srf;

use serde::Serialize;

use crate::config::{ModelConfig, Recipe, conv_widths};

pub use self::baselines::{cnn_parameters, lstm_parameters, transformer_parameters};
pub use self::srf::{srf_look_ahead_frames, srf_parameters};

/// Feature frames from one slice to the next, behind both strided convolutions.
pub const FRAMES_PER_SLICE: usize = 4;

/// Frames to either side that a slice of the strided convolutions is computed from: see the module's notes.
const SLICER_REACH_FRAMES: usize = 1 + 2;

/// Taps of a 3 x 3 convolution.
const TAPS: usize = 9;

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
    /// Filterbank frames that one output slice depends on; none if on all of the utterance, or on all before it.
    pub receptive_field_frames: Option<usize>,
    /// Those of them that come after its own first one; none if the last frame is among them.
    pub look_ahead_frames: Option<usize>,
    /// What the look-ahead costs: its frames and half of a frame's window.
    pub delay_ms: Option<f64>,
    /// The layers in order, the input first.
    pub layers: Vec<LayerSummary>,
}

/// One layer: its output and its size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerSummary {
    /// Its name, as in the names of its tensors.
    pub name: String,
    /// Input frames a slice of its output: T frames become ceil(T / this) slices.
    pub time_divisor: usize,
    /// The other axes of its output.
    pub shape: Vec<usize>,
    /// Numbers in the layer.
    pub parameters: u64,
}

impl Recipe {
    /// What this recipe amounts to.
    pub fn summary(&self) -> Summary {
        let reach = self.model.reach();
        let behind = |frames: usize| frames + self.features.look_ahead_frames();
        let look_ahead_frames = reach[1].map(behind);
        let look_back_frames = reach[0].map(behind);
        let delay = |frames: usize| self.features.shift_ms * frames as f64 + self.features.window_ms / 2.0;
        Summary {
            architecture: self.model.architecture(),
            parameters: self.model.parameters(),
            receptive_field_frames: look_back_frames.zip(look_ahead_frames).map(|(back, ahead)| back + 1 + ahead),
            look_ahead_frames,
            delay_ms: look_ahead_frames.map(delay),
            layers: self.model.layers(),
        }
    }
}

impl ModelConfig {
    /// Numbers in the model; within `u64` for all sizes within their bounds.
    pub fn parameters(&self) -> ParameterCount {
        match self {
            Self::Srf(srf) => srf_parameters(srf),
            Self::Lstm(lstm) => lstm_parameters(lstm),
            Self::Cnn(cnn) => cnn_parameters(cnn),
            Self::Transformer(transformer) => transformer_parameters(transformer),
        }
    }

    /// Feature frames before and after its own first one that a slice depends on; none for all of them.
    pub fn reach(&self) -> [Option<usize>; 2] {
        match self {
            Self::Srf(srf) => srf::reach(srf),
            Self::Lstm(lstm) => baselines::lstm_reach(lstm),
            Self::Cnn(cnn) => baselines::cnn_reach(cnn),
            Self::Transformer(_) => [None; 2],
        }
    }

    /// Feature frames that become one slice.
    pub fn frames_per_slice(&self) -> usize {
        let has_front_end = match self {
            Self::Srf(_) | Self::Transformer(_) => true,
            Self::Lstm(lstm) => lstm.front_end,
            Self::Cnn(cnn) => cnn.front_end,
        };
        if has_front_end { FRAMES_PER_SLICE } else { 1 }
    }

    /// Floating-point operations of the products that an utterance of `n_frames` needs at the least, on the way forward.
    pub fn flops(&self, n_frames: usize) -> u64 {
        let n_slices = n_frames.div_ceil(self.frames_per_slice());
        let of_slice = match self {
            Self::Srf(srf) => srf.flops_per_slice(),
            Self::Lstm(lstm) => lstm.flops_per_slice(),
            Self::Cnn(cnn) => cnn.flops_per_slice(),
            Self::Transformer(transformer) => transformer.flops_per_slice(n_slices),
        };
        n_slices as u64 * of_slice
    }

    fn layers(&self) -> Vec<LayerSummary> {
        match self {
            Self::Srf(srf) => srf::layers(srf),
            Self::Lstm(lstm) => baselines::lstm_layers(lstm),
            Self::Cnn(cnn) => baselines::cnn_layers(cnn),
            Self::Transformer(transformer) => baselines::transformer_layers(transformer),
        }
    }
}

/// All numbers of these layers, of which the moving statistics of `n_filters` filters in two batch norms are not
/// trained.
fn count(layers: &[LayerSummary], n_filters: usize) -> ParameterCount {
    let total = layers.iter().map(|layer| layer.parameters).sum();
    ParameterCount { total, trainable: total - 2 * 2 * n_filters as u64 }
}

/// The two strided convolutions and their batch norms.
fn slicer_layers(features: usize, filters: usize) -> Vec<LayerSummary> {
    let [_, width1, width2] = conv_widths(features);
    // A batch norm has a scale, a shift, a mean and a variance for each filter.
    let batch_norm = 4 * filters as u64;
    vec![
        layer("conv1", 2, &[width1, filters], maxout_parameters(1, filters)),
        layer("bn1", 2, &[width1, filters], batch_norm),
        layer("conv2", 4, &[width2, filters], maxout_parameters(filters, filters)),
        layer("bn2", 4, &[width2, filters], batch_norm),
    ]
}

/// Products of both strided convolutions that one slice needs.
fn slicer_products(features: usize, filters: usize) -> usize {
    let [_, halves, quarters] = conv_widths(features);
    // Two rows of the first convolution make one of the second; both branches of each.
    2 * halves * TAPS * 2 * filters + quarters * TAPS * filters * 2 * filters
}

/// Two 3 x 3 convolutions with biases.
fn maxout_parameters(n_in: usize, n_out: usize) -> u64 {
    2 * (TAPS * n_in * n_out + n_out) as u64
}

/// A layer norm has a scale and a shift for each of its values.
fn norm(name: impl Into<String>, time_divisor: usize, shape: &[usize]) -> LayerSummary {
    layer(name, time_divisor, shape, 2 * shape.iter().product::<usize>() as u64)
}

fn layer(name: impl Into<String>, time_divisor: usize, shape: &[usize], parameters: u64) -> LayerSummary {
    LayerSummary { name: name.into(), time_divisor, shape: shape.to_vec(), parameters }
}
