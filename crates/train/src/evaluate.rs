//! How good a model is: a recogniser and utterances with their texts in, error rates and hypotheses out.

pub mod scoring;

pub use scoring::{Measure, Rate, Scoring, align_words};
