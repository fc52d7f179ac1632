//! What a configuration amounts to: parameters, receptive field, look-ahead, delay and the shape of every layer.
//!
//! Everything here is arithmetic on the configuration, done without laying out a single tensor; the tests hold it
//! against the actual layout and against the paper's tables.
//!
//! # Look-ahead
//! Slice t of the first strided convolution reads frames 2t-1 to 2t+1 of its input, so it looks 1 frame ahead; the
//! second reads slices 2t-1 to 2t+1 of the first, 2 frames further; slices are then 4 frames apart, and the
//! convolution of the capsulation block reads one slice ahead, 4 frames further: 1 + 2 + 4 = 7.
//! A capsule layer adds 4 frames for each slice of its right context, and the differences in the features add theirs,
//! 4 for double deltas over 2 frames to either side.

use serde::Serialize;

use crate::config::{CapsuleShape, FeaturesConfig, ModelConfig, Recipe, SrfConfig};

/// Feature frames from one slice to the next, behind both strided convolutions.
pub const FRAMES_PER_SLICE: usize = 4;

/// Frames to either side that a slice of primary capsules is computed from: see the module's notes.
const CONV_REACH_FRAMES: usize = 1 + 2 + FRAMES_PER_SLICE;

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
    /// Filterbank frames that one output slice depends on.
    pub receptive_field_frames: usize,
    /// Those of them that come after its own: frame 4t for slice t.
    pub look_ahead_frames: usize,
    /// What the look-ahead costs: its frames and half of a frame's window.
    pub delay_ms: f64,
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

impl SrfConfig {
    /// Floating-point operations of the products that one slice needs at the least, on the way forward.
    pub fn flops_per_slice(&self) -> u64 {
        let [_, halves, quarters] = self.conv_widths();
        let filters = self.filters;
        // Two rows of the first convolution make one of the second; both branches of each.
        let conv1 = 2 * halves * TAPS * 2 * filters;
        let conv2 = quarters * TAPS * filters * 2 * filters;
        let capsulation = self.primary_height * (self.flat_width() + TAPS * 2 * self.primary_depth);
        let votes = |s: CapsuleShape| s.n_inputs() * s.in_depth * s.out_height * s.out_depth;
        let products = conv1 + conv2 + capsulation + self.capsule_shapes().map(votes).sum::<usize>();
        2 * products as u64
    }
}

impl Recipe {
    /// What this recipe amounts to.
    pub fn summary(&self) -> Summary {
        let ModelConfig::Srf(srf) = &self.model;
        let look_ahead_frames = reach_frames(&self.features, srf.capsule_shapes().map(|s| s.window_right));
        let look_back_frames = reach_frames(&self.features, srf.capsule_shapes().map(|s| s.window_left));
        Summary {
            architecture: self.model.architecture(),
            parameters: srf_parameters(srf),
            receptive_field_frames: look_back_frames + 1 + look_ahead_frames,
            look_ahead_frames,
            delay_ms: self.features.shift_ms * look_ahead_frames as f64 + self.features.window_ms / 2.0,
            layers: srf_layers(srf),
        }
    }
}

/// Filterbank frames to one side that a slice depends on.
fn reach_frames(features: &FeaturesConfig, contexts: impl Iterator<Item = usize>) -> usize {
    features.reach_frames() + CONV_REACH_FRAMES + FRAMES_PER_SLICE * contexts.sum::<usize>()
}

/// Feature frames after its own that a slice of an SRF network waits for.
pub fn srf_look_ahead_frames(srf: &SrfConfig) -> usize {
    CONV_REACH_FRAMES + FRAMES_PER_SLICE * srf.capsule_shapes().map(|shape| shape.window_right).sum::<usize>()
}

/// Numbers in an SRF network; within `u64` for all sizes within their bounds.
pub fn srf_parameters(srf: &SrfConfig) -> ParameterCount {
    let total = srf_layers(srf).iter().map(|layer| layer.parameters).sum();
    // Mean and variance of each filter of the two batch norms.
    let statistics = 2 * 2 * srf.filters as u64;
    ParameterCount { total, trainable: total - statistics }
}

fn srf_layers(srf: &SrfConfig) -> Vec<LayerSummary> {
    let mut layers = front_end_layers(srf);
    for (index, caps) in srf.capsule_shapes().enumerate() {
        let pairs = (caps.n_inputs() * caps.out_height) as u64;
        let numbers_a_pair = (caps.out_depth * caps.in_depth + caps.out_depth) as u64;
        let shape = [caps.out_height, caps.out_depth];
        layers.push(layer(format!("caps{}", index + 1), FRAMES_PER_SLICE, &shape, pairs * numbers_a_pair));
        layers.push(norm(format!("ln_caps{}", index + 1), FRAMES_PER_SLICE, &shape));
    }
    layers.push(layer("length", FRAMES_PER_SLICE, &[srf.classes], 0));
    layers.push(norm("ln_out", FRAMES_PER_SLICE, &[srf.classes]));
    layers
}

fn front_end_layers(srf: &SrfConfig) -> Vec<LayerSummary> {
    let [_, width1, width2] = srf.conv_widths();
    let (filters, height, depth) = (srf.filters, srf.primary_height, srf.primary_depth);
    // A batch norm has a scale, a shift, a mean and a variance for each filter.
    let batch_norm = 4 * filters as u64;
    let projection = (srf.flat_width() * height + height) as u64;
    vec![
        layer("input", 1, &[srf.features], 0),
        layer("conv1", 2, &[width1, filters], maxout_parameters(1, filters)),
        layer("bn1", 2, &[width1, filters], batch_norm),
        layer("conv2", 4, &[width2, filters], maxout_parameters(filters, filters)),
        layer("bn2", 4, &[width2, filters], batch_norm),
        layer("proj", FRAMES_PER_SLICE, &[height], projection),
        layer("encaps", FRAMES_PER_SLICE, &[height, depth], maxout_parameters(1, depth)),
        norm("ln_in", FRAMES_PER_SLICE, &[height, depth]),
    ]
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
