//! Recurrent networks as a chain of layers: feature frames in, logits out; gradients back.
//!
//! The strided convolutions if wanted, recurrent layers each with a layer norm and dropout, a dense layer to the
//! classes without bias, and a layer norm on them, whose results are the logits.
//!
//! # Shapes
//! - in: frames of `[features]` with [`LstmNet::margin`], out: slices of `[classes]`, one for each frame, or
//!   ceil(n / 4) for n frames behind the convolutions

use srf_kernels::Element;

use crate::config::{Directions, LstmConfig};
use crate::frames::Frames;
use crate::layers::{CellGradient, CellParams, Dense, Dropout, LayerNorm, Lstm, copy};
use crate::loss::{BatchLoss, Labels};
use crate::network::Mode;
use crate::params::{CellSlots, Layout, LstmParams, Slot};
use crate::slicer::Slicer;
use crate::summary::FRAMES_PER_SLICE;

/// Added to the variance in every layer norm of the network.
pub(crate) const EPSILON: f64 = 1e-6;
/// Dropout numbers below this one belong to what comes before the recurrent layers.
const FIRST_DROPOUT: u32 = 16;
/// Of the dropout on the input.
const INPUT_DROPOUT: u32 = 3;

/// The layers, their activations and their gradients, in memory that is sized by the largest batch and reused.
pub struct LstmNet<E> {
    slots: LstmParams,
    slicer: Option<Slicer<E>>,
    input_dropout: Dropout,
    /// The frames after dropout, where there are no convolutions whose output could be dropped from in place.
    dropped: Frames<E>,
    layers: Vec<Layer<E>>,
    proj: Dense<E>,
    ln_out: LayerNorm<E>,
    projected: Frames<E>,
    logits: Frames<E>,
    loss: BatchLoss<E>,
    /// Gradients at the input of each recurrent layer, and at the output of the last.
    gradients: Vec<Frames<E>>,
}

/// A recurrent layer with its layer norm and dropout.
struct Layer<E> {
    lstm: Lstm<E>,
    norm: LayerNorm<E>,
    dropout: Dropout,
    outputs: Frames<E>,
    normed: Frames<E>,
}

impl<E: Element> LstmNet<E> {
    /// The network that `config`, which has been checked, describes, and where its parameters live.
    pub fn new(config: &LstmConfig) -> (Self, Layout) {
        let (slots, layout) = LstmParams::new(config);
        let (width, classes) = (config.hidden_width(), config.classes);
        let layers: Vec<Layer<E>> = (0..config.layers).map(|index| Layer::new(config, index)).collect();
        let mut gradients: Vec<Frames<E>> =
            (0..config.layers).map(|index| Frames::new(config.layer_width(index), [0, 0])).collect();
        gradients.push(Frames::new(width, [0, 0]));
        let slicer = || Slicer::new(config.features, config.filters, config.dropout.conv, [0, 0]);
        let net = Self {
            slots,
            slicer: config.front_end.then(slicer),
            input_dropout: Dropout::new(config.dropout.input, INPUT_DROPOUT),
            dropped: Frames::new(config.features, [0, 0]),
            layers,
            proj: Dense::new(width, classes),
            ln_out: LayerNorm::new(classes, EPSILON),
            projected: Frames::new(classes, [0, 0]),
            logits: Frames::new(classes, [0, 0]),
            loss: BatchLoss::new(classes),
            gradients,
        };
        (net, layout)
    }

    /// Zero frames that the input needs before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        if self.slicer.is_some() { Slicer::<E>::MARGIN } else { [0, 0] }
    }

    /// Feature frames that become one slice of logits.
    pub fn frames_per_slice(&self) -> usize {
        if self.slicer.is_some() { FRAMES_PER_SLICE } else { 1 }
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        if let (Some(slicer), Some(slots)) = (&mut self.slicer, &self.slots.slicer) {
            slicer.forward(slots, values, mode, x);
            self.input_dropout.apply(mode.draw, slicer.output_mut());
        } else if mode.draw.is_some() {
            copy(x, &mut self.dropped);
            self.input_dropout.apply(mode.draw, &mut self.dropped);
        }
        let mut input = input(self.slicer.as_ref(), &self.dropped, mode, x);
        for (index, layer) in self.layers.iter_mut().enumerate() {
            input = layer.forward(&self.slots, index, values, mode, input);
        }
        self.proj.forward(self.slots.proj.of(values), None, input, &mut self.projected);
        self.ln_out.forward(self.slots.ln_out.params(values), &self.projected, &mut self.logits);
        &self.logits
    }

    /// The loss of the last forward pass, and its gradient for [`LstmNet::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        self.loss.measure(&self.logits, labels);
        &self.loss
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        let Self { slots, layers, gradients, .. } = self;
        let grad = self.loss.gradient_mut();
        self.ln_out.backward(slots.ln_out.params(values), &self.projected, grad, slots.ln_out.gradient(gradient));
        let n_layers = layers.len();
        let (kernel, of_kernel) = (slots.proj.of(values), slots.proj.of_mut(gradient));
        self.proj.backward(kernel, &layers[n_layers - 1].normed, grad, of_kernel, None, &mut gradients[n_layers]);
        let first = input(self.slicer.as_ref(), &self.dropped, mode, x);
        for index in (0..n_layers).rev() {
            let (below, layer) = layers.split_at_mut(index);
            let input = below.last().map_or(first, |below| &below.normed);
            let (grads_below, grads) = gradients.split_at_mut(index + 1);
            // Nothing below the first layer learns unless there are convolutions.
            let grad_x = (index > 0 || self.slicer.is_some()).then_some(&mut grads_below[index]);
            layer[0].backward(slots, index, values, mode, input, &mut grads[0], grad_x, gradient);
        }
        if let (Some(slicer), Some(slots)) = (&mut self.slicer, &slots.slicer) {
            self.input_dropout.apply(mode.draw, &mut gradients[0]);
            slicer.backward(slots, values, mode, x, &mut gradients[0], gradient);
        }
    }
}

/// What the first recurrent layer reads.
fn input<'a, E: Element>(
    slicer: Option<&'a Slicer<E>>,
    dropped: &'a Frames<E>,
    mode: Mode<'_>,
    x: &'a Frames<E>,
) -> &'a Frames<E> {
    match slicer {
        Some(slicer) => slicer.output(),
        None if mode.draw.is_some() => dropped,
        None => x,
    }
}

impl<E: Element> Layer<E> {
    fn new(config: &LstmConfig, index: usize) -> Self {
        let width = config.hidden_width();
        let n_directions = if config.directions == Directions::Both { 2 } else { 1 };
        Self {
            lstm: Lstm::new(config.layer_width(index), config.cells, n_directions, config.merge),
            norm: LayerNorm::new(width, EPSILON),
            dropout: Dropout::new(config.dropout.between, FIRST_DROPOUT + index as u32),
            outputs: Frames::new(width, [0, 0]),
            normed: Frames::new(width, [0, 0]),
        }
    }

    fn forward(&mut self, slots: &LstmParams, index: usize, values: &[E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        self.lstm.forward(&params(&slots.layers[index], values), x, &mut self.outputs);
        self.norm.forward(slots.norms[index].params(values), &self.outputs, &mut self.normed);
        self.dropout.apply(mode.draw, &mut self.normed);
        &self.normed
    }

    /// Uses up `grad_y`.
    fn backward(
        &mut self,
        slots: &LstmParams,
        index: usize,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad_y: &mut Frames<E>,
        grad_x: Option<&mut Frames<E>>,
        gradient: &mut [E],
    ) {
        self.dropout.apply(mode.draw, grad_y);
        let norm = slots.norms[index];
        self.norm.backward(norm.params(values), &self.outputs, grad_y, norm.gradient(gradient));
        let of_cells = cell_gradients(&slots.layers[index], gradient);
        self.lstm.backward(&params(&slots.layers[index], values), x, grad_y, of_cells, grad_x);
    }
}

fn params<'a, E>(cells: &[CellSlots], values: &'a [E]) -> Vec<CellParams<'a, E>> {
    let of_cell = |cell: &CellSlots| CellParams {
        kernel: cell.kernel.of(values),
        recurrent: cell.recurrent.of(values),
        bias: cell.bias.of(values),
    };
    cells.iter().map(of_cell).collect()
}

fn cell_gradients<'a, E>(cells: &[CellSlots], gradient: &'a mut [E]) -> Vec<CellGradient<'a, E>> {
    let of_cell = |cell: &CellSlots, gradient: &'a mut [E]| {
        let [kernel, recurrent, bias] = Slot::disjoint_mut([cell.kernel, cell.recurrent, cell.bias], gradient);
        CellGradient { kernel, recurrent, bias }
    };
    let mut rest = gradient;
    let mut offset = 0;
    let mut gradients = Vec::new();
    // Cells lie one after another in the layout: each is cut off before the next is looked for.
    for cell in cells {
        let end = cell.bias.range().end;
        let (part, after) = rest.split_at_mut(end - offset);
        let moved = |slot: Slot| Slot { offset: slot.offset - offset, ..slot };
        let here = CellSlots { kernel: moved(cell.kernel), recurrent: moved(cell.recurrent), bias: moved(cell.bias) };
        gradients.push(of_cell(&here, part));
        (rest, offset) = (after, end);
    }
    gradients
}
