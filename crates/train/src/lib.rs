//! Corpora in, a model directory out.

pub mod builtin;
