//! Routings that fit the framework as DR and SDR do: the same votes and windows, other couplings and poses.
//!
//! [`RoutingVariant`] names them; what each computes stands in `sums` and `em`, how agreements become couplings
//! in `lanes`, the way through an utterance and back in time in `walk`.
//! Unlike in the fused kernels of DR and SDR, a slice's votes are all in memory while it is routed, so that a variant
//! can read them as often as it needs.
//!
//! A variant may carry more than its outputs from slice to slice: the *state*, of [`RoutingVariant::state_len`] floats,
//! zeros at the start.
//! In [`Utterance`], `state` and `saved` hold such states: `saved` gets that of every slice, and is needed even
//! without a backward pass.
//!
//! Some variants have extra parameters, all of them rows of a number for each output capsule
//! ([`RoutingVariant::n_extra_rows`]).

mod em;
mod lanes;
mod sums;
mod walk;

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use self::em::Em;
pub use self::lanes::Normalizer;
use self::lanes::{Lanes, blocks};
use self::sums::Sums;
pub use self::walk::Scratch;
pub(crate) use self::walk::{backward as walk_backward, forward as walk_forward};
use super::{GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace};
use crate::{BLOCK, Buffer, Element};

/// A routing other than plain DR and SDR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoutingVariant {
    /// DR or SDR with other couplings.
    Dynamic(Dynamic),
    /// Couplings by a learned matrix, and by gated agreement with the slice before.
    SelfRouting,
    /// Agreement with layer-normed poses.
    Inverted {
        /// Whether the outputs are squashed sums, whose lengths mean something, instead of layer-normed ones.
        keeps_lengths: bool,
    },
    /// Gaussians over the votes.
    Em,
}

/// Options of DR and SDR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dynamic {
    /// How agreements become couplings.
    pub normalizer: Normalizer,
    /// Strength λ of the entropy regularizer; `None` turns it off.
    pub entropy: Option<f64>,
    /// Whether agreements start from learned numbers instead of zero.
    pub learns_start: bool,
}

impl Dynamic {
    /// DR and SDR without options.
    pub const PLAIN: Self = Self { normalizer: Normalizer::Softmax, entropy: None, learns_start: false };
}

impl<E: Element> Sums<E> {
    /// `variant` is not EM.
    fn new(layer: &Layer<'_, E>, variant: RoutingVariant) -> Self {
        match variant {
            RoutingVariant::Dynamic(options) => Self::dynamic(options),
            RoutingVariant::SelfRouting => Self::self_routing(),
            RoutingVariant::Inverted { keeps_lengths } => Self::inverted(layer.routing.depth_out, keeps_lengths),
            RoutingVariant::Em => unreachable!("EM has a file of its own"),
        }
    }
}

impl RoutingVariant {
    /// Rows of `n_out` parameters that the variant has beyond weights and biases; `sums` and `em` say in which order.
    pub fn n_extra_rows(self, routing: &Routing) -> usize {
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
    variant: RoutingVariant,
    /// Blocks of output capsules, and blocks of packed poses: `n_blocks · depth_out`.
    n_blocks: usize,
    len: usize,
    /// Floats of a state.
    state_len: usize,
    weights: &'a [Lanes<E>],
    biases: &'a [Lanes<E>],
    extra: &'a [Lanes<E>],
    /// As in [`Workspace`].
    mask: &'a [Lanes<E>],
    valid: &'a [Lanes<E>],
}

impl<'a, E: Element> Layer<'a, E> {
    fn new(
        routing: &Routing,
        variant: RoutingVariant,
        packed: &'a Packed<E>,
        extra: &'a [E],
        lanes: [&'a [E]; 2],
    ) -> Self {
        packed.check(routing, "weights");
        assert_eq!(extra.len(), variant.n_extra_rows(routing) * routing.n_lanes(), "extra rows of the variant");
        Self {
            routing: *routing,
            variant,
            n_blocks: routing.n_lanes() / BLOCK,
            len: routing.packed_len() / BLOCK,
            state_len: variant.state_len(routing),
            weights: blocks(&packed.weights),
            biases: blocks(&packed.biases),
            extra: blocks(extra),
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

/// Utterances are shared out to at most this many tasks, by their number alone: sums of gradients over tasks are the same
/// whatever the number of threads.
const MOST_TASKS: usize = 16;

/// Routes every utterance as `variant` does; `extra` are its packed rows, see [`pack_extra`].
pub fn forward<E: Element>(
    routing: &Routing,
    variant: RoutingVariant,
    packed: &Packed<E>,
    extra: &[E],
    utterances: &mut [Utterance<'_, E>],
    workspace: &mut Workspace<E>,
) {
    utterances
        .iter()
        .for_each(|utterance| check(routing, variant, utterance.n_slices, utterance.state, utterance.saved));
    workspace.prepare_lanes(routing);
    let Workspace { start, valid, variants, .. } = workspace;
    let layer = Layer::new(routing, variant, packed, extra, [start, valid]);
    run(utterances, variants, |scratch, utterances| {
        utterances.iter_mut().for_each(|utterance| (E::kernels().variant_forward)(&layer, utterance, scratch));
    });
}

/// Gradients of the inputs (into the utterances), of weights and biases (into `d_packed`) and of the extra
/// rows (into `d_extra`, packed), all overwritten.
pub fn backward<E: Element>(
    routing: &Routing,
    variant: RoutingVariant,
    packed: &Packed<E>,
    extra: &[E],
    paths: GradientPaths,
    utterances: &mut [UtteranceBack<'_, E>],
    (d_packed, d_extra): (&mut Packed<E>, &mut Buffer<E>),
    workspace: &mut Workspace<E>,
) {
    d_packed.check(routing, "gradient");
    utterances
        .iter()
        .for_each(|utterance| check(routing, variant, utterance.n_slices, utterance.state, utterance.saved));
    workspace.prepare_lanes(routing);
    let Workspace { start, valid, variants, .. } = workspace;
    let layer = Layer::new(routing, variant, packed, extra, [start, valid]);
    let n_tasks = run(utterances, variants, |scratch, utterances| {
        scratch.clear_gradients(&layer);
        utterances.iter_mut().for_each(|utterance| (E::kernels().variant_backward)(&layer, paths, utterance, scratch));
    });
    let tasks = &variants[..n_tasks];
    d_extra.resize(extra.len());
    sum(tasks, |task| &task.d_weights, &mut d_packed.weights);
    sum(tasks, |task| &task.d_biases, &mut d_packed.biases);
    sum(tasks, |task| &task.d_extra, d_extra);
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

/// Panics if states have not the length that the variant gives them; lengths of the rest are found by indexing.
fn check<E>(routing: &Routing, variant: RoutingVariant, n_slices: usize, state: &[E], saved: &[E]) {
    let len = variant.state_len(routing);
    assert!(routing.n_iterations > 0, "routing needs an iteration");
    assert!(state.is_empty() || state.len() == len, "state");
    assert_eq!(saved.len(), n_slices * len, "states of {n_slices} slices");
}

/// Rows of `n_out` numbers to rows of `n_lanes`, zero beyond the last capsule.
pub fn pack_extra<E: Element>(routing: &Routing, extra: &[E], packed: &mut Buffer<E>) {
    packed.resize(extra.len() / routing.n_out * routing.n_lanes());
    packed.fill(E::ZERO);
    for (row, packed) in extra.chunks_exact(routing.n_out).zip(packed.chunks_exact_mut(routing.n_lanes())) {
        packed[..routing.n_out].copy_from_slice(row);
    }
}

/// Adds packed rows to rows of `n_out` numbers.
pub fn add_extra<E: Element>(routing: &Routing, packed: &[E], extra: &mut [E]) {
    for (row, packed) in extra.chunks_exact_mut(routing.n_out).zip(packed.chunks_exact(routing.n_lanes())) {
        row.iter_mut().zip(packed).for_each(|(value, packed)| *value += *packed);
    }
}
