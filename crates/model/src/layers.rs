//! The layers of the networks, each with its forward and its backward pass.
//!
//! A layer owns the slots of its parameters, what it saves for the backward pass, and nothing else: parameters and
//! gradients come with the pass ([`Forward`], [`Backward`]), activations belong to the caller, who hands a layer's
//! input to its backward pass again.
//! Memory is sized by the first pass and reused. A layer that has not run yet holds no memory of its size.
//!
//! Work is split by utterances, or by fixed blocks of time where every frame is treated by itself; sums are taken in
//! the order of utterances. Results therefore depend neither on the number of threads nor, in inference, on the rest
//! of the batch.

mod attention;
mod capsules;
mod conv;
mod dense;
mod elementwise;
mod lstm;
mod norms;

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use srf_kernels::{Element, routing};

pub use self::attention::{Attention, Positions};
pub use self::capsules::{Capsules, Decisions, Encapsulate, Lengths, router};
pub(crate) use self::conv::ConvScratch;
pub use self::conv::{ConvMaxout, MaxPool};
pub use self::dense::Dense;
pub use self::elementwise::{Dropout, add, copy, maxout_backward, maxout_forward, relu_backward, relu_forward};
pub use self::lstm::Lstm;
pub use self::norms::{BatchNorm, LayerNorm};

use crate::frames::Frames;
use crate::params::Slot;

/// How a pass is run; the default is inference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode<'a> {
    /// Whether batch norms use the statistics of the batch (and update the moving ones) or the moving ones.
    pub uses_batch_statistics: bool,
    /// What dropout is drawn from; `None` drops nothing.
    pub dropout: Option<DropoutSeed<'a>>,
    /// Whether to keep the couplings and agreements of the routing; networks without routing have none.
    pub keeps_decisions: bool,
}

/// What dropout is drawn from in training.
#[derive(Clone, Copy, Debug)]
pub struct DropoutSeed<'a> {
    /// The seed of the step.
    pub seed: u64,
    /// A number for each utterance of the batch that identifies it in any batch.
    pub utterances: &'a [u64],
}

impl DropoutSeed<'_> {
    /// The dropout of one layer for one utterance.
    pub fn dropout(self, rate: f64, layer: u32, utterance: usize) -> Option<srf_kernels::Dropout> {
        srf_kernels::Dropout::new(rate, self.seed, layer, self.utterances[utterance])
    }
}

/// Scratch memory that all layers share.
pub struct Workspace<E> {
    pub(crate) routing: routing::Workspace<E>,
    pub(crate) conv: ConvScratch<E>,
}

impl<E: Element> Default for Workspace<E> {
    fn default() -> Self {
        Self { routing: routing::Workspace::new(), conv: ConvScratch::default() }
    }
}

/// What every layer needs in a forward pass.
pub struct Forward<'a, E> {
    /// The trainable part of the model.
    pub params: &'a [E],
    /// The moving statistics of the model; written only in passes that use the statistics of the batch.
    pub statistics: &'a mut [E],
    /// How the pass is run.
    pub mode: Mode<'a>,
    /// Scratch memory.
    pub workspace: &'a mut Workspace<E>,
}

/// What every layer needs in a backward pass.
pub struct Backward<'a, E> {
    /// The trainable part of the model, as in the forward pass.
    pub params: &'a [E],
    /// The gradient of the trainable part, which layers add to.
    pub gradient: &'a mut [E],
    /// How the forward pass was run.
    pub mode: Mode<'a>,
    /// Scratch memory.
    pub workspace: &'a mut Workspace<E>,
}

/// Where to write the gradient of a layer's input; `None` if nothing before the layer is trained.
pub type Wanted<'a, E> = Option<&'a mut Frames<E>>;

impl<E> Backward<'_, E> {
    /// Gradients of several tensors.
    pub fn gradients<const N: usize>(&mut self, slots: [Slot; N]) -> [&mut [E]; N] {
        Slot::disjoint_mut(slots, self.gradient)
    }
}

/// Sums the gradients that utterances left one after another in `parts`, in their order, into the first of them.
fn sum_in_order<E: Element>(parts: &mut [E], n: usize) {
    /// Values that one task sums over all utterances.
    const CHUNK: usize = 2048;
    let (total, rest) = parts.split_at_mut(n.min(parts.len()));
    total.par_chunks_mut(CHUNK).enumerate().for_each(|(index, total)| {
        for part in rest.chunks_exact(n) {
            (E::kernels().accumulate)(&part[index * CHUNK..][..total.len()], total);
        }
    });
}

/// Scratch memory of which every thread of the pool has its own.
#[derive(Debug, Default)]
pub(crate) struct PerThread<T> {
    slots: Vec<Mutex<T>>,
}

impl<T: Default> PerThread<T> {
    /// Makes sure that every thread of the current pool has its own; call it before going parallel.
    pub(crate) fn prepare(&mut self) {
        let n_threads = rayon::current_num_threads();
        self.slots.resize_with(self.slots.len().max(n_threads), Mutex::default);
    }

    /// Lends the current thread its own.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        let index = rayon::current_thread_index().unwrap_or(0);
        // What a panicking thread left is overwritten before it is read.
        run(&mut self.slots[index].lock().unwrap_or_else(PoisonError::into_inner))
    }
}
