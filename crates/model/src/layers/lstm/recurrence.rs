//! The part of a recurrent layer that goes step by step: gates without h' R in, gates, cells and outputs out; and back.

use srf_kernels::{Buffer, DenseWeights, Element};

use crate::frames::Frames;

/// Utterances that one thread runs in one direction, the longest first.
pub(super) struct Lane<'a, E> {
    pub(super) is_backward: bool,
    pub(super) n_cells: usize,
    /// Where in a frame of the layer's output the cells go, and times what.
    pub(super) share: (usize, E),
    /// R, or on the way back R transposed.
    pub(super) weights: &'a DenseWeights<E>,
    pub(super) utterances: Vec<Utterance<'a, E>>,
}

/// What one utterance saves.
pub(super) struct Utterance<'a, E> {
    /// Its number in the batch.
    pub(super) index: usize,
    pub(super) n_frames: usize,
    pub(super) gates: &'a mut [E],
    /// With a zero frame where the direction starts.
    pub(super) cells: &'a mut [E],
    pub(super) outputs: &'a mut [E],
}

/// A row for each utterance that is still running.
pub(super) struct Scratch<E> {
    /// h, or on the way back its gradient from the step after.
    outputs: Buffer<E>,
    /// h' R, or on the way back the gradient of z.
    gates: Buffer<E>,
    /// On the way back: the gradient of h, and of c from the step after.
    grad_outputs: Buffer<E>,
    grad_cells: Buffer<E>,
}

impl<E: Element> Default for Scratch<E> {
    fn default() -> Self {
        let [outputs, gates, grad_outputs, grad_cells] = [const { Buffer::new() }; 4];
        Self { outputs, gates, grad_outputs, grad_cells }
    }
}

impl<E: Element> Scratch<E> {
    fn clear(&mut self, n_rows: usize, n_cells: usize) {
        self.gates.resize(n_rows * 4 * n_cells);
        self.gates.fill(E::ZERO);
        for buffer in [&mut self.outputs, &mut self.grad_outputs, &mut self.grad_cells] {
            buffer.resize(n_rows * n_cells);
            buffer.fill(E::ZERO);
        }
    }
}

impl<E: Element> Lane<'_, E> {
    fn n_steps(&self) -> usize {
        self.utterances.first().map_or(0, |utterance| utterance.n_frames)
    }

    /// Utterances that have a step number `step`: the first so many.
    fn n_running(&self, step: usize) -> usize {
        self.utterances.partition_point(|utterance| utterance.n_frames > step)
    }

    pub(super) fn forward(&mut self, scratch: &mut Scratch<E>) {
        let (n_cells, kernels) = (self.n_cells, E::kernels());
        scratch.clear(self.utterances.len(), n_cells);
        for step in 0..self.n_steps() {
            let n = self.n_running(step);
            let Scratch { outputs, gates: recurrent, .. } = scratch;
            if step > 0 {
                (kernels.dense_forward)(self.weights, &outputs[..n * n_cells], &mut recurrent[..n * 4 * n_cells]);
            }
            let rows = outputs.chunks_exact_mut(n_cells).zip(recurrent.chunks_exact(4 * n_cells));
            for (utterance, (output, recurrent)) in self.utterances[..n].iter_mut().zip(rows) {
                let t = utterance.frame(self.is_backward, step);
                let (before, cells) = cells_at(utterance.cells, self.is_backward, t, n_cells);
                let gates = &mut utterance.gates[t * 4 * n_cells..][..4 * n_cells];
                (kernels.lstm_forward)(gates, recurrent, before, cells, output);
                utterance.outputs[t * n_cells..][..n_cells].copy_from_slice(output);
            }
        }
    }

    pub(super) fn backward(&mut self, grad_y: &Frames<E>, scratch: &mut Scratch<E>) {
        let (n_cells, kernels, (at, factor)) = (self.n_cells, E::kernels(), self.share);
        scratch.clear(self.utterances.len(), n_cells);
        for step in (0..self.n_steps()).rev() {
            let n = self.n_running(step);
            let Scratch { outputs: from_after, gates: grad_gates, grad_outputs, grad_cells } = scratch;
            let rows = grad_outputs.chunks_exact_mut(n_cells).zip(grad_cells.chunks_exact_mut(n_cells));
            let rows = rows.zip(from_after.chunks_exact(n_cells)).zip(grad_gates.chunks_exact_mut(4 * n_cells));
            for (utterance, (((grad, grad_cells), from_after), grad_gates)) in self.utterances[..n].iter_mut().zip(rows)
            {
                let t = utterance.frame(self.is_backward, step);
                let grad_y = &grad_y.real(utterance.index)[t * grad_y.width() + at..][..n_cells];
                for ((grad, &after), &grad_y) in grad.iter_mut().zip(from_after).zip(grad_y) {
                    *grad = after + grad_y * factor;
                }
                let (before, cells) = cells_at(utterance.cells, self.is_backward, t, n_cells);
                let gates = &mut utterance.gates[t * 4 * n_cells..][..4 * n_cells];
                (kernels.lstm_backward)(gates, before, cells, grad, grad_cells);
                grad_gates.copy_from_slice(gates);
            }
            if step > 0 {
                (kernels.dense_forward)(self.weights, &grad_gates[..n * 4 * n_cells], &mut from_after[..n * n_cells]);
            }
        }
    }
}

impl<E> Utterance<'_, E> {
    /// The frame that step number `step` is at.
    fn frame(&self, is_backward: bool, step: usize) -> usize {
        if is_backward { self.n_frames - 1 - step } else { step }
    }
}

/// The cells of the step before frame `t`, and those of the frame; `cells` begins or ends with a zero frame.
fn cells_at<E>(cells: &mut [E], is_backward: bool, t: usize, n_cells: usize) -> (&[E], &mut [E]) {
    let (first, second) = cells[t * n_cells..][..2 * n_cells].split_at_mut(n_cells);
    if is_backward { (second, first) } else { (first, second) }
}
