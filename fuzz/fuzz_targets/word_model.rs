//! Any bytes as the compact lexicon and language model of a model directory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_text::labels::{LabelSet, Units};
use srf_text::word_model::WordModel;

fuzz_target!(|bytes: &[u8]| {
    let labels = LabelSet::new(Units::Phones, ["aa", "b"]).expect("two phones are a set");
    let _ = WordModel::parse(bytes, &labels);
});
