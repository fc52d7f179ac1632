//! Decoding: turns the log-probabilities of a network into labels, words and transcripts.

pub mod cmudict;
pub mod labels;

mod edges;
pub mod fusion;
pub mod lm;
pub mod word_model;

pub mod align_ctc;
pub mod decode;

pub mod label_timing;
pub mod output;
pub mod words;

pub mod calibration;
