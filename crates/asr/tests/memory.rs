//! Memory of a long stream stays constant. Linux only: other systems do not report memory in the same way.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tiny;

use srf::{Recognizer, StreamOptions};
use srf_model::config::Cmvn;

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn half_an_hour_through_one_stream_needs_no_more_memory_than_its_first_minutes() {
    let recognizer = Recognizer::from_parts(tiny::letters(Cmvn::Online)).unwrap();
    let options = StreamOptions { has_evidence: true, ..StreamOptions::default() };
    let mut stream = recognizer.stream(&options).unwrap();
    let minute = tiny::sound(1, 60 * 16_000);
    let mut n_tokens = 0;
    let mut hear = |n_minutes: usize| {
        for _ in 0..n_minutes {
            minute.chunks(3200).for_each(|piece| stream.accept(piece, 16_000).unwrap());
            n_tokens += stream.take_ended().iter().map(|heard| heard.tokens.len()).sum::<usize>();
        }
    };
    hear(3);
    let before = resident_bytes();
    hear(27);
    let after = resident_bytes();
    assert!(500 < n_tokens, "{n_tokens}");
    // Half an hour of feature frames is 13 MB, of log-probabilities 2 MB, of evidence 3 MB.
    assert!(after < before + (1 << 20), "{before} bytes became {after}");
}
