//! The routing of one capsule layer, whichever it is: weights packed once, utterances in and out.

use super::family::{self, Member};
use super::{GradientPaths, Packed, Routing, Saved, Utterance, UtteranceBack, Workspace};
use crate::{Buffer, Element};

/// A capsule layer's routing with its packed parameters.
pub struct Router<E> {
    routing: Routing,
    /// None for DR and SDR as they are.
    member: Option<Member>,
    packed: Packed<E>,
    own: Buffer<E>,
}

/// Gradients of a router's parameters, packed.
pub struct RouterGradient<E> {
    packed: Packed<E>,
    own: Buffer<E>,
}

impl<E: Element> Router<E> {
    /// A router of this shape; a member of the family, or DR or SDR by the fused kernels.
    pub fn new(routing: Routing, member: Option<Member>) -> Self {
        Self { packed: Packed::new(&routing), own: Buffer::new(), routing, member }
    }

    /// Gradients of the right size.
    pub fn new_gradient(&self) -> RouterGradient<E> {
        RouterGradient { packed: Packed::new(&self.routing), own: Buffer::new() }
    }

    /// The shape.
    pub fn routing(&self) -> Routing {
        self.routing
    }

    /// Numbers that the member has of its own.
    pub fn n_own(&self) -> usize {
        self.member.map_or(0, |member| member.n_own_rows(&self.routing) * self.routing.n_out)
    }

    /// Takes weights and biases as [`Packed::pack`] does, and the member's own rows of `n_out` numbers.
    pub fn pack(&mut self, weights: &[E], biases: &[E], own: &[E]) {
        self.packed.pack(&self.routing, weights, biases);
        family::pack_own(&self.routing, own, &mut self.own);
    }

    /// Floats of [`Utterance::saved`] for `n_slices`, with a backward pass to come or without.
    pub fn saved_len(&self, n_slices: usize, has_backward: bool) -> usize {
        match self.member {
            Some(member) => n_slices * member.state_len(&self.routing),
            None if has_backward => Saved::len(&self.routing, n_slices),
            None => 0,
        }
    }

    /// The state after the last slice, from what a forward pass over at least one slice wrote.
    pub fn last_state<'a>(&self, outputs: &'a [E], saved: &'a [E]) -> &'a [E] {
        let (states, len) = match self.member {
            Some(member) => (saved, member.state_len(&self.routing)),
            None => (outputs, self.routing.output_len()),
        };
        &states[states.len() - len..]
    }

    /// Routes every utterance; their bits depend neither on each other nor on the number of threads.
    pub fn forward(&self, utterances: &mut [Utterance<'_, E>], workspace: &mut Workspace<E>) {
        let Self { routing, member, packed, own } = self;
        match *member {
            Some(member) => family::forward(routing, member, packed, own, utterances, workspace),
            None => super::forward(routing, packed, utterances, workspace),
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
        let Self { routing, member, packed, own } = self;
        let RouterGradient { packed: d_packed, own: d_own } = gradient;
        match *member {
            Some(member) => {
                family::backward(routing, member, packed, own, paths, utterances, d_packed, d_own, workspace);
            }
            None => super::backward(routing, packed, paths, utterances, d_packed, workspace),
        }
    }
}

impl<E: Element> RouterGradient<E> {
    /// Adds to gradients shaped as the parameters in [`Router::pack`].
    pub fn add_to(&self, routing: &Routing, weights: &mut [E], biases: &mut [E], own: &mut [E]) {
        self.packed.add_to(routing, weights, biases);
        family::add_own(routing, &self.own, own);
    }
}
