//! A capsule layer: windows of slices of capsules in, slices of capsules out, by routing.
//!
//! Every input capsule of the window votes for every output capsule, u = W x + b, and [`srf_kernels::routing`] decides how
//! much each vote counts.
//!
//! # Shapes
//! - in: slices of `[height][depth]` with the window's left and right part as margin
//! - out: slices of `[n_out][depth_out]`, as many as came in
//! - W `[window * height][n_out][depth_out][depth]`, b `[window * height][n_out][depth_out]`; what a routing of the
//!   [`family`](srf_kernels::routing::family) has of its own, rows of `[n_out]`

use srf_kernels::routing::{GradientPaths, Router, RouterGradient, Tap, Utterance, UtteranceBack, Workspace};
use srf_kernels::{Buffer, Element};

use crate::frames::{Frames, split};

/// Weights and biases of a capsule layer.
#[derive(Clone, Copy)]
pub struct CapsuleParams<'a, E> {
    /// W.
    pub weight: &'a [E],
    /// b.
    pub bias: &'a [E],
    /// The routing's own.
    pub own: &'a [E],
}

/// Their gradients, which a backward pass adds to.
pub struct CapsuleGradient<'a, E> {
    /// Of W.
    pub weight: &'a mut [E],
    /// Of b.
    pub bias: &'a mut [E],
    /// Of the routing's own.
    pub own: &'a mut [E],
}

/// What the routing of an utterance decided, `[slice][input capsule][output capsule]` each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions<E> {
    /// Coupling coefficients of the last iteration.
    pub couplings: Vec<E>,
    /// Agreements of the last iteration.
    pub agreements: Vec<E>,
}

/// The layer; saves what its router wants on the way back.
pub struct Capsules<E> {
    router: Router<E>,
    gradient: RouterGradient<E>,
    paths: GradientPaths,
    saved: Buffer<E>,
}

impl<E: Element> Capsules<E> {
    /// A layer that routes so and lets gradients pass there.
    pub fn new(router: Router<E>, paths: GradientPaths) -> Self {
        Self { gradient: router.new_gradient(), router, paths, saved: Buffer::new() }
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
        self.router.pack(params.weight, params.bias, params.own);
        let (router, routing) = (&self.router, self.router.routing());
        y.resize_for(x.lengths().iter().copied());
        self.saved.resize(router.saved_len(x.n_frames(), true));
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| router.saved_len(n, true)));
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
        router.forward(&mut utterances, workspace);
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
        let (router, routing) = (&self.router, self.router.routing());
        grad_x.resize_for(x.lengths().iter().copied());
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| router.saved_len(n, true)));
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
        router.backward(self.paths, &mut utterances, &mut self.gradient, workspace);
        self.gradient.add_to(&routing, gradient.weight, gradient.bias, gradient.own);
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
