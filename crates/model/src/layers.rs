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
//!
//! A network of one's own: a block of layers, and a chain of such blocks.
//!
//! ```
//! use srf_kernels::Element;
//! use srf_model::frames::Frames;
//! use srf_model::layers::{Backward, Dense, Forward, LayerNorm, Wanted, relu_backward, relu_forward};
//! use srf_model::network::{Block, Mode, Network};
//! use srf_model::params::Plan;
//!
//! struct Perceptron {
//!     dense: Dense<f32>,
//!     norm: LayerNorm<f32>,
//!     hidden: Frames<f32>,
//!     normed: Frames<f32>,
//! }
//!
//! impl Perceptron {
//!     fn new(plan: &mut Plan, n_in: usize, n_out: usize) -> Self {
//!         Self {
//!             dense: Dense::new(plan.layer("fc", &[n_out]), n_in, n_out),
//!             norm: LayerNorm::new(plan.layer("ln", &[n_out]), n_out, 1e-3),
//!             hidden: Frames::new(n_out, [0, 0]),
//!             normed: Frames::new(n_out, [0, 0]),
//!         }
//!     }
//! }
//!
//! impl Block<f32> for Perceptron {
//!     fn forward(&mut self, pass: &mut Forward<'_, f32>, x: &Frames<f32>) {
//!         self.dense.forward(pass, x, &mut self.hidden);
//!         relu_forward(&mut self.hidden);
//!         self.norm.forward(pass, &self.hidden, &mut self.normed);
//!     }
//!
//!     fn output(&self) -> &Frames<f32> {
//!         &self.normed
//!     }
//!
//!     fn backward(&mut self, pass: &mut Backward<'_, f32>, x: &Frames<f32>, d_y: &mut Frames<f32>, d_x: Wanted<'_, f32>) {
//!         self.norm.backward(pass, &self.hidden, d_y);
//!         relu_backward(&self.hidden, d_y);
//!         let mut unused = Frames::new(x.width(), [0, 0]);
//!         self.dense.backward(pass, x, d_y, d_x.unwrap_or(&mut unused));
//!     }
//! }
//!
//! let mut plan = Plan::new(3);
//! let block = Perceptron::new(&mut plan, 3, 5);
//! let (mut net, layout) = Network::from_blocks(plan, [0, 0], vec![Box::new(block)]);
//! let mut values: Vec<f32> = (0..layout.n_values()).map(|n| (n as f32 * 0.7).sin()).collect();
//! let mut x = Frames::new(3, net.margin());
//! x.resize_for([2]);
//! x.real_mut(0).copy_from_slice(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
//! assert_eq!(net.forward(&mut values, Mode::default(), &x).real(0).len(), 2 * 5);
//! ```
//!
//! The other layers are made in the same way; see the files in `network/` for how they are put together.
//!
//! ```
//! use srf_kernels::Conv;
//! use srf_model::config::SrfConfig;
//! use srf_model::frames::Frames;
//! use srf_model::layers::{
//!     Attention, BatchNorm, Capsules, ConvMaxout, Decisions, Dense, Dropout, Encapsulate, Lengths, MaxPool, Positions,
//!     Workspace, copy, maxout_backward, maxout_forward, router,
//! };
//! use srf_model::network::ConvStack;
//! use srf_model::params::{Params, Plan};
//!
//! let config = SrfConfig { layers: 1, primary_height: 2, ..SrfConfig::new(5) };
//! let mut plan = Plan::new(config.features);
//! let stack = ConvStack::<f32>::new(&mut plan, config.features, 2, 0.1, [0, 0]).with_statistics(true);
//! let mut stack = stack.with_dropout(Dropout::new(0.1, 3));
//! let dense: Dense<f32> = Dense::without_bias(plan.layer("proj", &[2]), 8, 2);
//! let mut scope = plan.layer("block", &[8]);
//! let qkv: Dense<f32> = Dense::side_by_side(&mut scope, &["q", "k", "v"], 8, 8);
//! let attention: Attention<f32> = Attention::new(&mut scope, [8, 2], true, (0.0, 7));
//! let capsules: Capsules<f32> = Capsules::new(plan.layer("caps1", &[5, 8]), &config, config.capsule_shape(0));
//! let mut primary: Encapsulate<f32> = Encapsulate::new(plan.layer("encaps", &[2, 8]), [2, 8], (0.0, 8));
//! let conv = Conv { kernel: [3, 3], stride: [1, 1], n_freq: 4, pad_freq: [1, 1], n_channels: 1, n_filters: 2 };
//! let halves: ConvMaxout<f32> = ConvMaxout::halves(plan.layer("conv", &[4, 2]), conv, [1, 1], (0.0, 9));
//! assert_eq!(halves.n_frames_out(10), 10);
//! let mut norm: BatchNorm<f32> = BatchNorm::new(plan.layer("bn", &[2]), 2);
//! let params = Params::<f32>::zeros(plan.finish().into());
//!
//! // Weights in the order that streams want.
//! let (trained, statistics) = params.values.split_at(params.layout.n_trainable());
//! let _ = (dense.packed(trained), capsules.packed(trained), primary.packed(trained));
//! let _ = (stack.packed(trained, statistics), norm.scale_and_shift(trained, statistics));
//! assert_eq!(router::<f32>(&config, config.capsule_shape(0)).routing().n_out, 5);
//! assert!(capsules.decisions().iter().all(|decisions: &Decisions<f32>| decisions.couplings.is_empty()));
//! assert_eq!(primary.unsquashed().n_utterances(), 0);
//!
//! // Layers without parameters.
//! let mut x: Frames<f32> = Frames::new(4, [0, 0]);
//! x.resize_for([1]);
//! x.real_mut(0).copy_from_slice(&[1.0, 4.0, 3.0, 2.0]);
//! let mut y = Frames::new(2, [0, 0]);
//! maxout_forward(&x, &mut y);
//! assert_eq!(y.real(0), [3.0, 4.0], "the larger of both halves");
//! let (d_y, mut d_x) = (y.clone(), Frames::new(4, [0, 0]));
//! maxout_backward(&x, &d_y, &mut d_x);
//! MaxPool::new(1, 2).forward(&x, &mut y);
//! assert_eq!(y.real(0), [4.0, 3.0], "the larger of two neighbours");
//! Positions::new(4).forward(&mut x);
//! let mut copied = Frames::new(4, [0, 0]);
//! copy(&x, &mut copied);
//! Lengths::new(2).forward(&x, &mut y);
//! // Scratch memory that the passes of all layers share.
//! let workspace = Workspace::<f32>::default();
//! # let _ = (attention, qkv, workspace);
//! ```

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
