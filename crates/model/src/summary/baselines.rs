//! What the networks that the paper compares with amount to.

use super::{
    FRAMES_PER_SLICE, LayerSummary, ParameterCount, SLICER_REACH_FRAMES, count, layer, norm, slicer_layers,
    slicer_products,
};
use crate::config::{CnnConfig, Directions, LstmConfig, TransformerConfig};

/// Taps of a convolution of 5 slices by 3 frequencies, and slices to either side that it reads.
const TAPS: usize = 5 * 3;
const REACH: usize = 2;

/// Numbers in a recurrent network.
pub fn lstm_parameters(lstm: &LstmConfig) -> ParameterCount {
    count(&lstm_layers(lstm), if lstm.front_end { lstm.filters } else { 0 })
}

/// Numbers in a convolutional network.
pub fn cnn_parameters(cnn: &CnnConfig) -> ParameterCount {
    count(&cnn_layers(cnn), if cnn.front_end { cnn.filters } else { 0 })
}

/// Numbers in a network of self-attention.
pub fn transformer_parameters(transformer: &TransformerConfig) -> ParameterCount {
    count(&transformer_layers(transformer), transformer.filters)
}

/// A recurrent layer has heard everything before, and in both directions everything.
pub(super) fn lstm_reach(lstm: &LstmConfig) -> [Option<usize>; 2] {
    let ahead = if lstm.front_end { SLICER_REACH_FRAMES } else { 0 };
    [None, (lstm.directions == Directions::Forward).then_some(ahead)]
}

pub(super) fn cnn_reach(cnn: &CnnConfig) -> [Option<usize>; 2] {
    let (first, step) = if cnn.front_end { (SLICER_REACH_FRAMES, FRAMES_PER_SLICE) } else { (0, 1) };
    [Some(first + step * REACH * cnn.layers); 2]
}

/// The input, and the strided convolutions if there are any; with the frames of a slice behind them.
fn first_layers(features: usize, filters: Option<usize>) -> (Vec<LayerSummary>, usize) {
    let mut layers = vec![layer("input", 1, &[features], 0)];
    let Some(filters) = filters else { return (layers, 1) };
    layers.extend(slicer_layers(features, filters));
    (layers, FRAMES_PER_SLICE)
}

pub(super) fn lstm_layers(lstm: &LstmConfig) -> Vec<LayerSummary> {
    let (mut layers, divisor) = first_layers(lstm.features, lstm.front_end.then_some(lstm.filters));
    let (cells, width) = (lstm.cells, lstm.hidden_width());
    let n_directions = if lstm.directions == Directions::Both { 2 } else { 1 };
    for index in 0..lstm.layers {
        let cell = 4 * cells * (lstm.layer_width(index) + cells + 1);
        layers.push(layer(format!("lstm{}", index + 1), divisor, &[width], (n_directions * cell) as u64));
        layers.push(norm(format!("ln{}", index + 1), divisor, &[width]));
    }
    layers.push(layer("proj", divisor, &[lstm.classes], (width * lstm.classes) as u64));
    layers.push(norm("ln_out", divisor, &[lstm.classes]));
    layers
}

pub(super) fn cnn_layers(cnn: &CnnConfig) -> Vec<LayerSummary> {
    let (mut layers, divisor) = first_layers(cnn.features, cnn.front_end.then_some(cnn.filters));
    for (index, shape) in cnn.conv_shapes().enumerate() {
        let kernel = (TAPS * shape.n_in * 2 * shape.n_out) as u64;
        let output = [shape.n_freq_out(), shape.n_out];
        layers.push(layer(format!("conv_block{}", index + 1), divisor, &output, kernel));
        // One norm for all frequencies.
        layers.push(layer(format!("ln_conv{}", index + 1), divisor, &output, 2 * shape.n_out as u64));
    }
    for (index, [n_in, n_out]) in cnn.dense_shapes().enumerate() {
        let is_last = index == cnn.dense_layers;
        let name = if is_last { "fc_out".to_owned() } else { format!("fc{}", index + 1) };
        layers.push(layer(name.clone(), divisor, &[n_out], 2 * (n_in * n_out) as u64));
        layers.push(norm(if is_last { "ln_out".to_owned() } else { format!("ln_{name}") }, divisor, &[n_out]));
    }
    layers
}

pub(super) fn transformer_layers(transformer: &TransformerConfig) -> Vec<LayerSummary> {
    let (mut layers, divisor) = first_layers(transformer.features, Some(transformer.filters));
    let (d, inner, classes) = (transformer.width, transformer.inner, transformer.classes);
    layers.push(layer("proj", divisor, &[d], (transformer.flat_width() * d + d) as u64));
    // Four projections of which the last has a bias, two norms, two dense layers with biases.
    let block = 4 * d * d + d + 4 * d + d * inner + inner + inner * d + d;
    layers.extend((1..=transformer.layers).map(|number| layer(format!("block{number}"), divisor, &[d], block as u64)));
    layers.push(norm("ln_out", divisor, &[d]));
    layers.push(layer("out", divisor, &[classes], (d * classes + classes) as u64));
    layers
}

impl LstmConfig {
    /// Floating-point operations of the products that one slice needs at the least, on the way forward.
    pub fn flops_per_slice(&self) -> u64 {
        let slicer = if self.front_end { slicer_products(self.features, self.filters) } else { 0 };
        let n_directions = if self.directions == Directions::Both { 2 } else { 1 };
        let of_layer = |index| 4 * self.cells * (self.layer_width(index) + self.cells) * n_directions;
        let recurrent: usize = (0..self.layers).map(of_layer).sum();
        2 * (slicer + recurrent + self.hidden_width() * self.classes) as u64
    }
}

impl CnnConfig {
    /// Floating-point operations of the products that one slice needs at the least, on the way forward.
    pub fn flops_per_slice(&self) -> u64 {
        let slicer = if self.front_end { slicer_products(self.features, self.filters) } else { 0 };
        let convs: usize = self.conv_shapes().map(|s| s.n_freq * TAPS * s.n_in * 2 * s.n_out).sum();
        let dense: usize = self.dense_shapes().map(|[n_in, n_out]| n_in * 2 * n_out).sum();
        2 * (slicer + convs + dense) as u64
    }
}

impl TransformerConfig {
    /// Floating-point operations of the products that one of `n_slices` slices needs at the least, on the way forward.
    pub fn flops_per_slice(&self, n_slices: usize) -> u64 {
        let slicer = slicer_products(self.features, self.filters);
        let block = self.width * (4 * self.width + 2 * n_slices + 2 * self.inner);
        let dense = self.width * (self.flat_width() + self.classes);
        2 * (slicer + self.layers * block + dense) as u64
    }
}
