//! The way of an utterance through a variant, forward and back in time: votes of a few slices at a time are in memory, and
//! the backward pass computes them again.
//!
//! Every variant works in the same two halves, as EM does, and is known by them ([`Steps`]): from a state to agreements,
//! and from couplings to the next state.
//!
//! ```text
//! r = start;   state = that of the slice before
//! repeat:      r_ij = (r_ij or start_ij) + agreement(u_ij, state_j);   c_i = normalize(r_i);   state = update_state(c, u)
//! output = emit(state)
//! ```
//!
//! Votes are u_ij = W_ij x_i + b_ij; so dW_ij = Σ du_ij x_iᵀ, db_ij = Σ du_ij, dx_i = Σ_j W_ijᵀ du_ij.
//! Each slice is computed by the same operations however many share one load of the weights.

use super::lanes::{Lanes, Normalizer, add, blocks, blocks_mut, total};
use super::{Em, Layer, RoutingVariant, Sums};
use crate::routing::{GradientPaths, Tap, Utterance, UtteranceBack};
use crate::{BLOCK, Buffer, Element};

/// Slices that share one load of the weights.
const TILE: usize = 4;

/// Memory that one task reuses from utterance to utterance.
#[derive(Clone, Default)]
pub struct Scratch<E> {
    /// `[TILE][n_in][packed]`.
    votes: Buffer<E>,
    d_votes: Buffer<E>,
    /// Packed outputs of a slice, or their gradients.
    output: Buffer<E>,
    trace: Trace<E>,
    /// Gradients of all utterances of the task.
    pub(super) d_weights: Buffer<E>,
    pub(super) d_biases: Buffer<E>,
    pub(super) d_extra: Buffer<E>,
}

impl<E: Element> Scratch<E> {
    fn resize(&mut self, layer: &Layer<'_, E>) {
        self.votes.resize(TILE * layer.biases.len() * BLOCK);
        self.output.resize(layer.len * BLOCK);
        self.trace.resize(layer);
    }

    /// Room for gradients, which start from zero.
    pub(super) fn clear_gradients(&mut self, layer: &Layer<'_, E>) {
        for (gradient, like) in
            [(&mut self.d_weights, layer.weights), (&mut self.d_biases, layer.biases), (&mut self.d_extra, layer.extra)]
        {
            gradient.resize(like.len() * BLOCK);
            gradient.fill(E::ZERO);
        }
    }
}

/// Routes an utterance.
#[inline(always)]
pub(crate) fn forward<E: Element, const FUSED: bool>(
    layer: &Layer<'_, E>,
    utterance: &mut Utterance<'_, E>,
    scratch: &mut Scratch<E>,
) {
    match layer.variant {
        RoutingVariant::Em => forward_as::<E, _, FUSED>(&Em::new(layer), layer, utterance, scratch),
        other => forward_as::<E, _, FUSED>(&Sums::new(layer, other), layer, utterance, scratch),
    }
}

/// Takes the gradients of an utterance back and adds those of parameters to what is in `scratch`.
#[inline(always)]
pub(crate) fn backward<E: Element, const FUSED: bool>(
    layer: &Layer<'_, E>,
    paths: GradientPaths,
    utterance: &mut UtteranceBack<'_, E>,
    scratch: &mut Scratch<E>,
) {
    match layer.variant {
        RoutingVariant::Em => backward_as::<E, _, FUSED>(&Em::new(layer), layer, paths, utterance, scratch),
        other => backward_as::<E, _, FUSED>(&Sums::new(layer, other), layer, paths, utterance, scratch),
    }
}

#[inline(always)]
fn forward_as<E: Element, S: Steps<E>, const FUSED: bool>(
    steps: &S,
    layer: &Layer<'_, E>,
    utterance: &mut Utterance<'_, E>,
    scratch: &mut Scratch<E>,
) {
    let state_len = layer.state_len;
    scratch.resize(layer);
    let Scratch { votes, output, trace, .. } = scratch;
    for first in (0..utterance.n_slices).step_by(TILE) {
        let n = TILE.min(utterance.n_slices - first);
        let votes = predict_tile::<E, FUSED>(layer, utterance.inputs, first, n, votes);
        for (t, votes) in (first..).zip(votes) {
            let slice = Slice { layer, votes, x: layer.window(utterance.inputs, t) };
            carry(layer, utterance.state, utterance.saved, t, trace.before_mut(state_len));
            slice_forward(steps, &slice, trace);
            utterance.saved[t * state_len..][..state_len].copy_from_slice(trace.after(state_len));
            steps.emit(layer, blocks(trace.after(state_len)), blocks_mut(output));
            let width = layer.routing.output_len();
            layer.unpack(output, &mut utterance.outputs[t * width..][..width]);
            if let Some(tap) = &mut utterance.tap {
                show(layer, trace.decisions(), tap, t);
            }
        }
    }
}

#[inline(always)]
fn backward_as<E: Element, S: Steps<E>, const FUSED: bool>(
    steps: &S,
    layer: &Layer<'_, E>,
    paths: GradientPaths,
    utterance: &mut UtteranceBack<'_, E>,
    scratch: &mut Scratch<E>,
) {
    let state_len = layer.state_len;
    scratch.resize(layer);
    scratch.d_votes.resize(scratch.votes.len());
    let Scratch { votes, d_votes, output, trace, d_weights, d_biases, d_extra } = scratch;
    let mut packed = PackedGradient { weights: blocks_mut(d_weights), biases: blocks_mut(d_biases) };
    utterance.d_inputs.fill(E::ZERO);
    trace.d_state_mut().fill(E::ZERO);
    for first in (0..utterance.n_slices).step_by(TILE).rev() {
        let n = TILE.min(utterance.n_slices - first);
        let votes: Vec<_> = predict_tile::<E, FUSED>(layer, utterance.inputs, first, n, votes).collect();
        d_votes.fill(E::ZERO);
        let mut each: Vec<_> = blocks_mut(d_votes).chunks_exact_mut(layer.biases.len()).take(n).collect();
        for (t, (votes, d_votes)) in (first..first + n).zip(votes.into_iter().zip(&mut each)).rev() {
            let slice = Slice { layer, votes, x: layer.window(utterance.inputs, t) };
            carry(layer, utterance.state, utterance.saved, t, trace.before_mut(state_len));
            slice_forward(steps, &slice, trace);
            let width = layer.routing.output_len();
            layer.pack(&utterance.d_outputs[t * width..][..width], output);
            trace.take_back(steps, layer, blocks(output));
            let d_x = layer.window_mut(utterance.d_inputs, t);
            let mut gradient = SliceGradient { votes: d_votes, x: d_x, extra: blocks_mut(d_extra) };
            slice_backward(steps, &slice, paths, trace, &mut gradient);
            if !(layer.routing.is_sequential && paths.through_time) {
                trace.d_state_mut().fill(E::ZERO);
            }
        }
        let each: Vec<&[Lanes<E>]> = each.into_iter().map(|votes| &*votes).collect();
        tile_backward::<E, FUSED>(layer, utterance, first, &each, &mut packed);
    }
}

/// Votes of the `n` slices from `first` on.
#[inline(always)]
fn predict_tile<'a, E: Element, const FUSED: bool>(
    layer: &Layer<'_, E>,
    inputs: &[E],
    first: usize,
    n: usize,
    votes: &'a mut Buffer<E>,
) -> impl Iterator<Item = &'a [Lanes<E>]> + use<'a, E, FUSED> {
    let len = layer.biases.len();
    let mut each = blocks_mut(&mut votes[..n * len * BLOCK]).chunks_exact_mut(len);
    if let (TILE, [Some(a), Some(b), Some(c), Some(d)]) = (n, [(); TILE].map(|()| each.next())) {
        let x = std::array::from_fn(|t| layer.window(inputs, first + t));
        predict::<E, FUSED, TILE>(layer, x, [a, b, c, d]);
    } else {
        let each = blocks_mut(&mut votes[..n * len * BLOCK]).chunks_exact_mut(len);
        for (t, votes) in (first..).zip(each) {
            predict::<E, FUSED, 1>(layer, [layer.window(inputs, t)], [votes]);
        }
    }
    blocks(&votes[..n * len * BLOCK]).chunks_exact(len)
}

/// Takes the gradients of the votes of some slices to weights and inputs.
#[inline(always)]
fn tile_backward<E: Element, const FUSED: bool>(
    layer: &Layer<'_, E>,
    utterance: &mut UtteranceBack<'_, E>,
    first: usize,
    d_votes: &[&[Lanes<E>]],
    packed: &mut PackedGradient<'_, E>,
) {
    let (x, d_x, stride) = (utterance.inputs, &mut *utterance.d_inputs, layer.routing.stride);
    if let Ok(d_votes) = <[_; TILE]>::try_from(d_votes) {
        let starts = std::array::from_fn(|t| (first + t) * stride);
        predict_backward::<E, FUSED, TILE>(layer, d_votes, starts, x, d_x, packed);
    } else {
        for (t, votes) in (first..).zip(d_votes) {
            predict_backward::<E, FUSED, 1>(layer, [votes], [t * stride], x, d_x, packed);
        }
    }
}

/// Writes the state that slice `t` starts from.
#[inline(always)]
fn carry<E: Element>(layer: &Layer<'_, E>, state: &[E], saved: &[E], t: usize, before: &mut [E]) {
    match t {
        _ if !layer.routing.is_sequential => before.fill(E::ZERO),
        0 if state.is_empty() => before.fill(E::ZERO),
        0 => before.copy_from_slice(state),
        _ => before.copy_from_slice(&saved[(t - 1) * before.len()..][..before.len()]),
    }
}

/// Writes what was decided for slice `t`.
#[inline(always)]
fn show<E: Element>(layer: &Layer<'_, E>, decisions: [&[E]; 2], tap: &mut Tap<'_, E>, t: usize) {
    let (n_in, n_out, n_lanes) = (layer.routing.n_in, layer.routing.n_out, layer.routing.n_lanes());
    for (from, to) in decisions.into_iter().zip([&mut *tap.couplings, &mut *tap.agreements]) {
        let to = &mut to[t * n_in * n_out..][..n_in * n_out];
        for (from, to) in from.chunks_exact(n_lanes).zip(to.chunks_exact_mut(n_out)) {
            to.copy_from_slice(&from[..n_out]);
        }
    }
}

/// The votes of a slice, and the window they come from.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a, E> {
    pub(super) layer: &'a Layer<'a, E>,
    /// `[n_in][packed]`.
    pub(super) votes: &'a [Lanes<E>],
    /// `[n_in][depth_in]`.
    pub(super) x: &'a [E],
}

impl<'a, E: Element> Slice<'a, E> {
    /// The votes of each input capsule.
    #[inline(always)]
    pub(super) fn each_vote(&self) -> impl Iterator<Item = &'a [Lanes<E>]> {
        self.votes.chunks_exact(self.layer.len)
    }
}

/// Gradients that a slice adds to.
pub(super) struct SliceGradient<'a, E> {
    /// As [`Slice::votes`].
    pub(super) votes: &'a mut [Lanes<E>],
    /// As [`Slice::x`].
    pub(super) x: &'a mut [E],
    /// Of the variant's own rows.
    pub(super) extra: &'a mut [Lanes<E>],
}

/// What a backward step reads, adds to, and may use as it likes.
pub(super) struct Back<'a, 'b, E> {
    pub(super) state: &'a [Lanes<E>],
    /// Gradient of the state.
    pub(super) d_state: &'a mut [Lanes<E>],
    /// Two packed poses.
    pub(super) scratch: &'a mut [Lanes<E>],
    pub(super) gradient: &'a mut SliceGradient<'b, E>,
}

/// The two halves of a variant; a state of zeros is the start of an utterance.
///
/// What is called `d_x` is the gradient of `x`, and is added to.
pub(super) trait Steps<E: Element> {
    fn normalizer(&self) -> Normalizer;
    /// Whether agreements of one iteration are added to those of the iterations before.
    fn accumulates(&self) -> bool;

    /// Adds what agreements start from.
    fn start(&self, slice: &Slice<'_, E>, r: &mut [Lanes<E>]);
    fn start_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], gradient: &mut SliceGradient<'_, E>);

    /// Adds the agreement of every vote with `state`.
    fn agree(&self, slice: &Slice<'_, E>, state: &[Lanes<E>], scratch: &mut [Lanes<E>], r: &mut [Lanes<E>]);
    fn agree_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], back: Back<'_, '_, E>);

    /// Writes the state that couplings `c` lead to.
    fn update_state(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], state: &mut [Lanes<E>]);
    /// Writes `d_c`; may use up `d_state`.
    fn update_state_backward(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], d_c: &mut [Lanes<E>], back: Back<'_, '_, E>);

    /// Writes the packed outputs.
    fn emit(&self, layer: &Layer<'_, E>, state: &[Lanes<E>], output: &mut [Lanes<E>]);
    fn emit_backward(
        &self,
        layer: &Layer<'_, E>,
        state: &[Lanes<E>],
        d_output: &[Lanes<E>],
        scratch: &mut [Lanes<E>],
        d_state: &mut [Lanes<E>],
    );
}

/// What the iterations of a slice compute, kept for the backward pass.
#[derive(Clone, Default)]
struct Trace<E> {
    /// What agreements start from, and the agreements, `[n_in][n_lanes]`.
    start: Buffer<E>,
    r: Buffer<E>,
    /// Of each iteration, `[n_in][n_lanes]`.
    couplings: Buffer<E>,
    /// The state before the first iteration and after each.
    states: Buffer<E>,
    /// Two packed poses, for a variant's use.
    scratch: Buffer<E>,
    d_c: Buffer<E>,
    d_r: Buffer<E>,
    d_start: Buffer<E>,
    /// Gradient of a state; two, because one is read while the other is written.
    d_states: [Buffer<E>; 2],
}

impl<E: Element> Trace<E> {
    /// Makes room for the slices of `layer`.
    fn resize(&mut self, layer: &Layer<'_, E>) {
        let state_len = layer.state_len;
        let n_couplings = layer.routing.n_in * layer.routing.n_lanes();
        let n_iterations = layer.routing.n_iterations;
        for row in [&mut self.start, &mut self.r, &mut self.d_c, &mut self.d_r, &mut self.d_start] {
            row.resize(n_couplings);
        }
        self.couplings.resize(n_iterations * n_couplings);
        self.states.resize((n_iterations + 1) * state_len);
        self.scratch.resize(2 * layer.len * BLOCK);
        self.d_states.iter_mut().for_each(|d_state| d_state.resize(state_len));
    }

    /// The state before the slice, to be written.
    fn before_mut(&mut self, state_len: usize) -> &mut [E] {
        &mut self.states[..state_len]
    }

    /// The state after the slice.
    fn after(&self, state_len: usize) -> &[E] {
        &self.states[self.states.len() - state_len..]
    }

    /// Couplings and agreements of the last iteration, `[n_in][n_lanes]`.
    fn decisions(&self) -> [&[E]; 2] {
        [&self.couplings[self.couplings.len() - self.r.len()..], &self.r]
    }

    /// Gradient of the state after the slice, before [`slice_backward`]; of the one before the slice, after it.
    fn d_state_mut(&mut self) -> &mut [E] {
        &mut self.d_states[0]
    }

    /// Takes the gradient of the outputs to that of the state after the slice.
    #[inline(always)]
    fn take_back<S: Steps<E>>(&mut self, steps: &S, layer: &Layer<'_, E>, d_output: &[Lanes<E>]) {
        let state = blocks(&self.states[self.states.len() - self.d_states[0].len()..]);
        let (scratch, d_state) = (blocks_mut(&mut self.scratch), blocks_mut(&mut self.d_states[0]));
        steps.emit_backward(layer, state, d_output, scratch, d_state);
    }
}

/// Takes the state before the slice through all iterations.
#[inline(always)]
fn slice_forward<E: Element, S: Steps<E>>(steps: &S, slice: &Slice<'_, E>, trace: &mut Trace<E>) {
    let Trace { start, r, couplings, states, scratch, .. } = trace;
    let layer = slice.layer;
    let state_len = layer.state_len / BLOCK;
    let (start, r, scratch) = (blocks_mut(start), blocks_mut(r), blocks_mut(scratch));
    for row in start.chunks_exact_mut(layer.n_blocks) {
        row.copy_from_slice(layer.mask);
    }
    steps.start(slice, start);
    for (n, c) in blocks_mut(couplings).chunks_exact_mut(r.len()).enumerate() {
        let (before, after) = blocks_mut(states)[n * state_len..][..2 * state_len].split_at_mut(state_len);
        if n == 0 || !steps.accumulates() {
            r.copy_from_slice(start);
        }
        steps.agree(slice, before, scratch, r);
        let rows = r.chunks_exact(layer.n_blocks).zip(c.chunks_exact_mut(layer.n_blocks));
        for (r, c) in rows {
            steps.normalizer().forward(r, layer.valid, c);
        }
        steps.update_state(slice, c, after);
    }
}

/// Takes the gradient of the state after the slice back to the state before it, and adds to `gradient`.
#[inline(always)]
fn slice_backward<E: Element, S: Steps<E>>(
    steps: &S,
    slice: &Slice<'_, E>,
    paths: GradientPaths,
    trace: &mut Trace<E>,
    gradient: &mut SliceGradient<'_, E>,
) {
    let Trace { couplings, states, scratch, d_c, d_r, d_start, d_states: [d_state, d_before], .. } = trace;
    let (layer, n_iterations) = (slice.layer, slice.layer.routing.n_iterations);
    let state_len = layer.state_len / BLOCK;
    let (d_c, d_r, d_start) = (blocks_mut(d_c), blocks_mut(d_r), blocks_mut(d_start));
    let first = if paths.through_iterations { 0 } else { n_iterations - 1 };
    d_r.as_flattened_mut().fill(E::ZERO);
    d_start.as_flattened_mut().fill(E::ZERO);
    for n in (first..n_iterations).rev() {
        let c = &blocks(couplings)[n * d_r.len()..][..d_r.len()];
        let (before, after) = blocks(states)[n * state_len..][..2 * state_len].split_at(state_len);
        let back = Back { state: after, d_state: blocks_mut(d_state), scratch: blocks_mut(scratch), gradient };
        steps.update_state_backward(slice, c, d_c, back);
        let rows = c.chunks_exact(layer.n_blocks).zip(d_c.chunks_exact(layer.n_blocks));
        for ((c, d_c), d_r) in rows.zip(d_r.chunks_exact_mut(layer.n_blocks)) {
            steps.normalizer().backward(c, d_c, layer.valid, d_r);
        }
        d_before.fill(E::ZERO);
        let back = Back { state: before, d_state: blocks_mut(d_before), scratch: blocks_mut(scratch), gradient };
        steps.agree_backward(slice, d_r, back);
        std::mem::swap(d_state, d_before);
        if n == first || !steps.accumulates() {
            add(d_start, d_r);
        }
        if !steps.accumulates() {
            d_r.as_flattened_mut().fill(E::ZERO);
        }
    }
    steps.start_backward(slice, d_start, gradient);
    if first > 0 {
        d_state.fill(E::ZERO);
    }
}

/// `a * b + c`, in one instruction where the row has it; WebAssembly has none, and would call a function.
#[inline(always)]
fn multiply_add<E: Element, const FUSED: bool>(a: E, b: E, c: E) -> E {
    if FUSED && cfg!(not(target_arch = "wasm32")) { a.mul_add(b, c) } else { a * b + c }
}

/// Votes of `T` slices from their windows of input poses.
#[inline(always)]
fn predict<E: Element, const FUSED: bool, const T: usize>(
    layer: &Layer<'_, E>,
    x: [&[E]; T],
    mut votes: [&mut [Lanes<E>]; T],
) {
    let depth = layer.routing.depth_in;
    for i in 0..layer.routing.n_in {
        let pose: [&[E]; T] = x.map(|x| &x[i * depth..][..depth]);
        for at in i * layer.len..(i + 1) * layer.len {
            let mut sums = [layer.biases[at]; T];
            for (k, weight) in layer.weights[at * depth..][..depth].iter().enumerate() {
                for (sum, pose) in sums.iter_mut().zip(&pose) {
                    for l in 0..BLOCK {
                        sum[l] = multiply_add::<E, FUSED>(pose[k], weight[l], sum[l]);
                    }
                }
            }
            for (votes, sum) in votes.iter_mut().zip(sums) {
                votes[at] = sum;
            }
        }
    }
}

/// Gradients of weights and biases, packed.
struct PackedGradient<'a, E> {
    weights: &'a mut [Lanes<E>],
    biases: &'a mut [Lanes<E>],
}

/// Adds to the gradients of weights, biases and input poses from those of the votes of `T` slices; the window of slice
/// `t` of them starts at `starts[t]` of `x` and `d_x`.
#[inline(always)]
fn predict_backward<E: Element, const FUSED: bool, const T: usize>(
    layer: &Layer<'_, E>,
    d_votes: [&[Lanes<E>]; T],
    starts: [usize; T],
    x: &[E],
    d_x: &mut [E],
    gradient: &mut PackedGradient<'_, E>,
) {
    let (depth, len) = (layer.routing.depth_in, layer.len);
    for i in 0..layer.routing.n_in {
        let here = d_votes.map(|votes| &votes[i * len..][..len]);
        let biases = &mut gradient.biases[i * len..][..len];
        for votes in here {
            add(biases, votes);
        }
        let weights = &layer.weights[i * len * depth..][..len * depth];
        let d_weights = &mut gradient.weights[i * len * depth..][..len * depth];
        for k in 0..depth {
            let at = starts.map(|start| start + i * depth + k);
            let poses = at.map(|at| x[at]);
            let sums = column::<E, FUSED, T>(here, poses, depth, &weights[k..], &mut d_weights[k..]);
            for (at, sum) in at.into_iter().zip(sums) {
                d_x[at] += total(&[sum]);
            }
        }
    }
}

/// One column of the matrices of an input capsule: adds to its gradient and gives the products with the votes'.
#[inline(always)]
fn column<E: Element, const FUSED: bool, const T: usize>(
    d_votes: [&[Lanes<E>]; T],
    poses: [E; T],
    depth: usize,
    weights: &[Lanes<E>],
    d_weights: &mut [Lanes<E>],
) -> [Lanes<E>; T] {
    let mut sums = [[E::ZERO; BLOCK]; T];
    let columns = weights.iter().step_by(depth).zip(d_weights.iter_mut().step_by(depth));
    for (n, (weight, d_weight)) in columns.enumerate() {
        let (weight, mut gradient) = (*weight, *d_weight);
        for t in 0..T {
            let d_vote = d_votes[t][n];
            for l in 0..BLOCK {
                gradient[l] = multiply_add::<E, FUSED>(d_vote[l], poses[t], gradient[l]);
            }
            for l in 0..BLOCK {
                sums[t][l] = multiply_add::<E, FUSED>(d_vote[l], weight[l], sums[t][l]);
            }
        }
        *d_weight = gradient;
    }
    sums
}
