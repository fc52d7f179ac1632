//! Through an utterance: window after window in, outputs written; then back in time, gradients written.
//!
//! Votes of a few slices at a time are in memory; the way back computes them again.

use super::lanes::{Lanes, blocks, blocks_mut};
use super::slice::{self, Slice, SliceGradient, Steps, Trace};
use super::votes::{PackedGradient, predict, predict_backward};
use super::{Em, Layer, Member, Sums};
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
    pub(super) d_own: Buffer<E>,
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
            [(&mut self.d_weights, layer.weights), (&mut self.d_biases, layer.biases), (&mut self.d_own, layer.own)]
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
    match layer.member {
        Member::Em => forward_as::<E, _, FUSED>(&Em::new(layer), layer, utterance, scratch),
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
    match layer.member {
        Member::Em => backward_as::<E, _, FUSED>(&Em::new(layer), layer, paths, utterance, scratch),
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
            slice::forward(steps, &slice, trace);
            utterance.saved[t * state_len..][..state_len].copy_from_slice(trace.after(state_len));
            steps.give(layer, blocks(trace.after(state_len)), blocks_mut(output));
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
    let Scratch { votes, d_votes, output, trace, d_weights, d_biases, d_own } = scratch;
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
            slice::forward(steps, &slice, trace);
            let width = layer.routing.output_len();
            layer.pack(&utterance.d_outputs[t * width..][..width], output);
            trace.take_back(steps, layer, blocks(output));
            let d_x = layer.window_mut(utterance.d_inputs, t);
            let mut gradient = SliceGradient { votes: d_votes, x: d_x, own: blocks_mut(d_own) };
            slice::backward(steps, &slice, paths, trace, &mut gradient);
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
