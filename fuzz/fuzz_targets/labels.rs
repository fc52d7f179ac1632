//! Any bytes as labels, learned pieces or times of labels; what is accepted must come back from its own text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_text::label_timing::LabelTiming;
use srf_text::labels::{LabelSet, Units, pieces};

fuzz_target!(|bytes: &[u8]| {
    let _ = pieces::read_sentencepiece(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(labels) = LabelSet::parse(text) {
        assert_eq!(LabelSet::parse(&labels.format()).expect("the text of a valid set is valid"), labels);
    }
    let labels = LabelSet::new(Units::Phones, ["aa", "b"]).expect("two phones are a set");
    let _ = LabelTiming::parse(text, &labels);
});
