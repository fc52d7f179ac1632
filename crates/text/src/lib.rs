//! Log-probabilities in, labels, words and scores out.

pub mod labels;

mod edges;
pub mod fusion;
pub mod lm;

pub mod align_ctc;
pub mod decode;

pub mod output;
pub mod reach;
pub mod words;

pub mod calibration;
