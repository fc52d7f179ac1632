//! The operations of the networks on plain slices, forward beside backward; the only crate with `unsafe`.
//!
//! Each operation has one definition in plain Rust, generic over [`Element`] (`f32` and `f64`), the row `scalar` of
//! the table of [`Kernels`].
//! The other rows (`avx2`, `avx512`, `neon`) are optimisations of it for `f32`, found at run time; one suite of tests
//! runs on every row.
//! No operation allocates anything the size of its data, and none depends on the number of threads or on an
//! utterance's batch mates: the same utterance gives the same bits.

mod adam;
mod attention;
pub mod batch_norm;
mod buffer;
pub mod check;
pub mod conv;
mod ctc;
mod dense;
mod dropout;
mod element;
mod layer_norm;
mod lstm;
mod product;
#[cfg(test)]
mod random;
pub mod routing;
mod rows;
mod simd;
mod softmax;
mod squash;
mod sum;
mod table;

pub use adam::{Adam, adam};
pub use buffer::Buffer;
pub use conv::{Branch, Conv, ConvWeights};
pub use ctc::{CtcLoss, CtcScratch, ctc, n_frames_needed};
pub use dense::{DenseWeights, dense_bias_gradient, dense_input_gradient, dense_kernel_gradient};
pub use dropout::Dropout;
pub use element::Element;
pub use product::{View, product, product_into};
pub use softmax::log_softmax;
pub use table::Kernels;

/// Output capsules and filters are handled in blocks of this many lanes, whatever the instruction set.
pub const BLOCK: usize = 16;
