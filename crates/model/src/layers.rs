//! The layers: activations of a batch in, activations out; forward beside backward.
//!
//! Parameters and gradients belong to the caller and are lent as slices; activations belong to the caller too, who
//! hands a layer's input to its backward pass again.
//! What a layer saves besides (choices, moments) and its scratch belong to it, are sized once and reused.
//! Utterances run in parallel and never mix; sums over them are taken in their order, so results depend neither on
//! the number of threads nor, forward in inference, on batch mates.

mod attention;
mod batch_norm;
mod capsules;
mod conv_halves;
mod conv_maxout;
mod dense;
mod dropout;
mod encapsulate;
mod layer_norm;
mod lengths;
mod lstm;
mod max_pool;
mod maxout;
mod per_thread;
mod positions;
mod relu;
mod residual;

#[cfg(test)]
mod tests;

use rayon::prelude::*;
use srf_kernels::Element;

pub use attention::Attention;
pub use batch_norm::{BatchNorm, Statistics};
pub use capsules::{CapsuleGradient, CapsuleParams, Capsules, Decisions};
pub use conv_halves::ConvHalves;
pub use conv_maxout::{BranchGradient, ConvMaxout, ConvScratch};
pub use dense::Dense;
pub use dropout::Dropout;
pub use encapsulate::Encapsulate;
pub use layer_norm::LayerNorm;
pub use lengths::Lengths;
pub use lstm::{CellGradient, CellParams, Lstm};
pub use max_pool::MaxPool;
pub use maxout::{maxout_backward, maxout_forward};
pub use positions::Positions;
pub use relu::{relu_backward, relu_forward};
pub use residual::{add, copy};

/// Where dropout's decisions come from in training.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// The seed of the step.
    pub seed: u64,
    /// A number for each utterance of the batch that names it in any batch.
    pub utterances: &'a [u64],
}

impl Draw<'_> {
    /// The dropout of one layer for one utterance.
    pub fn dropout(self, rate: f64, layer: u32, utterance: usize) -> Option<srf_kernels::Dropout> {
        srf_kernels::Dropout::new(rate, self.seed, layer, self.utterances[utterance])
    }
}

/// Scale and shift of a norm.
#[derive(Clone, Copy, Debug)]
pub struct NormParams<'a, E> {
    /// Scale.
    pub gamma: &'a [E],
    /// Shift.
    pub beta: &'a [E],
}

/// Their gradients, which a backward pass adds to.
#[derive(Debug)]
pub struct NormGradient<'a, E> {
    /// Of the scale.
    pub gamma: &'a mut [E],
    /// Of the shift.
    pub beta: &'a mut [E],
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
