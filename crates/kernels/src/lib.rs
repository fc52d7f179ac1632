//! Operations on slices, forward beside backward; the only crate with `unsafe`.
