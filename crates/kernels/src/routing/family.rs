//! The family of routings that fit the framework beside DR and SDR: the same votes and windows in, poses out.
//!
//! [`Member`] tells them apart; what each computes stands in `sums` and `em`, how agreements become couplings in
//! `couplings`. What they have in common is here: computing votes, walking through an utterance and back in time, and
//! summing the gradients of weights.
//! Unlike the fused kernels of DR and SDR, a slice's votes are all in memory while it is routed, so that a member is
//! free to read them as often as it likes.
//!
//! A member may carry more than its outputs from slice to slice: the *state*, of [`Member::state_len`] floats, zeros at
//! the start.
//! In [`Utterance`], `state` and `saved` hold such states: `saved` gets that of every slice, and is needed even
//! without a backward pass.
//!
//! Some members have parameters of their own, all of them rows of a number for each output capsule
//! ([`Member::n_own_rows`]).

mod couplings;
mod em;
mod lanes;
mod poses;
mod slice;
mod sums;
mod votes;
mod walk;

#[cfg(test)]
mod tests;

use rayon::prelude::*;

pub use self::couplings::Normaliser;
use self::em::Em;
use self::lanes::{Lanes, blocks};
use self::sums::Sums;
pub use self::walk::Scratch;
pub(crate) use self::walk::{backward as walk_backward, forward as walk_forward};
use super::{GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace};
use crate::{BLOCK, Buffer, Element};

/// A routing of the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Member {
    /// DR or SDR with other couplings.
    Dynamic(Dynamic),
    /// Couplings by a learned matrix, and by gated agreement with the slice before.
    SelfRouting,
    /// Agreement with layer-normed poses.
    Inverted {
        /// Whether the outputs are squashed sums, whose lengths tell something, instead of layer-normed ones.
        keeps_lengths: bool,
    },
    /// Gaussians over the votes.
    Em,
}

/// What DR and SDR may do otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dynamic {
    /// How agreements become couplings.
    pub normaliser: Normaliser,
    /// λ, if couplings are to stay close to equal ones.
    pub entropy: Option<f64>,
    /// Whether agreements start from learned numbers instead of zero.
    pub learns_start: bool,
}

impl Dynamic {
    /// DR and SDR as they are.
    pub const PLAIN: Self = Self { normaliser: Normaliser::Softmax, entropy: None, learns_start: false };
}

impl<E: Element> Sums<E> {
    /// `member` is not EM.
    fn new(layer: &Layer<'_, E>, member: Member) -> Self {
        match member {
            Member::Dynamic(options) => Self::dynamic(options),
            Member::SelfRouting => Self::self_routing(),
            Member::Inverted { keeps_lengths } => Self::inverted(layer.routing.depth_out, keeps_lengths),
            Member::Em => unreachable!("EM has a file of its own"),
        }
    }
}

impl Member {
    /// Rows of `n_out` parameters that the member has of its own; `sums` and `em` say in which order.
    pub fn n_own_rows(self, routing: &Routing) -> usize {
        match self {
            Self::Dynamic(Dynamic { learns_start: false, .. }) | Self::Inverted { .. } => 0,
            Self::Dynamic(_) => routing.n_in,
            Self::SelfRouting => routing.n_in * (routing.depth_in + 1) + 1,
            Self::Em => em::N_ROWS,
        }
    }

    /// Floats carried from slice to slice.
    pub fn state_len(self, routing: &Routing) -> usize {
        match self {
            Self::Em => 2 * routing.packed_len() + 3 * routing.n_lanes(),
            _ => routing.packed_len(),
        }
    }
}

/// What the kernels need to know of a layer.
pub struct Layer<'a, E> {
    routing: Routing,
    member: Member,
    /// Blocks of output capsules, and blocks of packed poses: `n_blocks · depth_out`.
    n_blocks: usize,
    len: usize,
    /// Floats of a state.
    state_len: usize,
    weights: &'a [Lanes<E>],
    biases: &'a [Lanes<E>],
    own: &'a [Lanes<E>],
    /// As in [`Workspace`].
    mask: &'a [Lanes<E>],
    valid: &'a [Lanes<E>],
}

impl<'a, E: Element> Layer<'a, E> {
    fn new(routing: &Routing, member: Member, packed: &'a Packed<E>, own: &'a [E], lanes: [&'a [E]; 2]) -> Self {
        assert_eq!(packed.biases.len(), routing.n_in * routing.packed_len(), "packed biases");
        assert_eq!(packed.weights.len(), packed.biases.len() * routing.depth_in, "packed weights");
        assert_eq!(own.len(), member.n_own_rows(routing) * routing.n_lanes(), "the member's own rows");
        Self {
            routing: *routing,
            member,
            n_blocks: routing.n_lanes() / BLOCK,
            len: routing.packed_len() / BLOCK,
            state_len: member.state_len(routing),
            weights: blocks(&packed.weights),
            biases: blocks(&packed.biases),
            own: blocks(own),
            mask: blocks(lanes[0]),
            valid: blocks(lanes[1]),
        }
    }

    /// The input poses of slice `t`.
    #[inline(always)]
    fn window<'b>(&self, inputs: &'b [E], t: usize) -> &'b [E] {
        &inputs[t * self.routing.stride..][..self.routing.n_in * self.routing.depth_in]
    }

    #[inline(always)]
    fn window_mut<'b>(&self, inputs: &'b mut [E], t: usize) -> &'b mut [E] {
        &mut inputs[t * self.routing.stride..][..self.routing.n_in * self.routing.depth_in]
    }

    /// Packed poses to `[n_out][depth_out]`.
    #[inline(always)]
    fn unpack(&self, packed: &[E], poses: &mut [E]) {
        let depth = self.routing.depth_out;
        for (n, pose) in poses.iter_mut().enumerate() {
            *pose = packed[self.routing.packed_index(n / depth, n % depth)];
        }
    }

    /// `[n_out][depth_out]` to packed poses, zero in lanes that are no capsule.
    #[inline(always)]
    fn pack(&self, poses: &[E], packed: &mut [E]) {
        let depth = self.routing.depth_out;
        packed.fill(E::ZERO);
        for (n, pose) in poses.iter().enumerate() {
            packed[self.routing.packed_index(n / depth, n % depth)] = *pose;
        }
    }
}

/// Utterances are dealt to at most this many tasks, by their number alone: sums of gradients over tasks are the same
/// whatever the number of threads.
const MOST_TASKS: usize = 16;

/// Routes every utterance as `member` does; `own` are its packed rows, see [`pack_own`].
pub fn forward<E: Element>(
    routing: &Routing,
    member: Member,
    packed: &Packed<E>,
    own: &[E],
    utterances: &mut [Utterance<'_, E>],
    workspace: &mut Workspace<E>,
) {
    utterances
        .iter()
        .for_each(|utterance| check(routing, member, utterance.n_slices, utterance.state, utterance.saved));
    workspace.prepare_lanes(routing);
    let Workspace { start, valid, family, .. } = workspace;
    let layer = Layer::new(routing, member, packed, own, [start, valid]);
    run(utterances, family, |scratch, utterances| {
        utterances.iter_mut().for_each(|utterance| (E::kernels().family_forward)(&layer, utterance, scratch));
    });
}

/// Gradients of the inputs (into the utterances), of weights and biases (into `d_packed`) and of the member's own rows
/// (into `d_own`, packed), all overwritten.
#[expect(clippy::too_many_arguments, reason = "what goes in and what comes out, once")]
pub fn backward<E: Element>(
    routing: &Routing,
    member: Member,
    packed: &Packed<E>,
    own: &[E],
    paths: GradientPaths,
    utterances: &mut [UtteranceBack<'_, E>],
    d_packed: &mut Packed<E>,
    d_own: &mut Buffer<E>,
    workspace: &mut Workspace<E>,
) {
    utterances
        .iter()
        .for_each(|utterance| check(routing, member, utterance.n_slices, utterance.state, utterance.saved));
    workspace.prepare_lanes(routing);
    let Workspace { start, valid, family, .. } = workspace;
    let layer = Layer::new(routing, member, packed, own, [start, valid]);
    let n_tasks = run(utterances, family, |scratch, utterances| {
        scratch.clear_gradients(&layer);
        utterances.iter_mut().for_each(|utterance| (E::kernels().family_backward)(&layer, paths, utterance, scratch));
    });
    let tasks = &family[..n_tasks];
    d_own.resize(own.len());
    sum(tasks, |task| &task.d_weights, &mut d_packed.weights);
    sum(tasks, |task| &task.d_biases, &mut d_packed.biases);
    sum(tasks, |task| &task.d_own, d_own);
}

/// Runs tasks that together cover all utterances; gives their number.
fn run<E: Element, U: Send>(
    utterances: &mut [U],
    scratch: &mut Vec<Scratch<E>>,
    task: impl Fn(&mut Scratch<E>, &mut [U]) + Sync,
) -> usize {
    let n_each = utterances.len().div_ceil(MOST_TASKS).max(1);
    let n_tasks = utterances.len().div_ceil(n_each);
    if scratch.len() < n_tasks {
        scratch.resize_with(n_tasks, Scratch::default);
    }
    match &mut scratch[..n_tasks] {
        // A stream: not worth a visit to the threads.
        [only] => task(only, utterances),
        all => {
            let tasks = all.par_iter_mut().zip(utterances.par_chunks_mut(n_each));
            tasks.for_each(|(scratch, some)| task(scratch, some));
        }
    }
    n_tasks
}

/// Sums what the tasks gathered, in their order.
fn sum<E: Element>(tasks: &[Scratch<E>], part: impl Fn(&Scratch<E>) -> &[E] + Sync, total: &mut [E]) {
    /// Values that one thread sums at a time.
    const CHUNK: usize = 4096;
    total.par_chunks_mut(CHUNK).enumerate().for_each(|(index, total)| {
        total.fill(E::ZERO);
        for task in tasks {
            (E::kernels().accumulate)(&part(task)[index * CHUNK..][..total.len()], total);
        }
    });
}

/// Panics if states have not the length that the member gives them; lengths of the rest are found by indexing.
fn check<E>(routing: &Routing, member: Member, n_slices: usize, state: &[E], saved: &[E]) {
    let len = member.state_len(routing);
    assert!(routing.n_iterations > 0, "routing needs an iteration");
    assert!(state.is_empty() || state.len() == len, "state");
    assert_eq!(saved.len(), n_slices * len, "states of {n_slices} slices");
}

/// Rows of `n_out` numbers to rows of `n_lanes`, zero beyond the last capsule.
pub fn pack_own<E: Element>(routing: &Routing, own: &[E], packed: &mut Buffer<E>) {
    packed.resize(own.len() / routing.n_out * routing.n_lanes());
    packed.fill(E::ZERO);
    for (row, packed) in own.chunks_exact(routing.n_out).zip(packed.chunks_exact_mut(routing.n_lanes())) {
        packed[..routing.n_out].copy_from_slice(row);
    }
}

/// Adds packed rows to rows of `n_out` numbers.
pub fn add_own<E: Element>(routing: &Routing, packed: &[E], own: &mut [E]) {
    for (row, packed) in own.chunks_exact_mut(routing.n_out).zip(packed.chunks_exact(routing.n_lanes())) {
        row.iter_mut().zip(packed).for_each(|(value, packed)| *value += *packed);
    }
}
