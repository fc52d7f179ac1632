//! Any bytes as the files of corpora: manifests, times of phones, lists of WSJ, TextGrids, the log of a run.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use srf_train::corpus::{manifest, phn, textgrid, wsj};
use srf_train::events::log::History;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz");
    let _ = manifest::read(bytes, path);
    let _ = phn::read(bytes, path, 16_000.0);
    let _ = wsj::read_list(bytes, path);
    let _ = wsj::read_transcripts(bytes, path);
    let _ = History::parse(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = textgrid::parse(text);
    }
});
