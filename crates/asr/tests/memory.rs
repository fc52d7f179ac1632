//! Hours through one stream: memory stays where it is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tiny;

use srf::{Recognizer, StreamOptions};
use srf_model::config::Cmvn;

/// Memory of this process that is in use, where the system tells.
fn resident_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
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
    let Some(before) = resident_bytes() else {
        eprintln!("skipped: this system does not tell how much memory is in use");
        return;
    };
    hear(27);
    let after = resident_bytes().expect("it was told before");
    assert!(500 < n_tokens, "{n_tokens}");
    // Half an hour of feature frames is 13 MB, of log-probabilities 2 MB, of evidence 3 MB.
    assert!(after < before + (1 << 20), "{before} bytes became {after}");
}
