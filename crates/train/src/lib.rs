//! Corpora in, a model directory out.

pub mod analyze;
pub mod augment;
pub mod builtin;
pub mod corpus;

mod noise;
mod playback;
mod seed;
