//! Any bytes as a recording: header, then blocks until the end or the first error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_audio::{Recording, Selection};

/// A few bytes can stand for hours of silence; the target only wants to see that reading goes on without fault.
const MOST_BLOCKS: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::from_bytes("fuzz", bytes) else { return };
    let Ok(mut blocks) = recording.blocks(Selection::default()) else { return };
    for _ in 0..MOST_BLOCKS {
        let Ok(Some(_)) = blocks.next_block() else { return };
    }
});
