//! A recurrent layer of LSTM cells, in one direction or both, with full backpropagation through time.
//!
//! In each direction, from the step before (') to the next, with the gates of [`srf_kernels`]:
//! z = x W + h' R + b; i, f, g, o from the quarters of z; c = f c' + i g; h = o tanh(c); c' and h' are 0 at the start.
//! The output is h, or of both directions [h_forward, h_backward] or (h_forward + h_backward) / 2.
//! The backward direction starts at each utterance's own last frame.
//!
//! x W + b is one product for all frames; h' R is one for all utterances that are still running, which are sorted by
//! length so that they are the first rows.
//! Directions, and groups of utterances as many as there are threads for, run in parallel.
//! A row's bits do not depend on how many others run along with it ([`DenseWeights`]).
//!
//! # Shapes
//! - in: frames of `n_in` without margin, out: frames of `n_cells`, or of twice as many
//! - W `[n_in][4 n_cells]`, R `[n_cells][4 n_cells]`, b `[4 n_cells]`

#[cfg(test)]
mod tests;

use rayon::prelude::*;
use srf_kernels::{Buffer, DenseWeights, Element, dense_bias_gradient, dense_kernel_gradient};

use super::dense::{FRAMES, ROWS};
use super::{Backward, Forward, Wanted, add};
use crate::config::Merge;
use crate::frames::{Frames, split};
use crate::params::{Init, Scope, Slot};

/// The tensors of one direction; the four gates i, f, g, o one after another.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// W, R and b.
    kernel: Slot,
    recurrent: Slot,
    bias: Slot,
}

/// The layer; saves gates, cells and outputs of every frame.
pub struct Lstm<E> {
    n_in: usize,
    n_cells: usize,
    merge: Merge,
    directions: Vec<Direction<E>>,
    /// Utterances by falling length.
    order: Vec<usize>,
    /// The second direction's part of the gradient of the input.
    d_part: Frames<E>,
}

/// One direction: its packed weights and what it saves.
struct Direction<E> {
    is_backward: bool,
    cell: Cell,
    input: Option<DenseWeights<E>>,
    recurrent: Option<DenseWeights<E>>,
    /// W and R transposed, for the backward pass.
    input_back: Option<DenseWeights<E>>,
    recurrent_back: Option<DenseWeights<E>>,
    transposed: Buffer<E>,
    /// z, then i, f, g, o, and in the backward pass the gradient of z.
    gates: Frames<E>,
    /// c, with a zero frame where the direction starts.
    cells: Frames<E>,
    /// h, likewise.
    outputs: Frames<E>,
    scratch: Vec<Scratch<E>>,
}

impl<E: Element> Lstm<E> {
    /// A layer of `n_directions` (1 or 2) times `n_cells`, of tensors `kernel`, `recurrent_kernel` and `bias`, or of
    /// two such triples in the parts `fwd` and `bwd`.
    pub fn new(mut scope: Scope<'_>, [n_in, n_cells]: [usize; 2], n_directions: usize, merge: Merge) -> Self {
        scope.reads([None, (n_directions == 1).then_some(0)]);
        scope.add_products(n_directions * 4 * n_cells * (n_in + n_cells));
        let directions = if n_directions == 1 {
            vec![Direction::new(scope, n_in, n_cells, false)]
        } else {
            let parts = [("fwd", false), ("bwd", true)];
            parts.map(|(part, is_backward)| Direction::new(scope.part(part), n_in, n_cells, is_backward)).into()
        };
        Self { n_in, n_cells, merge, directions, order: Vec::new(), d_part: Frames::new(n_in, [0, 0]) }
    }

    /// Values in a frame of the output.
    pub fn width(&self) -> usize {
        match (self.directions.len(), self.merge) {
            (2, Merge::Concat) => 2 * self.n_cells,
            _ => self.n_cells,
        }
    }

    /// Where in an output frame the cells of a direction go, and times what.
    fn share(&self, direction: usize) -> (usize, E) {
        match (self.directions.len(), self.merge) {
            (2, Merge::Concat) => (direction * self.n_cells, E::ONE),
            (2, Merge::Average) => (0, E::from_f64(0.5)),
            _ => (0, E::ONE),
        }
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, pass: &Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        assert_eq!((x.width(), y.width()), (self.n_in, self.width()), "lstm: widths of input and output");
        self.directions.par_iter_mut().for_each(|direction| direction.prepare(pass.params, x));
        let jobs = self.directions.iter_mut().flat_map(|direction| {
            let input = ready(direction.input.as_ref());
            direction.gates.each_real_mut().into_iter().enumerate().map(move |(u, gates)| (input, u, gates))
        });
        let jobs: Vec<_> = jobs.collect();
        jobs.into_par_iter().for_each(|(input, u, gates)| (E::kernels().dense_forward)(input, x.real(u), gates));
        self.sort(x.lengths());
        self.tasks(false).into_par_iter().for_each(|(mut lane, scratch)| lane.forward(scratch));
        self.merge_outputs(x, y);
    }

    /// The longest first; equal ones stay in their order.
    fn sort(&mut self, lengths: &[usize]) {
        self.order.clear();
        self.order.extend(0..lengths.len());
        self.order.sort_by_key(|&utterance| std::cmp::Reverse(lengths[utterance]));
    }

    /// Every direction over groups of utterances, one task each.
    fn tasks(&mut self, is_backward_pass: bool) -> Vec<(Lane<'_, E>, &mut Scratch<E>)> {
        let shares = [0, 1].map(|index| self.share(index));
        let n_groups = rayon::current_num_threads().div_ceil(self.directions.len());
        let mut tasks = Vec::new();
        for (direction, share) in self.directions.iter_mut().zip(shares) {
            let Direction { is_backward, recurrent, recurrent_back, gates, cells, outputs, scratch, .. } = direction;
            let weights = ready(if is_backward_pass { recurrent_back.as_ref() } else { recurrent.as_ref() });
            let mut all = utterances(gates, cells, outputs);
            scratch.resize_with(n_groups.max(scratch.len()), Scratch::default);
            for (group, scratch) in scratch.iter_mut().take(n_groups).enumerate() {
                let members = self.order.iter().skip(group).step_by(n_groups);
                let utterances = members.map(|&u| all[u].take().expect("an utterance is in one group")).collect();
                let lane = Lane { is_backward: *is_backward, n_cells: self.n_cells, share, weights, utterances };
                tasks.push((lane, scratch));
            }
        }
        tasks
    }

    fn merge_outputs(&mut self, x: &Frames<E>, y: &mut Frames<E>) {
        y.resize_like(x);
        let (n_cells, width) = (self.n_cells, self.width());
        let shares: Vec<(usize, E)> = (0..self.directions.len()).map(|index| self.share(index)).collect();
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            y.fill(E::ZERO);
            for (direction, &(at, factor)) in self.directions.iter().zip(&shares) {
                let outputs = direction.outputs.real(utterance).chunks_exact(n_cells);
                for (y, outputs) in y.chunks_exact_mut(width).zip(outputs) {
                    y[at..at + n_cells].iter_mut().zip(outputs).for_each(|(y, &h)| *y += h * factor);
                }
            }
        });
    }

    /// Adds to the gradients of the parameters and writes that of the input `x`, if wanted, from that of the output.
    ///
    /// `x` is that of the forward pass, which a backward pass may follow once.
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &Frames<E>, d_x: Wanted<'_, E>) {
        let wants_input = d_x.is_some();
        self.directions.par_iter_mut().for_each(|direction| direction.prepare_back(pass.params, wants_input));
        self.tasks(true).into_par_iter().for_each(|(mut lane, scratch)| lane.backward(d_y, scratch));
        if let Some(d_x) = d_x {
            self.input_gradient(x, d_x);
        }
        self.parameter_gradients(x, pass.gradient);
    }

    /// dx = dz W^T, summed over the directions.
    fn input_gradient(&mut self, x: &Frames<E>, d_x: &mut Frames<E>) {
        let [n_frames, n_gates, n_in] = [FRAMES, 4 * self.n_cells, self.n_in];
        for (index, direction) in self.directions.iter().enumerate() {
            let into = if index == 0 { &mut *d_x } else { &mut self.d_part };
            into.resize_like(x);
            let input_back = ready(direction.input_back.as_ref());
            let into = into.all_mut().expect("the gradient of the input has no margin");
            let parts = into.par_chunks_mut(n_frames * n_in).zip(direction.gates.all().par_chunks(n_frames * n_gates));
            parts.for_each(|(d_x, d_z)| (E::kernels().dense_forward)(input_back, d_z, d_x));
        }
        if self.directions.len() > 1 {
            add(&self.d_part, d_x);
        }
    }

    /// dW = x^T dz, dR = h'^T dz, db = the sum of dz: rows of all directions' matrices in parallel.
    fn parameter_gradients(&self, x: &Frames<E>, gradient: &mut [E]) {
        let (n_in, n_cells, n_gates) = (self.n_in, self.n_cells, 4 * self.n_cells);
        // The tensors of a layer follow one another in the layout.
        let cells = || self.directions.iter().map(|direction| direction.cell);
        let [first, last] = [cells().next(), cells().next_back()].map(|cell| cell.expect("a layer has a direction"));
        let sizes = cells().flat_map(|cell| [cell.kernel.len, cell.recurrent.len, cell.bias.len]);
        let mut parts = split(&mut gradient[first.kernel.offset..last.bias.range().end], sizes);
        self.directions.par_iter().zip(parts.par_chunks_mut(3)).for_each(|(direction, parts)| {
            let [kernel, recurrent, bias] = parts else { unreachable!("three tensors for each direction") };
            let of_kernel = kernel.par_chunks_mut(ROWS * n_gates).enumerate().map(|(index, rows)| (true, index, rows));
            let of_recurrent =
                recurrent.par_chunks_mut(ROWS * n_gates).enumerate().map(|(index, rows)| (false, index, rows));
            of_kernel.chain(of_recurrent).for_each(|(is_kernel, index, d_rows)| {
                for utterance in 0..x.n_utterances() {
                    let (inputs, width) = if is_kernel {
                        (x.real(utterance), n_in)
                    } else {
                        (direction.outputs_before(utterance), n_cells)
                    };
                    let d_z = direction.gates.real(utterance);
                    dense_kernel_gradient(inputs, width, index * ROWS, d_z, n_gates, d_rows);
                }
            });
            dense_bias_gradient(direction.gates.all(), bias);
        });
    }
}

impl<E: Element> Direction<E> {
    fn new(mut scope: Scope<'_>, n_in: usize, n_cells: usize, is_backward: bool) -> Self {
        let (margin, n_gates) = (if is_backward { [0, 1] } else { [1, 0] }, 4 * n_cells);
        let rows = Init::Orthogonal { rows: n_cells };
        let cell = Cell {
            kernel: scope.kernel("kernel", &[n_in, n_gates]),
            recurrent: scope.trainable("recurrent_kernel", &[n_cells, n_gates], rows),
            bias: scope.trainable("bias", &[n_gates], Init::ForgetOne),
        };
        Self {
            is_backward,
            cell,
            input: None,
            recurrent: None,
            input_back: None,
            recurrent_back: None,
            transposed: Buffer::new(),
            gates: Frames::new(n_gates, [0, 0]),
            cells: Frames::new(n_cells, margin),
            outputs: Frames::new(n_cells, margin),
            scratch: Vec::new(),
        }
    }

    /// Packs the weights and makes room.
    fn prepare(&mut self, params: &[E], x: &Frames<E>) {
        let Cell { kernel, recurrent, bias } = self.cell;
        pack(&mut self.input, kernel.of(params), Some(bias.of(params)), bias.len);
        pack(&mut self.recurrent, recurrent.of(params), None, bias.len);
        for frames in [&mut self.gates, &mut self.cells, &mut self.outputs] {
            frames.resize_like(x);
        }
    }

    /// Packs R, and W if wanted, transposed.
    fn prepare_back(&mut self, params: &[E], wants_input: bool) {
        let Cell { kernel, recurrent, bias } = self.cell;
        transpose(recurrent.of(params), bias.len, &mut self.transposed);
        pack(&mut self.recurrent_back, &self.transposed, None, recurrent.len / bias.len);
        if wants_input {
            transpose(kernel.of(params), bias.len, &mut self.transposed);
            pack(&mut self.input_back, &self.transposed, None, kernel.len / bias.len);
        }
    }

    /// h' of every frame.
    fn outputs_before(&self, utterance: usize) -> &[E] {
        let (padded, n_cells) = (self.outputs.padded(utterance), self.outputs.width());
        let n_frames = self.outputs.lengths()[utterance];
        &padded[usize::from(self.is_backward) * n_cells..][..n_frames * n_cells]
    }
}

/// Packs a kernel `[n_in][n_out]`, in memory that the first call allocates.
fn pack<E: Element>(weights: &mut Option<DenseWeights<E>>, kernel: &[E], bias: Option<&[E]>, n_out: usize) {
    weights.get_or_insert_with(|| DenseWeights::new(kernel.len() / n_out, n_out)).pack(kernel, bias);
}

fn ready<E>(weights: Option<&DenseWeights<E>>) -> &DenseWeights<E> {
    weights.expect("packed at the start of the pass")
}

/// What each utterance saves, each to be put into one group.
fn utterances<'a, E: Element>(
    gates: &'a mut Frames<E>,
    cells: &'a mut Frames<E>,
    outputs: &'a mut Frames<E>,
) -> Vec<Option<Utterance<'a, E>>> {
    let lengths = gates.lengths().to_vec();
    let parts = gates.each_real_mut().into_iter().zip(cells.each_padded_mut()).zip(outputs.each_real_mut());
    parts
        .zip(lengths)
        .enumerate()
        .map(|(index, (((gates, cells), outputs), n_frames))| {
            Some(Utterance { index, n_frames, gates, cells, outputs })
        })
        .collect()
}

/// Writes `matrix`, whose rows hold `width` values, column by column.
fn transpose<E: Element>(matrix: &[E], width: usize, columns: &mut Buffer<E>) {
    let n_rows = matrix.len() / width;
    columns.resize(matrix.len());
    // Few columns at a time: their rows of the result stay in cache while all rows of the matrix pass.
    for first in (0..width).step_by(16) {
        for (index, row) in matrix.chunks_exact(width).enumerate() {
            for (column, &value) in row.iter().enumerate().skip(first).take(16) {
                columns[column * n_rows + index] = value;
            }
        }
    }
}

/// Utterances that one thread runs in one direction, the longest first.
struct Lane<'a, E> {
    is_backward: bool,
    n_cells: usize,
    /// Where in a frame of the layer's output the cells go, and times what.
    share: (usize, E),
    /// R, or in the backward pass R transposed.
    weights: &'a DenseWeights<E>,
    utterances: Vec<Utterance<'a, E>>,
}

/// What one utterance saves.
struct Utterance<'a, E> {
    /// Its number in the batch.
    index: usize,
    n_frames: usize,
    gates: &'a mut [E],
    /// With a zero frame where the direction starts.
    cells: &'a mut [E],
    outputs: &'a mut [E],
}

/// A row for each utterance that is still running.
#[derive(Default)]
struct Scratch<E> {
    /// h, or in the backward pass its gradient from the step after.
    outputs: Buffer<E>,
    /// h' R, or in the backward pass the gradient of z.
    gates: Buffer<E>,
    /// In the backward pass: the gradient of h, and of c from the step after.
    d_outputs: Buffer<E>,
    d_cells: Buffer<E>,
}

impl<E: Element> Scratch<E> {
    fn clear(&mut self, n_rows: usize, n_cells: usize) {
        self.gates.resize(n_rows * 4 * n_cells);
        self.gates.fill(E::ZERO);
        for buffer in [&mut self.outputs, &mut self.d_outputs, &mut self.d_cells] {
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

    fn forward(&mut self, scratch: &mut Scratch<E>) {
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

    fn backward(&mut self, d_y: &Frames<E>, scratch: &mut Scratch<E>) {
        let (n_cells, kernels, (at, factor)) = (self.n_cells, E::kernels(), self.share);
        scratch.clear(self.utterances.len(), n_cells);
        for step in (0..self.n_steps()).rev() {
            let n = self.n_running(step);
            let Scratch { outputs: from_after, gates: d_gates, d_outputs, d_cells } = scratch;
            let rows = d_outputs.chunks_exact_mut(n_cells).zip(d_cells.chunks_exact_mut(n_cells));
            let rows = rows.zip(from_after.chunks_exact(n_cells)).zip(d_gates.chunks_exact_mut(4 * n_cells));
            for (utterance, (((d_h, d_cells), from_after), d_gates)) in self.utterances[..n].iter_mut().zip(rows) {
                let t = utterance.frame(self.is_backward, step);
                let d_y = &d_y.real(utterance.index)[t * d_y.width() + at..][..n_cells];
                for ((d_h, &after), &d_y) in d_h.iter_mut().zip(from_after).zip(d_y) {
                    *d_h = after + d_y * factor;
                }
                let (before, cells) = cells_at(utterance.cells, self.is_backward, t, n_cells);
                let gates = &mut utterance.gates[t * 4 * n_cells..][..4 * n_cells];
                (kernels.lstm_backward)(gates, before, cells, d_h, d_cells);
                d_gates.copy_from_slice(gates);
            }
            if step > 0 {
                (kernels.dense_forward)(self.weights, &d_gates[..n * 4 * n_cells], &mut from_after[..n * n_cells]);
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
