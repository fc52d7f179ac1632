//! Any bytes as the weights of a network.
#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use srf_model::weights;

fuzz_target!(|bytes: &[u8]| {
    let _ = weights::read(&mut Cursor::new(bytes), bytes.len() as u64, Path::new("fuzz"));
});
