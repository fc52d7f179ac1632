//! A capsule layer: windows of slices of capsules in, slices of capsules out, by routing.
//!
//! Every input capsule of the window votes for every output capsule, u = W x + b, and [`kernels::routing`] decides how
//! much each vote counts.
//!
//! # Shapes
//! - in: slices of `[height][depth]` with the window's left and right part as margin
//! - out: slices of `[n_out][depth_out]`, as many as came in
//! - W `[window * height][n_out][depth_out][depth]`, b `[window * height][n_out][depth_out]`

use kernels::routing::{self, GradientPaths, Packed, Routing, Saved, Tap, Utterance, UtteranceBack, Workspace};
use kernels::{Buffer, Element};

use crate::frames::{Frames, split};

/// Weights and biases of a capsule layer.
#[derive(Clone, Copy)]
pub struct CapsuleParams<'a, E> {
    /// W.
    pub weight: &'a [E],
    /// b.
    pub bias: &'a [E],
}

/// Their gradients, which a backward pass adds to.
pub struct CapsuleGradient<'a, E> {
    /// Of W.
    pub weight: &'a mut [E],
    /// Of b.
    pub bias: &'a mut [E],
}

/// What the routing of an utterance decided, `[slice][input capsule][output capsule]` each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions<E> {
    /// Coupling coefficients of the last iteration.
    pub couplings: Vec<E>,
    /// Agreements of the last iteration.
    pub agreements: Vec<E>,
}

/// The layer; saves the sums before the squash.
pub struct Capsules<E> {
    routing: Routing,
    paths: GradientPaths,
    packed: Packed<E>,
    d_packed: Packed<E>,
    saved: Buffer<E>,
}

impl<E: Element> Capsules<E> {
    /// A layer that routes so and lets gradients pass there.
    pub fn new(routing: Routing, paths: GradientPaths) -> Self {
        let (packed, d_packed) = (Packed::new(&routing), Packed::new(&routing));
        Self { routing, paths, packed, d_packed, saved: Buffer::new() }
    }

    /// Computes `y` from `x`; fills `decisions`, one for each utterance, unless it is empty.
    pub fn forward(
        &mut self,
        params: CapsuleParams<'_, E>,
        x: &Frames<E>,
        y: &mut Frames<E>,
        workspace: &mut Workspace<E>,
        decisions: &mut [Decisions<E>],
    ) {
        let routing = self.routing;
        self.packed.pack(&routing, params.weight, params.bias);
        y.resize_for(x.lengths().iter().copied());
        self.saved.resize(Saved::len(&routing, x.n_frames()));
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| Saved::len(&routing, n)));
        let mut taps = decisions.iter_mut().zip(x.lengths()).map(|(d, &n)| d.tap(n * routing.n_in * routing.n_out));
        let mut utterances: Vec<_> = y
            .each_real_mut()
            .into_iter()
            .zip(saved)
            .enumerate()
            .map(|(n, (outputs, saved))| {
                let inputs = &x.padded(n)[..routing.inputs_len(x.lengths()[n])];
                Utterance { n_slices: x.lengths()[n], inputs, state: &[], outputs, saved, tap: taps.next() }
            })
            .collect();
        routing::forward(&routing, &self.packed, &mut utterances, workspace);
    }

    /// Adds to the gradients of the parameters and writes that of `x`, margin included, from that of `y`.
    ///
    /// `x` and `y` are those of the forward pass.
    pub fn backward(
        &mut self,
        x: &Frames<E>,
        y: &Frames<E>,
        grad_y: &Frames<E>,
        gradient: CapsuleGradient<'_, E>,
        grad_x: &mut Frames<E>,
        workspace: &mut Workspace<E>,
    ) {
        let routing = self.routing;
        grad_x.resize_for(x.lengths().iter().copied());
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| Saved::len(&routing, n)));
        let mut utterances: Vec<_> = grad_x
            .each_padded_mut()
            .into_iter()
            .zip(saved)
            .enumerate()
            .map(|(n, (d_inputs, saved))| {
                let n_slices = x.lengths()[n];
                let len = routing.inputs_len(n_slices);
                UtteranceBack {
                    n_slices,
                    inputs: &x.padded(n)[..len],
                    state: &[],
                    outputs: y.real(n),
                    saved,
                    d_outputs: grad_y.real(n),
                    d_inputs: &mut d_inputs[..len],
                }
            })
            .collect();
        routing::backward(&routing, &self.packed, self.paths, &mut utterances, &mut self.d_packed, workspace);
        self.d_packed.add_to(&routing, gradient.weight, gradient.bias);
    }
}

impl<E: Element> Decisions<E> {
    /// Room for `n` of each.
    fn tap(&mut self, n: usize) -> Tap<'_, E> {
        self.couplings.resize(n, E::ZERO);
        self.agreements.resize(n, E::ZERO);
        Tap { couplings: &mut self.couplings, agreements: &mut self.agreements }
    }
}
