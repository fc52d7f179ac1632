//! One slice: its votes and the state of the slice before in, its state out, and the way back.
//!
//! Every member works in the same two halves, as EM does, and is known by them: from a state to agreements, and from
//! couplings to the next state.
//!
//! ```text
//! r = start;   state = that of the slice before
//! repeat:      r_ij = (r_ij or start_ij) + agreement(u_ij, state_j);   c_i = normalise(r_i);   state = settle(c, u)
//! output = give(state)
//! ```

use super::lanes::{Lanes, add, blocks, blocks_mut};
use super::{Layer, Normaliser};
use crate::routing::GradientPaths;
use crate::{BLOCK, Buffer, Element};

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
    /// Of the member's own rows.
    pub(super) own: &'a mut [Lanes<E>],
}

/// The two halves of a member; a state of zeros is the start of an utterance.
///
/// What is called `d_x` is the gradient of `x`, and is added to.
pub(super) trait Steps<E: Element> {
    fn normaliser(&self) -> Normaliser;
    /// Whether agreements of one iteration are added to those of the iterations before.
    fn accumulates(&self) -> bool;

    /// Adds what agreements start from.
    fn start(&self, slice: &Slice<'_, E>, r: &mut [Lanes<E>]);
    fn start_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], gradient: &mut SliceGradient<'_, E>);

    /// Adds the agreement of every vote with `state`.
    fn agree(&self, slice: &Slice<'_, E>, state: &[Lanes<E>], scratch: &mut [Lanes<E>], r: &mut [Lanes<E>]);
    fn agree_backward(
        &self,
        slice: &Slice<'_, E>,
        state: &[Lanes<E>],
        d_r: &[Lanes<E>],
        scratch: &mut [Lanes<E>],
        d_state: &mut [Lanes<E>],
        gradient: &mut SliceGradient<'_, E>,
    );

    /// Writes the state that couplings `c` lead to.
    fn settle(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], state: &mut [Lanes<E>]);
    /// Writes `d_c`; may use up `d_state`.
    fn settle_backward(
        &self,
        slice: &Slice<'_, E>,
        c: &[Lanes<E>],
        state: &[Lanes<E>],
        d_state: &mut [Lanes<E>],
        d_c: &mut [Lanes<E>],
        gradient: &mut SliceGradient<'_, E>,
    );

    /// Writes the packed outputs.
    fn give(&self, layer: &Layer<'_, E>, state: &[Lanes<E>], output: &mut [Lanes<E>]);
    fn give_backward(
        &self,
        layer: &Layer<'_, E>,
        state: &[Lanes<E>],
        d_output: &[Lanes<E>],
        scratch: &mut [Lanes<E>],
        d_state: &mut [Lanes<E>],
    );
}

/// What the iterations of a slice compute, kept for the way back.
#[derive(Clone, Default)]
pub(super) struct Trace<E> {
    /// What agreements start from, and the agreements, `[n_in][n_lanes]`.
    start: Buffer<E>,
    r: Buffer<E>,
    /// Of each iteration, `[n_in][n_lanes]`.
    couplings: Buffer<E>,
    /// The state before the first iteration and after each.
    states: Buffer<E>,
    /// Two packed poses, for a member's use.
    scratch: Buffer<E>,
    d_c: Buffer<E>,
    d_r: Buffer<E>,
    d_start: Buffer<E>,
    /// Gradient of a state; two, because one is read while the other is written.
    d_states: [Buffer<E>; 2],
}

impl<E: Element> Trace<E> {
    /// Makes room for the slices of `layer`.
    pub(super) fn resize(&mut self, layer: &Layer<'_, E>) {
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
    pub(super) fn before_mut(&mut self, state_len: usize) -> &mut [E] {
        &mut self.states[..state_len]
    }

    /// The state after the slice.
    pub(super) fn after(&self, state_len: usize) -> &[E] {
        &self.states[self.states.len() - state_len..]
    }

    /// Couplings and agreements of the last iteration, `[n_in][n_lanes]`.
    pub(super) fn decisions(&self) -> [&[E]; 2] {
        [&self.couplings[self.couplings.len() - self.r.len()..], &self.r]
    }

    /// Gradient of the state after the slice, before [`backward`]; of the one before the slice, after it.
    pub(super) fn d_state_mut(&mut self) -> &mut [E] {
        &mut self.d_states[0]
    }

    /// Takes the gradient of the outputs to that of the state after the slice.
    #[inline(always)]
    pub(super) fn take_back<S: Steps<E>>(&mut self, steps: &S, layer: &Layer<'_, E>, d_output: &[Lanes<E>]) {
        let state = blocks(&self.states[self.states.len() - self.d_states[0].len()..]);
        let (scratch, d_state) = (blocks_mut(&mut self.scratch), blocks_mut(&mut self.d_states[0]));
        steps.give_backward(layer, state, d_output, scratch, d_state);
    }
}

/// Takes the state before the slice through all iterations.
#[inline(always)]
pub(super) fn forward<E: Element, S: Steps<E>>(steps: &S, slice: &Slice<'_, E>, trace: &mut Trace<E>) {
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
            steps.normaliser().forward(r, layer.valid, c);
        }
        steps.settle(slice, c, after);
    }
}

/// Takes the gradient of the state after the slice back to the state before it, and adds to `gradient`.
#[inline(always)]
pub(super) fn backward<E: Element, S: Steps<E>>(
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
        steps.settle_backward(slice, c, after, blocks_mut(d_state), d_c, gradient);
        let rows = c.chunks_exact(layer.n_blocks).zip(d_c.chunks_exact(layer.n_blocks));
        for ((c, d_c), d_r) in rows.zip(d_r.chunks_exact_mut(layer.n_blocks)) {
            steps.normaliser().backward(c, d_c, layer.valid, d_r);
        }
        d_before.fill(E::ZERO);
        steps.agree_backward(slice, before, d_r, blocks_mut(scratch), blocks_mut(d_before), gradient);
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
