//! Routing between two capsule layers, forward and backward.
//!
//! For every slice (output frame) and every pair of an input capsule i and an output capsule j there is a vote
//! `u_ij = W_ij x_i + b_ij`. Routing decides how much each vote counts. With `v` the slice's outputs,
//!
//! ```text
//! r_ij = 0;   v = outputs of the previous slice (SDR) or 0 (DR)
//! repeat:     r_ij += <u_ij, v_j>;   c_i = softmax_j(r_i);   s_j = Σ_i c_ij u_ij;   v_j = squash(s_j)
//! squash(s) = |s|²/(1+|s|²) · s/√(|s|²+ε)
//! ```
//!
//! With `v` starting at zero the first pass has equal couplings, which is dynamic routing (DR); with `v` carried from
//! slice to slice it is the paper's sequential dynamic routing (SDR). One routine does both.
//!
//! Other routings, which the same layer can have instead, are the [`variants`]; [`Router`] is the way to any of them.
//!
//! The backward pass runs in two phases. The first walks back in time, recomputes the votes of a slice, and keeps of
//! it only couplings `c`, the gradients `D` of `r`, and `ds`. The second rebuilds the gradients of the votes,
//! `du_ij = c_ij ds_j + D_ij v_j`, block by block, and forms `dW` and `dx`. Votes are never held for a sequence.

pub(crate) mod fused;
pub(crate) mod scalar;
#[cfg(test)]
mod tests;
pub mod variants;

use self::variants::RoutingVariant;
use crate::{BLOCK, Buffer, Element};

/// Added to a square before its root is taken.
pub const SQUASH_EPSILON: f64 = 1e-7;

/// What the padding class starts with instead of `r = 0`: it never gets a coupling.
const NEVER: f64 = -1e30;

/// The shape of a capsule layer as routing sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Input capsules of a slice: window times height.
    pub n_in: usize,
    /// Output capsules.
    pub n_out: usize,
    /// Floats in an input pose.
    pub depth_in: usize,
    /// Floats in an output pose.
    pub depth_out: usize,
    /// Floats between the windows of two consecutive slices: input height times depth.
    pub stride: usize,
    /// How often the couplings are computed, at least once.
    pub n_iterations: usize,
    /// Whether a slice starts from the outputs of the one before (SDR) or from zero (DR).
    pub is_sequential: bool,
    /// Whether output capsule 0 is a padding class, which gets no coupling.
    pub has_padding_class: bool,
}

impl Routing {
    /// Output capsules rounded up to whole blocks.
    pub fn n_lanes(&self) -> usize {
        self.n_out.next_multiple_of(BLOCK)
    }

    /// Floats in the packed votes of one input capsule, and in packed poses of the outputs.
    pub(crate) fn packed_len(&self) -> usize {
        self.n_lanes() * self.depth_out
    }

    /// Floats in the outputs of one slice.
    pub fn output_len(&self) -> usize {
        self.n_out * self.depth_out
    }

    /// Floats in the inputs of `n_slices` slices, window frames included.
    pub fn inputs_len(&self, n_slices: usize) -> usize {
        if n_slices == 0 { 0 } else { (n_slices - 1) * self.stride + self.n_in * self.depth_in }
    }

    /// Where element `o` of output capsule `j` lies in packed poses: blocks of capsules, depth, lane.
    pub(crate) fn packed_index(&self, j: usize, o: usize) -> usize {
        (j / BLOCK * self.depth_out + o) * BLOCK + j % BLOCK
    }

    /// Where `W[i, j, o, k]` lies in packed weights: input capsule, block of output capsules, depths, lane.
    pub(crate) fn weight_index(&self, i: usize, j: usize, o: usize, k: usize) -> usize {
        let block = i * (self.n_lanes() / BLOCK) + j / BLOCK;
        ((block * self.depth_out + o) * self.depth_in + k) * BLOCK + j % BLOCK
    }
}

/// Weights and biases in the order the kernels read them, output capsules side by side.
#[derive(Clone, Default)]
pub struct Packed<E> {
    /// `[n_in, n_lanes / BLOCK, depth_out, depth_in, BLOCK]`.
    pub(crate) weights: Buffer<E>,
    /// `[n_in, n_lanes / BLOCK, depth_out, BLOCK]`.
    pub(crate) biases: Buffer<E>,
}

impl<E: Element> Packed<E> {
    /// Zeros of the right size for `routing`.
    pub fn new(routing: &Routing) -> Self {
        let n = routing.n_in * routing.packed_len();
        Self { weights: Buffer::zeros(n * routing.depth_in), biases: Buffer::zeros(n) }
    }

    /// Panics unless these have the size for `routing`.
    #[track_caller]
    fn check(&self, routing: &Routing, what: &str) {
        let n = routing.n_in * routing.packed_len();
        assert!(n > 0 && routing.depth_in > 0, "routing without capsules: {routing:?}");
        let found = [self.weights.len(), self.biases.len()];
        assert_eq!(found, [n * routing.depth_in, n], "routing: packed {what} of another layer");
    }

    /// Takes `weights [n_in, n_out, depth_out, depth_in]` and `biases [n_in, n_out, depth_out]`.
    pub fn pack(&mut self, routing: &Routing, weights: &[E], biases: &[E]) {
        let Routing { n_in, n_out, depth_in, depth_out, .. } = *routing;
        assert_eq!(weights.len(), n_in * n_out * depth_out * depth_in, "weights to pack");
        assert_eq!(biases.len(), n_in * n_out * depth_out, "biases to pack");
        let width = depth_out * depth_in;
        for i in 0..n_in {
            for j in 0..n_out {
                let from = &weights[(i * n_out + j) * width..][..width];
                let to = &mut self.weights[routing.weight_index(i, j, 0, 0)..];
                scatter(from, to);
                let from = &biases[(i * n_out + j) * depth_out..][..depth_out];
                let to = &mut self.biases[i * routing.packed_len() + routing.packed_index(j, 0)..];
                scatter(from, to);
            }
        }
    }

    /// Adds what is packed here to `weights` and `biases`, shaped as in [`Packed::pack`].
    pub fn add_to(&self, routing: &Routing, weights: &mut [E], biases: &mut [E]) {
        let Routing { n_in, n_out, depth_in, depth_out, .. } = *routing;
        let width = depth_out * depth_in;
        for i in 0..n_in {
            for j in 0..n_out {
                let to = &mut weights[(i * n_out + j) * width..][..width];
                gather(&self.weights[routing.weight_index(i, j, 0, 0)..], to);
                let to = &mut biases[(i * n_out + j) * depth_out..][..depth_out];
                gather(&self.biases[i * routing.packed_len() + routing.packed_index(j, 0)..], to);
            }
        }
    }
}

fn scatter<E: Element>(from: &[E], to: &mut [E]) {
    for (value, slot) in from.iter().zip(to.iter_mut().step_by(BLOCK)) {
        *slot = *value;
    }
}

fn gather<E: Element>(from: &[E], to: &mut [E]) {
    for (value, slot) in from.iter().step_by(BLOCK).zip(to) {
        *slot += *value;
    }
}

/// What the forward pass of an utterance reads and writes.
pub struct Utterance<'a, E> {
    /// Slices to route.
    pub n_slices: usize,
    /// Input poses, window frames included: slice t reads `n_in · depth_in` floats from `t · stride` on.
    pub inputs: &'a [E],
    /// Outputs of the slice before the first, `[n_out, depth_out]`; empty means zero. The state after the last slice
    /// is its output.
    pub state: &'a [E],
    /// `[n_slices, n_out, depth_out]`.
    pub outputs: &'a mut [E],
    /// What the backward pass wants of the sums `s`: [`Saved::len`] floats, or empty if there will be none.
    pub saved: &'a mut [E],
    /// Where to write what the routing decided, if wanted.
    pub tap: Option<Tap<'a, E>>,
}

/// What the last iteration of each slice decided, `[n_slices, n_in, n_out]` each.
pub struct Tap<'a, E> {
    /// Coupling coefficients `c`.
    pub couplings: &'a mut [E],
    /// Accumulated agreements `r` (very low for the padding class).
    pub agreements: &'a mut [E],
}

/// How much the forward pass saves.
pub struct Saved;

impl Saved {
    /// Floats saved for an utterance of `n_slices`.
    pub fn len(routing: &Routing, n_slices: usize) -> usize {
        n_slices * routing.packed_len()
    }
}

/// What the backward pass of an utterance reads and writes.
pub struct UtteranceBack<'a, E> {
    /// As in the forward pass.
    pub n_slices: usize,
    /// `inputs`, `state`, `outputs` and `saved` of the forward pass.
    pub inputs: &'a [E],
    /// As above.
    pub state: &'a [E],
    /// As above.
    pub outputs: &'a [E],
    /// As above.
    pub saved: &'a [E],
    /// Gradient of the outputs.
    pub d_outputs: &'a [E],
    /// Gradient of the inputs, window frames included; overwritten.
    pub d_inputs: &'a mut [E],
}

/// Where gradients may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientPaths {
    /// Through every iteration, or through the last one only.
    pub through_iterations: bool,
    /// To the previous slice, through the outputs carried from it.
    pub through_time: bool,
}

impl GradientPaths {
    /// The true gradient.
    pub const FULL: Self = Self { through_iterations: true, through_time: true };
}

/// Memory that routing reuses from call to call.
#[derive(Default)]
pub struct Workspace<E> {
    /// The scratch of each task.
    tasks: Vec<Buffer<E>>,
    /// Added to r at the start: 0, or never for lanes that are no class or padding.
    start: Buffer<E>,
    /// 1 for the lanes that may have a coupling, 0 for the others.
    valid: Buffer<E>,
    /// Couplings and gradients of r, side by side: `[slices, terms, n_in, 2, n_lanes]`. The first phase of the backward
    /// pass writes it from end to end, slice by slice.
    couplings: Buffer<E>,
    /// Gradients of the sums, then the poses they agreed with: `[slices, terms, packed]` each.
    d_sums: Buffer<E>,
    agreed: Buffer<E>,
    /// The scratch of each task of the variants.
    variants: Vec<variants::Scratch<E>>,
}

impl<E: Element> Workspace<E> {
    /// Nothing yet; grows with the largest call.
    pub fn new() -> Self {
        Self::default()
    }

    fn prepare_lanes(&mut self, routing: &Routing) {
        self.start.resize(routing.n_lanes());
        self.valid.resize(routing.n_lanes());
        for j in 0..routing.n_lanes() {
            let is_valid = j < routing.n_out && !(routing.has_padding_class && j == 0);
            self.start[j] = if is_valid { E::ZERO } else { E::from_f64(NEVER) };
            self.valid[j] = if is_valid { E::ONE } else { E::ZERO };
        }
    }
}

/// A capsule layer's routing with its packed parameters.
pub struct Router<E> {
    routing: Routing,
    /// `None` for DR and SDR without options, which have fused kernels.
    variant: Option<RoutingVariant>,
    packed: Packed<E>,
    extra: Buffer<E>,
}

/// Gradients of a router's parameters, packed.
pub struct RouterGradient<E> {
    packed: Packed<E>,
    extra: Buffer<E>,
}

impl<E: Element> Router<E> {
    /// A router of this shape; `None` is DR or SDR by the fused kernels.
    pub fn new(routing: Routing, variant: Option<RoutingVariant>) -> Self {
        Self { packed: Packed::new(&routing), extra: Buffer::new(), routing, variant }
    }

    /// Gradients of the right size.
    pub fn new_gradient(&self) -> RouterGradient<E> {
        RouterGradient { packed: Packed::new(&self.routing), extra: Buffer::new() }
    }

    /// The shape.
    pub fn routing(&self) -> Routing {
        self.routing
    }

    /// Parameters that the variant has beyond weights and biases.
    pub fn n_extra_params(&self) -> usize {
        self.variant.map_or(0, |variant| variant.n_extra_rows(&self.routing) * self.routing.n_out)
    }

    /// Takes weights and biases as [`Packed::pack`] does, and the variant's extra rows of `n_out` parameters.
    pub fn pack(&mut self, weights: &[E], biases: &[E], extra: &[E]) {
        self.packed.pack(&self.routing, weights, biases);
        variants::pack_extra(&self.routing, extra, &mut self.extra);
    }

    /// Floats of [`Utterance::saved`] for `n_slices`, with a backward pass to come or without.
    pub fn saved_len(&self, n_slices: usize, has_backward: bool) -> usize {
        match self.variant {
            Some(variant) => n_slices * variant.state_len(&self.routing),
            None if has_backward => Saved::len(&self.routing, n_slices),
            None => 0,
        }
    }

    /// The state after the last slice, from what a forward pass over at least one slice wrote.
    pub fn last_state<'a>(&self, outputs: &'a [E], saved: &'a [E]) -> &'a [E] {
        let (states, len) = match self.variant {
            Some(variant) => (saved, variant.state_len(&self.routing)),
            None => (outputs, self.routing.output_len()),
        };
        &states[states.len() - len..]
    }

    /// Routes every utterance; their bits depend neither on each other nor on the number of threads.
    pub fn forward(&self, utterances: &mut [Utterance<'_, E>], workspace: &mut Workspace<E>) {
        let Self { routing, variant, packed, extra } = self;
        match *variant {
            Some(variant) => variants::forward(routing, variant, packed, extra, utterances, workspace),
            None => forward(routing, packed, utterances, workspace),
        }
    }

    /// Gradients of the inputs (into the utterances) and of the parameters (into `gradient`, overwritten).
    pub fn backward(
        &self,
        paths: GradientPaths,
        utterances: &mut [UtteranceBack<'_, E>],
        gradient: &mut RouterGradient<E>,
        workspace: &mut Workspace<E>,
    ) {
        let Self { routing, variant, packed, extra } = self;
        let RouterGradient { packed: d_packed, extra: d_extra } = gradient;
        match *variant {
            Some(variant) => {
                variants::backward(routing, variant, packed, extra, paths, utterances, (d_packed, d_extra), workspace);
            }
            None => backward(routing, packed, paths, utterances, d_packed, workspace),
        }
    }
}

impl<E: Element> RouterGradient<E> {
    /// Adds to gradients shaped as the parameters in [`Router::pack`].
    pub fn add_to(&self, routing: &Routing, weights: &mut [E], biases: &mut [E], extra: &mut [E]) {
        self.packed.add_to(routing, weights, biases);
        variants::add_extra(routing, &self.extra, extra);
    }
}

/// Routes every utterance; see the module's equations.
///
/// The bits of an utterance depend neither on the others nor on the number of threads.
pub fn forward<E: Element>(
    routing: &Routing,
    packed: &Packed<E>,
    utterances: &mut [Utterance<'_, E>],
    workspace: &mut Workspace<E>,
) {
    (E::kernels().routing_forward)(routing, packed, utterances, workspace);
}

/// Gradients of the inputs (into the utterances) and of weights and biases (into `d_packed`, overwritten).
pub fn backward<E: Element>(
    routing: &Routing,
    packed: &Packed<E>,
    paths: GradientPaths,
    utterances: &mut [UtteranceBack<'_, E>],
    d_packed: &mut Packed<E>,
    workspace: &mut Workspace<E>,
) {
    (E::kernels().routing_backward)(routing, packed, paths, utterances, d_packed, workspace);
}

/// Panics if a slice of `utterance` has not the length that `routing` gives it.
fn check_forward<E: Element>(routing: &Routing, utterance: &Utterance<'_, E>) {
    let n = utterance.n_slices;
    let n_pairs = n * routing.n_in * routing.n_out;
    assert!(routing.n_iterations > 0, "routing needs an iteration");
    assert_eq!(utterance.inputs.len(), routing.inputs_len(n), "inputs of {n} slices");
    assert_eq!(utterance.outputs.len(), n * routing.output_len(), "outputs of {n} slices");
    assert!(utterance.state.is_empty() || utterance.state.len() == routing.output_len(), "state");
    assert!(utterance.saved.is_empty() || utterance.saved.len() == Saved::len(routing, n), "saved sums");
    if let Some(tap) = &utterance.tap {
        assert_eq!(tap.couplings.len(), n_pairs, "tapped couplings");
        assert_eq!(tap.agreements.len(), n_pairs, "tapped agreements");
    }
}

/// Panics if a slice of `utterance` has not the length that `routing` gives it.
fn check_backward<E: Element>(routing: &Routing, utterance: &UtteranceBack<'_, E>) {
    let n = utterance.n_slices;
    assert!(routing.n_iterations > 0, "routing needs an iteration");
    assert_eq!(utterance.inputs.len(), routing.inputs_len(n), "inputs of {n} slices");
    assert_eq!(utterance.d_inputs.len(), routing.inputs_len(n), "gradient of the inputs");
    assert_eq!(utterance.outputs.len(), n * routing.output_len(), "outputs of {n} slices");
    assert_eq!(utterance.d_outputs.len(), n * routing.output_len(), "gradient of the outputs");
    assert!(utterance.state.is_empty() || utterance.state.len() == routing.output_len(), "state");
    assert_eq!(utterance.saved.len(), Saved::len(routing, n), "saved sums");
}
