//! Convolution over time and frequency in two branches with dropout and maximum, and pooling over frequencies.

use rayon::prelude::*;
use srf_kernels::{Branch, Buffer, Conv, ConvWeights, Element};

use super::{Backward, Forward, Mode, PerThread, Wanted, sum_in_order};
use crate::frames::{Frames, Span, split};
use crate::params::{Init, Scope, Slot};

/// Parts that the gradient of the weights is summed in, each over its share of the blocks of time: enough for many
/// threads, and few enough to keep in memory for kernels of millions of weights. Fixed, so that threads do not matter.
const MAX_PARTS: usize = 32;
const MAX_PART_VALUES: usize = 1 << 23;

/// Frames of the output that one task computes.
const FRAMES: usize = 64;

/// Memory that only a backward pass needs, shared by all convolutions of a network.
#[derive(Default)]
pub(crate) struct ConvScratch<E> {
    spreads: PerThread<Vec<E>>,
    /// The parts of the gradient of the weights.
    gradients: Buffer<E>,
}

/// Where the weights of both branches live.
enum Kernels<E> {
    /// Tensors `a.kernel`, `a.bias`, `b.kernel` and `b.bias`: kernel and bias of each branch.
    Branches([[Slot; 2]; 2]),
    /// The tensor `kernel`, whose last axis holds the first branch, then the second; no bias.
    Halves { kernel: Slot, halves: [Buffer<E>; 2] },
}

/// out = max(drop(x * k_a + bias_a), drop(x * k_b + bias_b)), see [`srf_kernels::conv`].
///
/// # Shapes
/// - in: frames of `[n_freq][n_channels]`, with the convolution's padding in time as margin
/// - out: frames of `[n_freq_out][n_filters]`, (n + padding - kernel) / stride + 1 of them for n
///
/// Saves which branch each output came from.
pub struct ConvMaxout<E> {
    conv: Conv,
    /// Zero frames before and after an utterance.
    pad_time: [usize; 2],
    rate: f64,
    /// Distinguishes its dropout from that of other layers.
    number: u32,
    kernels: Kernels<E>,
    weights: Option<ConvWeights<E>>,
    choices: Vec<u8>,
}

impl<E: Element> ConvMaxout<E> {
    /// A layer whose branches have kernels and biases of their own.
    ///
    /// In training it drops `rate` of each branch; `number` distinguishes its dropout from that of other layers.
    pub fn new(mut scope: Scope<'_>, conv: Conv, pad_time: [usize; 2], (rate, number): (f64, u32)) -> Self {
        // Each branch is a layer of its own: a fan-out counts the filters of one branch.
        let kernels = Kernels::Branches(["a", "b"].map(|branch| {
            let mut scope = scope.part(branch);
            let shape = [conv.kernel[0], conv.kernel[1], conv.n_channels, conv.n_filters];
            [scope.kernel("kernel", &shape), scope.trainable("bias", &[conv.n_filters], Init::Zeros)]
        }));
        Self::with_kernels(scope, conv, pad_time, (rate, number), kernels)
    }

    /// A layer whose branches are the halves of one kernel, without bias; dropout as in [`ConvMaxout::new`].
    pub fn halves(mut scope: Scope<'_>, conv: Conv, pad_time: [usize; 2], dropout: (f64, u32)) -> Self {
        let shape = [conv.kernel[0], conv.kernel[1], conv.n_channels, 2 * conv.n_filters];
        let kernel = scope.kernel("kernel", &shape);
        let kernels = Kernels::Halves { kernel, halves: [Buffer::new(), Buffer::new()] };
        Self::with_kernels(scope, conv, pad_time, dropout, kernels)
    }

    fn with_kernels(
        mut scope: Scope<'_>,
        conv: Conv,
        pad_time: [usize; 2],
        (rate, number): (f64, u32),
        kernels: Kernels<E>,
    ) -> Self {
        scope.reads([Some(pad_time[0]), Some(conv.kernel[0] - 1 - pad_time[0])]);
        scope.strides(conv.stride[0]);
        scope.add_products(2 * conv.width_out() * conv.kernel[0] * conv.kernel[1] * conv.n_channels);
        Self { conv, pad_time, rate, number, kernels, weights: None, choices: Vec::new() }
    }

    /// The weights, packed for inference.
    pub fn packed(&mut self, params: &[E]) -> ConvWeights<E> {
        let mut weights = ConvWeights::new(self.conv);
        self.kernels.split(self.conv, params);
        weights.pack(self.kernels.branches(params));
        weights
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

    fn dropout(&self, mode: Mode<'_>, span: Span) -> Option<srf_kernels::Dropout> {
        let dropout = mode.dropout?.dropout(self.rate, self.number, span.utterance)?;
        Some(dropout.starting_at(span.first * self.conv.width_out()))
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, pass: &Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        let conv = self.conv;
        assert_eq!((x.width(), x.margin()), (conv.width_in(), self.pad_time), "conv: width and margin of the input");
        assert_eq!(y.width(), conv.width_out(), "conv: width of the output");
        self.kernels.split(conv, pass.params);
        self.weights.get_or_insert_with(|| ConvWeights::new(conv)).pack(self.kernels.branches(pass.params));
        y.resize_for(x.lengths().iter().map(|&n| self.n_frames_out(n)));
        let mut choices = std::mem::take(&mut self.choices);
        choices.resize(y.n_frames() * y.width(), 0);
        let (layer, weights) = (&*self, self.weights());
        let blocks = y.blocks_mut(FRAMES);
        let parts = split(&mut choices, blocks.iter().map(|(_, y)| y.len()));
        blocks.into_par_iter().zip(parts).for_each(|((span, y), choices)| {
            let first = span.first * conv.stride[0] * conv.width_in();
            let x = &x.padded(span.utterance)[first..];
            (E::kernels().conv_forward)(weights, x, layer.dropout(pass.mode, span), y, choices);
        });
        self.choices = choices;
    }

    fn weights(&self) -> &ConvWeights<E> {
        self.weights.as_ref().expect("packed by the forward pass")
    }

    /// Adds to the gradients of the parameters and writes that of the input, if wanted, from that of the output.
    ///
    /// `x` is that of the forward pass.
    #[track_caller]
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &Frames<E>, d_x: Wanted<'_, E>) {
        let n_gradient = self.conv.n_gradient();
        let d_x = d_x.map(|d_x| {
            let weights = self.weights.as_mut().expect("packed by the forward pass");
            weights.pack_backward(self.kernels.branches(pass.params));
            d_x.resize_like(x);
            d_x.blocks_mut(FRAMES * self.conv.stride[0])
        });
        let blocks = self.backward_blocks(d_y, d_x);
        let n_parts = (MAX_PART_VALUES / n_gradient).clamp(1, MAX_PARTS).min(blocks.len());
        let ConvScratch { spreads, gradients } = &mut pass.workspace.conv;
        gradients.resize(n_parts * n_gradient);
        spreads.prepare();
        let (layer, spreads) = (&*self, &*spreads);
        gradients.par_chunks_mut(n_gradient).zip(partition(blocks, n_parts)).for_each(|(sums, blocks)| {
            sums.fill(E::ZERO);
            blocks.into_iter().for_each(|block| {
                spreads.with(|spread| layer.backward_block(pass.mode, x, d_y, block, spread, sums));
            });
        });
        sum_in_order(gradients, n_gradient);
        self.kernels.add_gradient(self.conv, gradients.get(..n_gradient), pass.gradient);
    }

    /// Blocks of the output with the choices of all outputs, and the frames of the input that are theirs.
    fn backward_blocks<'a>(
        &'a self,
        d_y: &Frames<E>,
        d_x: Option<Vec<(Span, &'a mut [E])>>,
    ) -> Vec<BackwardBlock<'a, E>> {
        let mut d_x = d_x.map(Vec::into_iter);
        let mut blocks = Vec::new();
        for (span, choices) in d_y.spans(FRAMES).into_iter().zip(choices_of(&self.choices, d_y)) {
            let d_x = d_x.as_mut().and_then(Iterator::next).map(|(_, d_x)| d_x);
            blocks.push(BackwardBlock { span, choices, d_x });
        }
        blocks
    }

    /// The backward pass of one block of time; adds to `sums`.
    ///
    /// The gradient of an input frame may come from outputs of the neighbouring blocks too, so those are spread along.
    fn backward_block(
        &self,
        mode: Mode<'_>,
        x: &Frames<E>,
        d_y: &Frames<E>,
        BackwardBlock { span, choices, d_x }: BackwardBlock<'_, E>,
        spread: &mut Vec<E>,
        sums: &mut [E],
    ) {
        let (conv, kernels, n_frames) = (&self.conv, E::kernels(), d_y.lengths()[span.utterance]);
        let [before, after] = if d_x.is_some() { self.neighbours() } else { [0, 0] };
        let (first, end) = (span.first.saturating_sub(before), (span.first + span.n + after).min(n_frames));
        let all = Span { first, n: end - first, ..span };
        let width = conv.width_out();
        spread.resize(conv.n_spread(all.n), E::ZERO);
        let choices = &choices[first * width..end * width];
        (kernels.conv_spread)(conv, self.dropout(mode, all), d_y.part(all), choices, spread);
        let row = conv.n_spread(1) - conv.n_spread(0);
        let of_block = &spread[(span.first - first) * row..][..conv.n_spread(span.n)];
        let inputs = &x.padded(span.utterance)[span.first * conv.stride[0] * conv.width_in()..];
        (kernels.conv_weight_gradient)(conv, inputs, of_block, span.n, sums);
        if let Some(d_x) = d_x {
            let first_frame = self.pad_time[0] + (span.first - first) * conv.stride[0];
            (kernels.conv_input_gradient)(self.weights(), spread, all.n, first_frame, d_x);
        }
    }

    /// Outputs before and after a block that read input frames of the block.
    fn neighbours(&self) -> [usize; 2] {
        let ([kernel, _], [stride, _], before) = (self.conv.kernel, self.conv.stride, self.pad_time[0]);
        [(kernel - 1 - before) / stride, before.div_ceil(stride)]
    }
}

/// A block of time in the backward pass.
struct BackwardBlock<'a, E> {
    span: Span,
    /// Of the whole utterance.
    choices: &'a [u8],
    /// The gradient of the input frames that the block owns, if wanted.
    d_x: Option<&'a mut [E]>,
}

impl<E: Element> Kernels<E> {
    /// Copies the halves of a kernel apart, so that both branches can be lent.
    fn split(&mut self, conv: Conv, params: &[E]) {
        let Self::Halves { kernel, halves } = self else { return };
        let (n, kernel) = (conv.n_filters, kernel.of(params));
        for (index, half) in halves.iter_mut().enumerate() {
            half.resize(kernel.len() / 2);
            for (half, row) in half.chunks_exact_mut(n).zip(kernel.chunks_exact(2 * n)) {
                half.copy_from_slice(&row[index * n..][..n]);
            }
        }
    }

    fn branches<'a>(&'a self, params: &'a [E]) -> [Branch<'a, E>; 2] {
        match self {
            Self::Branches(slots) => {
                slots.map(|[kernel, bias]| Branch { kernel: kernel.of(params), bias: Some(bias.of(params)) })
            }
            Self::Halves { halves, .. } => halves.each_ref().map(|half| Branch { kernel: half, bias: None }),
        }
    }

    /// Adds the sums over all utterances, `[branch][tap, then bias][lane]`, if there are any.
    fn add_gradient(&self, conv: Conv, sums: Option<&[E]>, gradient: &mut [E]) {
        let (Some(sums), n_filters) = (sums, conv.n_filters) else { return };
        let n_lanes = n_filters.next_multiple_of(srf_kernels::BLOCK);
        for (index, sums) in sums.chunks_exact(conv.n_gradient() / 2).enumerate() {
            let sums = sums.chunks_exact(n_lanes).map(|sums| &sums[..n_filters]);
            match self {
                Self::Branches(slots) => {
                    let [kernel, bias] = Slot::disjoint_mut(slots[index], gradient);
                    let rows = kernel.chunks_exact_mut(n_filters).chain([bias]);
                    rows.zip(sums).for_each(|(row, sums)| (E::kernels().accumulate)(sums, row));
                }
                Self::Halves { kernel, .. } => {
                    let rows = kernel.of_mut(gradient).chunks_exact_mut(2 * n_filters);
                    let halves = rows.map(|row| &mut row[index * n_filters..][..n_filters]);
                    halves.zip(sums).for_each(|(row, sums)| (E::kernels().accumulate)(sums, row));
                }
            }
        }
    }
}

/// The choices of the utterance of every block.
fn choices_of<'a, E: Element>(choices: &'a [u8], y: &Frames<E>) -> Vec<&'a [u8]> {
    let mut rest = choices;
    let mut of_blocks = Vec::new();
    for &n in y.lengths() {
        let (part, after) = rest.split_at(n * y.width());
        of_blocks.extend(std::iter::repeat_n(part, n.div_ceil(FRAMES)));
        rest = after;
    }
    of_blocks
}

/// Cuts a list into `n` runs of nearly equal length.
fn partition<T>(items: Vec<T>, n: usize) -> Vec<Vec<T>> {
    let (n_items, mut items) = (items.len(), items.into_iter());
    (0..n).map(|part| items.by_ref().take((part + 1) * n_items / n - part * n_items / n).collect()).collect()
}

/// The maximum over neighbouring frequencies: `y[f][c] = max over i < size of x[size f + i][c]`.
///
/// # Shapes
/// - in: frames of `[n_freq][n_channels]`, out: frames of `[n_freq / size][n_channels]`; frequencies that do not fill a
///   group are left out
///
/// Saves which frequency of its group each output came from.
pub struct MaxPool {
    n_channels: usize,
    size: usize,
    choices: Vec<u8>,
}

impl MaxPool {
    /// Groups of `size` frequencies, at most 255.
    pub fn new(n_channels: usize, size: usize) -> Self {
        assert!((1..=255).contains(&size), "max pool: groups of {size}");
        Self { n_channels, size, choices: Vec::new() }
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward<E: Element>(&mut self, x: &Frames<E>, y: &mut Frames<E>) {
        let (n_channels, size) = (self.n_channels, self.size);
        let n_groups = x.width() / n_channels / size;
        assert_eq!(y.width(), n_groups * n_channels, "max pool: width of the output");
        y.resize_like(x);
        self.choices.resize(y.n_frames() * y.width(), 0);
        let blocks = y.blocks_mut(y.n_block());
        let choices = split(&mut self.choices, blocks.iter().map(|(_, y)| y.len()));
        blocks.into_par_iter().zip(choices).for_each(|((span, y), choices)| {
            let frames = x.part(span).chunks_exact(x.width());
            let groups = frames.flat_map(|frame| frame.chunks_exact(size * n_channels).take(n_groups));
            let outputs = y.chunks_exact_mut(n_channels).zip(choices.chunks_exact_mut(n_channels));
            for (group, (y, choices)) in groups.zip(outputs) {
                y.copy_from_slice(&group[..n_channels]);
                choices.fill(0);
                for (i, x) in group.chunks_exact(n_channels).enumerate().skip(1) {
                    for c in 0..n_channels {
                        let is_larger = x[c] > y[c];
                        y[c] = if is_larger { x[c] } else { y[c] };
                        choices[c] = if is_larger { i as u8 } else { choices[c] };
                    }
                }
            }
        });
    }

    /// Writes the gradient of the input, whose shape `d_x` has, from that of the output.
    pub fn backward<E: Element>(&mut self, d_y: &Frames<E>, d_x: &mut Frames<E>) {
        let (n_channels, size) = (self.n_channels, self.size);
        d_x.resize_like(d_y);
        let (width_x, width_y) = (d_x.width(), d_y.width());
        let blocks = d_x.blocks_mut(d_x.n_block());
        let choices = split(&mut self.choices, blocks.iter().map(|(span, _)| span.n * width_y));
        blocks.into_par_iter().zip(choices).for_each(|((span, d_x), choices)| {
            d_x.fill(E::ZERO);
            let frames = d_x.chunks_exact_mut(width_x);
            let groups = frames.flat_map(|frame| frame.chunks_exact_mut(size * n_channels).take(width_y / n_channels));
            let outputs = d_y.part(span).chunks_exact(n_channels).zip(choices.chunks_exact(n_channels));
            for (group, (d_y, choices)) in groups.zip(outputs) {
                for (c, (&d_y, &choice)) in d_y.iter().zip(choices).enumerate() {
                    group[usize::from(choice) * n_channels + c] = d_y;
                }
            }
        });
    }
}
