//! A recurrent layer of LSTM cells, in one direction or both, and full backpropagation through time.
//!
//! In each direction, from the step before (') to the next, with the gates of [`kernels`]:
//! z = x W + h' R + b; i, f, g, o from the quarters of z; c = f c' + i g; h = o tanh(c); c' and h' are 0 at the start.
//! The output is h, or of both directions [h_forward, h_backward] or (h_forward + h_backward) / 2.
//! The backward direction starts at each utterance's own last frame.
//!
//! x W + b is one product for all frames; h' R is one for all utterances that are still running, which are sorted by
//! length so that they are the first rows.
//! Directions, and groups of utterances as many as there are threads for, run in parallel.
//! A row's bits do not depend on how many others run beside it ([`DenseWeights`]).
//!
//! # Shapes
//! - in: frames of `n_in` without margin, out: frames of `n_cells`, or of twice as many
//! - W `[n_in][4 n_cells]`, R `[n_cells][4 n_cells]`, b `[4 n_cells]`

mod recurrence;

#[cfg(test)]
mod tests;

use rayon::prelude::*;
use srf_kernels::{Buffer, DenseWeights, Element, dense_bias_gradient, dense_kernel_gradient};

use self::recurrence::{Lane, Scratch, Utterance};
use super::dense::{FRAMES, ROWS};
use super::residual::add;
use crate::config::Merge;
use crate::frames::Frames;

/// The parameters of one direction.
#[derive(Clone, Copy, Debug)]
pub struct CellParams<'a, E> {
    /// W.
    pub kernel: &'a [E],
    /// R.
    pub recurrent: &'a [E],
    /// b.
    pub bias: &'a [E],
}

/// Their gradients, which the backward pass adds to.
#[derive(Debug)]
pub struct CellGradient<'a, E> {
    /// Of W.
    pub kernel: &'a mut [E],
    /// Of R.
    pub recurrent: &'a mut [E],
    /// Of b.
    pub bias: &'a mut [E],
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
    grad_part: Frames<E>,
}

/// One direction: its packed weights and what it saves.
struct Direction<E> {
    is_backward: bool,
    input: DenseWeights<E>,
    recurrent: DenseWeights<E>,
    /// W and R transposed, for the way back.
    input_back: DenseWeights<E>,
    recurrent_back: DenseWeights<E>,
    transposed: Buffer<E>,
    /// z, then i, f, g, o, and on the way back the gradient of z.
    gates: Frames<E>,
    /// c, with a zero frame where the direction starts.
    cells: Frames<E>,
    /// h, likewise.
    outputs: Frames<E>,
    scratch: Vec<Scratch<E>>,
}

impl<E: Element> Lstm<E> {
    /// A layer of `n_directions` (1 or 2) times `n_cells`.
    pub fn new(n_in: usize, n_cells: usize, n_directions: usize, merge: Merge) -> Self {
        let directions = (0..n_directions).map(|index| Direction::new(n_in, n_cells, index == 1)).collect();
        Self { n_in, n_cells, merge, directions, order: Vec::new(), grad_part: Frames::new(n_in, [0, 0]) }
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
    pub fn forward(&mut self, params: &[CellParams<'_, E>], x: &Frames<E>, y: &mut Frames<E>) {
        assert_eq!((x.width(), y.width()), (self.n_in, self.width()), "lstm: widths of input and output");
        assert_eq!(params.len(), self.directions.len(), "lstm: parameters of every direction");
        self.directions.par_iter_mut().zip(params).for_each(|(direction, params)| direction.prepare(*params, x));
        let jobs = self.directions.iter_mut().flat_map(|direction| {
            let input = &direction.input;
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

    /// Every direction over groups of utterances, each a task of its own.
    fn tasks(&mut self, is_way_back: bool) -> Vec<(Lane<'_, E>, &mut Scratch<E>)> {
        let shares = [0, 1].map(|index| self.share(index));
        let n_groups = rayon::current_num_threads().div_ceil(self.directions.len());
        let mut tasks = Vec::new();
        for (direction, share) in self.directions.iter_mut().zip(shares) {
            let Direction { is_backward, recurrent, recurrent_back, gates, cells, outputs, scratch, .. } = direction;
            let weights: &DenseWeights<E> = if is_way_back { recurrent_back } else { recurrent };
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
        y.resize_for(x.lengths().iter().copied());
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
    /// `params` and `x` are those of the forward pass, which a backward pass may follow once.
    pub fn backward(
        &mut self,
        params: &[CellParams<'_, E>],
        x: &Frames<E>,
        grad_y: &Frames<E>,
        gradients: Vec<CellGradient<'_, E>>,
        grad_x: Option<&mut Frames<E>>,
    ) {
        let wants_input = grad_x.is_some();
        self.directions
            .par_iter_mut()
            .zip(params)
            .for_each(|(direction, params)| direction.prepare_back(*params, wants_input));
        self.tasks(true).into_par_iter().for_each(|(mut lane, scratch)| lane.backward(grad_y, scratch));
        if let Some(grad_x) = grad_x {
            self.input_gradient(x, grad_x);
        }
        self.parameter_gradients(x, gradients);
    }

    /// dx = dz W^T, summed over the directions.
    fn input_gradient(&mut self, x: &Frames<E>, grad_x: &mut Frames<E>) {
        let [n_frames, n_gates, n_in] = [FRAMES, 4 * self.n_cells, self.n_in];
        for (index, direction) in self.directions.iter().enumerate() {
            let into = if index == 0 { &mut *grad_x } else { &mut self.grad_part };
            into.resize_for(x.lengths().iter().copied());
            let into = into.all_mut().expect("the gradient of the input has no margin");
            let parts = into.par_chunks_mut(n_frames * n_in).zip(direction.gates.all().par_chunks(n_frames * n_gates));
            parts.for_each(|(grad_x, grad_z)| (E::kernels().dense_forward)(&direction.input_back, grad_z, grad_x));
        }
        if self.directions.len() > 1 {
            add(&self.grad_part, grad_x);
        }
    }

    /// dW = x^T dz, dR = h'^T dz, db = the sum of dz: rows of all directions' matrices in parallel.
    fn parameter_gradients(&self, x: &Frames<E>, gradients: Vec<CellGradient<'_, E>>) {
        let (n_in, n_cells, n_gates) = (self.n_in, self.n_cells, 4 * self.n_cells);
        let tasks: Vec<_> = self.directions.iter().zip(gradients).collect();
        tasks.into_par_iter().for_each(|(direction, CellGradient { kernel, recurrent, bias })| {
            let of_kernel = kernel.par_chunks_mut(ROWS * n_gates).enumerate().map(|(index, grad)| (true, index, grad));
            let of_recurrent =
                recurrent.par_chunks_mut(ROWS * n_gates).enumerate().map(|(index, grad)| (false, index, grad));
            of_kernel.chain(of_recurrent).for_each(|(is_kernel, index, grad)| {
                for utterance in 0..x.n_utterances() {
                    let (inputs, width) = if is_kernel {
                        (x.real(utterance), n_in)
                    } else {
                        (direction.outputs_before(utterance), n_cells)
                    };
                    let grad_z = direction.gates.real(utterance);
                    dense_kernel_gradient(inputs, width, index * ROWS, grad_z, n_gates, grad);
                }
            });
            dense_bias_gradient(direction.gates.all(), bias);
        });
    }
}

impl<E: Element> Direction<E> {
    fn new(n_in: usize, n_cells: usize, is_backward: bool) -> Self {
        let margin = if is_backward { [0, 1] } else { [1, 0] };
        Self {
            is_backward,
            input: DenseWeights::new(n_in, 4 * n_cells),
            recurrent: DenseWeights::new(n_cells, 4 * n_cells),
            input_back: DenseWeights::new(4 * n_cells, n_in),
            recurrent_back: DenseWeights::new(4 * n_cells, n_cells),
            transposed: Buffer::new(),
            gates: Frames::new(4 * n_cells, [0, 0]),
            cells: Frames::new(n_cells, margin),
            outputs: Frames::new(n_cells, margin),
            scratch: Vec::new(),
        }
    }

    /// Packs the weights and makes room.
    fn prepare(&mut self, params: CellParams<'_, E>, x: &Frames<E>) {
        self.input.pack(params.kernel, Some(params.bias));
        self.recurrent.pack(params.recurrent, None);
        for frames in [&mut self.gates, &mut self.cells, &mut self.outputs] {
            frames.resize_for(x.lengths().iter().copied());
        }
    }

    /// Packs R, and W if wanted, transposed.
    fn prepare_back(&mut self, params: CellParams<'_, E>, wants_input: bool) {
        let n_gates = params.bias.len();
        transpose(params.recurrent, n_gates, &mut self.transposed);
        self.recurrent_back.pack(&self.transposed, None);
        if wants_input {
            transpose(params.kernel, n_gates, &mut self.transposed);
            self.input_back.pack(&self.transposed, None);
        }
    }

    /// h' of every frame.
    fn outputs_before(&self, utterance: usize) -> &[E] {
        let (padded, n_cells) = (self.outputs.padded(utterance), self.outputs.width());
        let n_frames = self.outputs.lengths()[utterance];
        &padded[usize::from(self.is_backward) * n_cells..][..n_frames * n_cells]
    }
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
