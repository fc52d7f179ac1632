//! Any bytes as an archive of Kaldi's matrices, binary or text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_audio::ark::Reader;

fuzz_target!(|bytes: &[u8]| {
    let mut archive = Reader::new("fuzz", bytes);
    while let Ok(Some(_)) = archive.next_entry::<f32>() {}
    let _ = Reader::new("fuzz", bytes).matrix::<f64>();
});
