//! Log-probabilities in, labels, words and scores out.

pub mod cmudict;
pub mod labels;

mod edges;
pub mod fusion;
pub mod lm;

pub mod align_ctc;
pub mod decode;

pub mod label_timing;
pub mod output;
pub mod words;

pub mod calibration;
