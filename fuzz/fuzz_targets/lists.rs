//! Any text as hotwords, phrases or a lexicon of phones or characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_text::fusion::{Hotword, Lexicon, Phrases};
use srf_text::labels::{LabelSet, Units};

fuzz_target!(|text: &str| {
    let _ = Hotword::parse_list(text, 1.0);
    let _ = Phrases::parse(text, true);
    for units in [Units::Phones, Units::Chars] {
        let labels = LabelSet::new(units, ["a", "b"]).expect("two letters are a set");
        let _ = Lexicon::parse(text, &labels);
    }
});
