//! The operations of the networks on plain slices, forward and backward; the only crate with `unsafe`.
//!
//! Each operation has one definition in plain Rust, generic over [`Element`] (`f32` and `f64`), the row `scalar` of
//! the table of [`Kernels`].
//! The other rows (`avx2`, `avx512`, `neon`, `simd128`) are optimizations of it for `f32`, found at run time; one suite of tests
//! runs on every row. The environment variable `SRF_ISA` picks a row by name, see [`isa`].
//! No operation allocates anything the size of its data, and none depends on the number of threads or on the other
//! utterances of a batch: the same utterance gives the same bits.
//!
//! # Safety
//! All `unsafe` code rests on these invariants; each `SAFETY` note names those that it uses.
//! - **ISA**: a vector type of `simd` is named only inside functions that enable its instruction set, and the table
//!   offers those functions only where the processor has it.
//! - **BOUNDS**: a pointer comes from a slice whose length was checked against the shape at the entry of the operation,
//!   and every offset follows from that shape.
//! - **SCRATCH**: a function sizes its scratch for what it needs and cuts it into parts that do not overlap.
//! - **DISJOINT**: what is written belongs to one task only: an exclusively borrowed utterance, or the gradients of
//!   capsules that no other task has.
//! - **ALIVE**: pointers are used only during the call that made them from borrowed slices, and between the making of
//!   a pointer and its last use nothing else writes to the slice.

mod adam;
mod attention;
mod buffer;
pub mod check;
pub mod conv;
mod ctc;
mod dense;
mod dropout;
mod element;
mod lstm;
pub mod norm;
pub mod routing;
mod simd;
mod squash;
mod table;
#[cfg(test)]
mod tests;

pub use adam::{Adam, adam};
pub use buffer::Buffer;
pub use conv::{Branch, Conv, ConvWeights};
pub use ctc::{CtcLoss, CtcScratch, ctc, log_softmax, n_frames_needed};
pub use dense::{
    DenseWeights, View, dense_bias_gradient, dense_input_gradient, dense_kernel_gradient, product, product_into,
};
pub use dropout::Dropout;
pub use element::Element;
pub use table::{IsaError, Kernels, isa};

/// Output capsules and filters are handled in blocks of this many lanes, whatever the instruction set.
pub const BLOCK: usize = 16;
