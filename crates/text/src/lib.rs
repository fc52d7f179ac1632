//! Log-probabilities in, labels, words and scores out.

pub mod labels;

mod edges;

pub mod lm;

pub mod fusion;

pub mod decode;
pub mod output;

pub mod score;
