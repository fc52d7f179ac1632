//! Any bytes as NIST's transcripts (trn, stm, ctm) and as a text with alternatives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_score::formats::{self, Source, TrnOptions};
use srf_score::{Encoding, Network, Reading};

fuzz_target!(|bytes: &[u8]| {
    let source = Source { path: "fuzz".into(), bytes: bytes.to_vec() };
    let _ = formats::parse_trn(&source, TrnOptions::default());
    let _ = formats::parse_stm(&source, Encoding::default(), false);
    let _ = formats::parse_ctm(&source, Encoding::default(), false);
    let _ = Network::parse(bytes, Reading::default());
});
