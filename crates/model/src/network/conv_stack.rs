//! The convolution stack at the start of most networks: slices of four feature frames.
//!
//! Two convolutions with maxout that each halve time and frequency, each followed by a batch norm.

use srf_kernels::{Conv, ConvWeights, Element};

use super::Block;
use crate::frames::Frames;
use crate::layers::{Backward, BatchNorm, ConvMaxout, Dropout, Forward, Mode, Wanted};
use crate::params::Plan;

/// Numbers of the dropouts of the two convolutions.
const DROPOUTS: [u32; 2] = [0, 1];

/// The layers and their activations.
///
/// # Shapes
/// - in: frames of `[features]` with [`ConvStack::MARGIN`], out: ceil(n / 4) slices of `[frequency][filters]` for n
///   frames
pub struct ConvStack<E> {
    stages: [Stage<E>; 2],
    /// On the slices.
    dropout: Option<Dropout>,
    /// Off: never drops anything, and its batch norms always use the moving statistics.
    is_trained_with_statistics: bool,
    d_middle: Frames<E>,
}

struct Stage<E> {
    conv: ConvMaxout<E>,
    norm: BatchNorm<E>,
    convolved: Frames<E>,
    normed: Frames<E>,
}

impl<E: Element> ConvStack<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = [1, 1];

    /// Layers of `filters` that drop `rate` of each branch; `margin` is what the next layer needs around slices.
    pub fn new(plan: &mut Plan, features: usize, filters: usize, rate: f64, margin: [usize; 2]) -> Self {
        let first = halving(features, 1, filters);
        let second = halving(first.n_freq_out(), filters, filters);
        let convs = [(1, first, Self::MARGIN), (2, second, margin)];
        let stages = convs.map(|(number, conv, margin)| Stage::new(plan, number, conv, rate, margin));
        let d_middle = Frames::new(first.width_out(), [0, 0]);
        Self { stages, dropout: None, is_trained_with_statistics: true, d_middle }
    }

    /// Adds dropout on the slices.
    #[must_use]
    pub fn with_dropout(self, dropout: Dropout) -> Self {
        Self { dropout: Some(dropout), ..self }
    }

    /// Without dropout and statistics of the batch even in training, unless `is_trained_with_statistics`.
    #[must_use]
    pub fn with_statistics(self, is_trained_with_statistics: bool) -> Self {
        Self { is_trained_with_statistics, ..self }
    }

    /// Weights of both convolutions, and the scale and shift of their batch norms, packed for inference.
    pub fn packed(&mut self, params: &[E], statistics: &[E]) -> [(ConvWeights<E>, [Vec<E>; 2]); 2] {
        let packed = |stage: &mut Stage<E>| (stage.conv.packed(params), stage.norm.scale_and_shift(params, statistics));
        self.stages.each_mut().map(packed)
    }

    fn mode<'a>(&self, mode: Mode<'a>) -> Mode<'a> {
        if self.is_trained_with_statistics { mode } else { Mode::default() }
    }
}

/// A convolution that halves time and frequency; an even number of frequencies needs no padding before the first.
fn halving(n_freq: usize, n_channels: usize, n_filters: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [2, 2], n_freq, pad_freq: [n_freq % 2, 1], n_channels, n_filters }
}

impl<E: Element> Stage<E> {
    fn new(plan: &mut Plan, number: usize, conv: Conv, rate: f64, margin: [usize; 2]) -> Self {
        let shape = [conv.n_freq_out(), conv.n_filters];
        let pad_time = ConvStack::<E>::MARGIN;
        let dropout = (rate, DROPOUTS[number - 1]);
        Self {
            conv: ConvMaxout::new(plan.layer(format!("conv{number}"), &shape), conv, pad_time, dropout),
            norm: BatchNorm::new(plan.layer(format!("bn{number}"), &shape), conv.n_filters),
            convolved: Frames::new(conv.width_out(), [0, 0]),
            normed: Frames::new(conv.width_out(), margin),
        }
    }

    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.conv.forward(pass, x, &mut self.convolved);
        self.norm.forward(pass, &self.convolved, &mut self.normed);
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.norm.backward(pass, &self.convolved, d_y);
        self.conv.backward(pass, x, d_y, d_x);
    }
}

impl<E: Element> Block<E> for ConvStack<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        let mode = self.mode(pass.mode);
        let Forward { params, statistics, mode: _, workspace } = pass;
        let mut frozen = Forward { params, statistics, mode, workspace };
        let [first, second] = &mut self.stages;
        first.forward(&mut frozen, x);
        second.forward(&mut frozen, &first.normed);
        // In place: the backward pass does not need the slices as they were.
        self.dropout.iter().for_each(|dropout| dropout.apply(pass.mode, &mut second.normed));
    }

    fn output(&self) -> &Frames<E> {
        &self.stages[1].normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.dropout.iter().for_each(|dropout| dropout.apply(pass.mode, d_y));
        let mode = self.mode(pass.mode);
        let Backward { params, gradient, mode: _, workspace } = pass;
        let mut pass = Backward { params, gradient, mode, workspace };
        let [first, second] = &mut self.stages;
        second.backward(&mut pass, &first.normed, d_y, Some(&mut self.d_middle));
        first.backward(&mut pass, x, &mut self.d_middle, d_x);
    }

    fn activation(&self, layer: &str) -> Option<&Frames<E>> {
        let [first, second] = &self.stages;
        match layer {
            "conv1" => Some(&first.convolved),
            "bn1" => Some(&first.normed),
            "conv2" => Some(&second.convolved),
            "bn2" => Some(&second.normed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
