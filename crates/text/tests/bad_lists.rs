//! Language models and lists that are not what they should be: an error with its line, or something that works.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use srf_text::decode::{Decoder, DecoderConfig, Search};
use srf_text::fusion::{Fusion, Hotword, Lexicon, Phrases, Sources};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::NgramModel;

fn chars() -> LabelSet {
    LabelSet::new(Units::Chars, [" ", "A", "B"]).unwrap()
}

fn phones() -> LabelSet {
    LabelSet::new(Units::Phones, ["a", "b", "sil"]).unwrap()
}

/// Decodes a few slices of noise with `sources`, if they fit.
fn decode(labels: &LabelSet, sources: Sources, log_probs: &[f32]) {
    let Ok(fusion) = Fusion::new(labels, sources) else { return };
    let config = DecoderConfig { search: Search::Beam { width: 8 }, fusion: Some(Arc::new(fusion)) };
    let mut decoder = Decoder::new(labels.n_classes(), &config);
    let slices = log_probs.chunks_exact(labels.n_classes());
    decoder.accept(&slices.flat_map(normalised).collect::<Vec<f32>>());
    let found = decoder.finish(8);
    // Twelve slices of probabilities rounded to f32 sum to 1 within a few millionths.
    assert!(!found.is_empty() && found.iter().all(|hypothesis| hypothesis.log_prob <= 1e-5));
}

/// A slice whose probabilities sum to 1, as every network gives them.
fn normalised(slice: &[f32]) -> Vec<f32> {
    let log_sum = slice.iter().map(|value| value.exp()).sum::<f32>().ln();
    slice.iter().map(|value| value - log_sum).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn load(bytes: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let error = NgramModel::load(file.path()).unwrap_err();
    error.to_string().replace(&file.path().display().to_string(), "lm")
}

#[test]
fn a_file_that_swells_when_opened_ends_at_its_first_long_line() {
    let bytes = [&b"\\data\\\n"[..], &vec![b'x'; 64 << 20]].concat();
    assert_eq!(load(&gzip(&bytes)), "lm:2: longer than 16384 bytes");
}

#[test]
fn announced_counts_reserve_nothing() {
    let bytes = b"\\data\\\nngram 1=49999999\n\\1-grams:\n-1 a\n\\end\\\n";
    assert_eq!(load(bytes), "lm:5: 1 1-grams, but 49999999 were announced");
}

#[test]
fn a_file_of_another_kind_is_told() {
    assert_eq!(
        load(b"mmap lm http://kheafield.com/code format version 5\n\0"),
        "lm:3: the file ends without `\\data\\`"
    );
    assert_eq!(load(b"\xff\xfe\x00\x01"), "lm:1: bytes that are not UTF-8");
    assert_eq!(load(b""), "lm:1: the file ends without `\\data\\`");
    let missing = NgramModel::load("no/such/file".as_ref()).unwrap_err();
    assert_eq!(missing.to_string(), "could not read `no/such/file`");
}

#[test]
fn an_utterance_cut_inside_of_a_phrase_or_word_writes_no_half_of_it() {
    let p = |values: [f32; 5]| values.map(f32::ln);
    let log_probs = [p([0.0, 0.0, 1.0, 0.0, 0.0]), p([0.0, 0.0, 0.0, 0.0, 1.0])].concat();
    let written = |labels: LabelSet, sources| {
        let fusion = Fusion::new(&labels, sources).unwrap();
        let config = DecoderConfig { search: Search::Beam { width: 1 }, fusion: Some(Arc::new(fusion)) };
        let mut decoder = Decoder::new(5, &config);
        decoder.accept(&log_probs);
        labels.decode(&decoder.finish(1)[0].classes())
    };
    let phrases = Some(Phrases { phrases: vec!["AB".into()], repeats: true });
    assert_eq!(written(chars(), Sources { phrases, ..Sources::default() }), "");
    let lexicon = Some(Lexicon::parse("bab b a b\n", &phones()).unwrap());
    assert_eq!(written(phones(), Sources { lexicon, ..Sources::default() }), "");
}

#[test]
fn decoders_move_between_threads_and_share_what_they_know() {
    fn is_shared<T: Send + Sync>() {}
    fn moves<T: Send>() {}
    is_shared::<Fusion>();
    is_shared::<DecoderConfig>();
    moves::<Decoder>();
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[AB ]{0,8}", "[AB]{1,3}:[-0-9.]{0,4}", "[AB]{1,3}\t-?[0-9]{0,3}", "\\PC{0,10}", "#.*"];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_lists_of_hotwords_and_phrases_decode_or_are_refused(
        hotwords in lines(), phrases in lines(), repeats in any::<bool>(),
        log_probs in proptest::collection::vec(-6.0f32..-0.01, 0..60),
    ) {
        let hotwords = Hotword::parse_list(&hotwords, 1.5).unwrap_or_default();
        let phrases = Phrases::parse(&phrases, repeats).ok();
        decode(&chars(), Sources { hotwords: hotwords.clone(), ..Sources::default() }, &log_probs);
        decode(&chars(), Sources { hotwords, phrases, ..Sources::default() }, &log_probs);
    }

    #[test]
    fn any_lexicon_decodes_or_is_refused(
        lexicon in "([A-C]{1,2}( [ab]| sil| x){0,4}\n){0,8}",
        log_probs in proptest::collection::vec(-6.0f32..-0.01, 0..60),
    ) {
        if let Ok(lexicon) = Lexicon::parse(&lexicon, &phones()) {
            decode(&phones(), Sources { lexicon: Some(lexicon), ..Sources::default() }, &log_probs);
        }
    }
}
