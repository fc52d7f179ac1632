//! Any bytes as a language model in ARPA format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_text::lm::{Limits, NgramModel};

fuzz_target!(|bytes: &[u8]| {
    let _ = NgramModel::read(bytes, Limits::default());
});
