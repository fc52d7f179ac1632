//! The operations of the networks on plain slices, forward beside backward; the only crate with `unsafe`.
//!
//! Each operation has one definition in plain Rust, generic over [`Element`] (`f32` and `f64`), the row `scalar` of
//! the table of [`Kernels`].
//! The other rows (`avx2`, `avx512`, `neon`) are optimisations of it for `f32`, found at run time; one suite of tests
//! runs on every row.
//! No operation allocates on its hot path, and none depends on the number of threads or on an utterance's batch
//! mates: the same utterance gives the same bits.

mod buffer;
mod element;
#[cfg(test)]
mod random;
pub mod routing;
mod simd;
mod table;

pub use buffer::Buffer;
pub use element::Element;
pub use table::Kernels;

/// Output capsules and filters are handled in blocks of this many lanes, whatever the instruction set.
pub const BLOCK: usize = 16;
