//! Convolution over time and frequency in two branches, dropout on each, and their maximum.
//!
//! out = max(drop(x * k_a + bias_a), drop(x * k_b + bias_b)), see [`srf_kernels::conv`].
//!
//! # Shapes
//! - in: frames of `[n_freq][n_channels]`, with the convolution's padding in time as margin
//! - out: frames of `[n_freq_out][n_filters]`, (n + padding - kernel) / stride + 1 of them for n

use rayon::prelude::*;
use srf_kernels::{Branch, Buffer, Conv, ConvWeights, Element};

use super::per_thread::PerThread;
use super::{Draw, sum_in_order};
use crate::frames::{Frames, split};

/// The gradients of one branch, which the backward pass adds to.
#[derive(Debug)]
pub struct BranchGradient<'a, E> {
    /// Of the kernel.
    pub kernel: &'a mut [E],
    /// Of the bias, if there is one.
    pub bias: Option<&'a mut [E]>,
}

/// Parts that the gradient of the weights is summed in, each over its share of the utterances: enough for many threads,
/// and few enough to keep in memory for kernels of millions of weights.
const MAX_PARTS: usize = 16;

/// Memory that only a backward pass needs.
#[derive(Default)]
pub struct ConvScratch<E> {
    spreads: PerThread<Vec<E>>,
    /// The parts of the gradient of the weights.
    gradients: Buffer<E>,
}

/// The layer; saves which branch each output came from.
pub struct ConvMaxout<E> {
    conv: Conv,
    /// Zero frames before and after an utterance.
    pad_time: [usize; 2],
    rate: f64,
    /// Tells its dropout from that of other layers.
    number: u32,
    weights: ConvWeights<E>,
    choices: Vec<u8>,
    scratch: ConvScratch<E>,
}

impl<E: Element> ConvMaxout<E> {
    /// A layer that drops `rate` of each branch in training; `number` tells its dropout from that of other layers.
    pub fn new(conv: Conv, pad_time: [usize; 2], rate: f64, number: u32) -> Self {
        Self {
            conv,
            pad_time,
            rate,
            number,
            weights: ConvWeights::new(conv),
            choices: Vec::new(),
            scratch: ConvScratch { spreads: PerThread::new(), gradients: Buffer::new() },
        }
    }

    /// The convolution.
    pub fn conv(&self) -> &Conv {
        &self.conv
    }

    /// Exchanges the memory that only a backward pass needs, so that layers can share it.
    pub fn swap_scratch(&mut self, scratch: &mut ConvScratch<E>) {
        std::mem::swap(&mut self.scratch, scratch);
    }

    /// Output frames for `n` input frames.
    pub fn n_frames_out(&self, n: usize) -> usize {
        let padded = self.pad_time[0] + n + self.pad_time[1];
        if n == 0 || padded < self.conv.kernel[0] {
            0
        } else {
            (padded - self.conv.kernel[0]) / self.conv.stride[0] + 1
        }
    }

    /// Computes `y` from `x`; `draw` is none in inference.
    #[track_caller]
    pub fn forward(&mut self, branches: [Branch<'_, E>; 2], draw: Option<Draw<'_>>, x: &Frames<E>, y: &mut Frames<E>) {
        let conv = self.conv;
        assert_eq!((x.width(), x.margin()), (conv.width_in(), self.pad_time), "conv: width and margin of the input");
        assert_eq!(y.width(), conv.width_out(), "conv: width of the output");
        self.weights.pack(branches);
        y.resize_for(x.lengths().iter().map(|&n| self.n_frames_out(n)));
        self.choices.resize(y.n_frames() * y.width(), 0);
        let sizes: Vec<usize> = y.lengths().iter().map(|n| n * y.width()).collect();
        let choices = split(&mut self.choices, sizes);
        let (weights, rate, number) = (&self.weights, self.rate, self.number);
        y.each_real_mut().into_par_iter().zip(choices).enumerate().for_each(|(utterance, (y, choices))| {
            let dropout = draw.and_then(|draw| draw.dropout(rate, number, utterance));
            (E::kernels().conv_forward)(weights, x.padded(utterance), dropout, y, choices);
        });
    }

    /// Adds to the gradients of the parameters and writes that of the input, if wanted, from that of the output.
    ///
    /// `draw` and `x` are those of the forward pass.
    #[track_caller]
    pub fn backward(
        &mut self,
        branches: [Branch<'_, E>; 2],
        draw: Option<Draw<'_>>,
        x: &Frames<E>,
        grad_y: &Frames<E>,
        gradients: [BranchGradient<'_, E>; 2],
        grad_x: Option<&mut Frames<E>>,
    ) {
        let n_gradient = self.conv.n_gradient();
        let n_parts = MAX_PARTS.min(x.n_utterances());
        self.scratch.gradients.resize(n_parts * n_gradient);
        self.scratch.spreads.prepare();
        let grads_x = grad_x.map(|grad_x| {
            self.weights.pack_backward(branches);
            grad_x.resize_for(x.lengths().iter().copied());
            grad_x.each_real_mut()
        });
        let grads_x: Vec<Option<&mut [E]>> = grads_x
            .map_or_else(|| x.lengths().iter().map(|_| None).collect(), |all| all.into_iter().map(Some).collect());
        let mut sums = std::mem::take(&mut self.scratch.gradients);
        let width = self.conv.width_out();
        let starts: Vec<usize> = starts(grad_y.lengths()).map(|frames| frames * width).collect();
        sums.par_chunks_mut(n_gradient).zip(dealt(grads_x, n_parts)).for_each(|(sums, utterances)| {
            sums.fill(E::ZERO);
            for (utterance, grad_x) in utterances {
                let choices = &self.choices[starts[utterance]..][..grad_y.lengths()[utterance] * width];
                self.backward_one(draw, utterance, x, choices, grad_y, sums, grad_x);
            }
        });
        self.scratch.gradients = sums;
        sum_in_order(&mut self.scratch.gradients, n_gradient);
        self.add_to(gradients);
    }

    /// The backward pass of one utterance; adds to `sums`.
    fn backward_one(
        &self,
        draw: Option<Draw<'_>>,
        utterance: usize,
        x: &Frames<E>,
        choices: &[u8],
        grad_y: &Frames<E>,
        sums: &mut [E],
        grad_x: Option<&mut [E]>,
    ) {
        let kernels = E::kernels();
        let n_frames = grad_y.lengths()[utterance];
        let dropout = draw.and_then(|draw| draw.dropout(self.rate, self.number, utterance));
        self.scratch.spreads.with(|spread| {
            spread.resize(self.conv.n_spread(n_frames), E::ZERO);
            (kernels.conv_spread)(&self.conv, dropout, grad_y.real(utterance), choices, spread);
            (kernels.conv_weight_gradient)(&self.conv, x.padded(utterance), spread, n_frames, sums);
            if let Some(grad_x) = grad_x {
                (kernels.conv_input_gradient)(&self.weights, spread, n_frames, self.pad_time[0], grad_x);
            }
        });
    }

    /// Adds the sums over all utterances, `[branch][tap, then bias][lane]`.
    fn add_to(&self, gradients: [BranchGradient<'_, E>; 2]) {
        let n_filters = self.conv.n_filters;
        let n_lanes = n_filters.next_multiple_of(srf_kernels::BLOCK);
        let of_branch = self.conv.n_gradient() / 2;
        for (index, BranchGradient { kernel, bias }) in gradients.into_iter().enumerate() {
            let Some(sums) = self.scratch.gradients.get(index * of_branch..(index + 1) * of_branch) else { return };
            let slots = kernel.chunks_exact_mut(n_filters).chain(bias);
            for (slots, sums) in slots.zip(sums.chunks_exact(n_lanes)) {
                (E::kernels().accumulate)(&sums[..n_filters], slots);
            }
        }
    }
}

/// Deals items out to `n` hands in turn, each with its number.
fn dealt<T>(items: Vec<T>, n: usize) -> Vec<Vec<(usize, T)>> {
    let mut hands: Vec<Vec<(usize, T)>> = (0..n).map(|_| Vec::new()).collect();
    for (number, item) in items.into_iter().enumerate() {
        hands[number % n].push((number, item));
    }
    hands
}

/// The frame at which each utterance starts.
fn starts(lengths: &[usize]) -> impl Iterator<Item = usize> {
    lengths.iter().scan(0, |end, &n| {
        let start = *end;
        *end += n;
        Some(start)
    })
}
