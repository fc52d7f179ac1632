//! Models with words: read from their directory, written by default, the same bits streamed and whole.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod tiny;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use srf::verify::{chunkings, compare};
use srf::words::{WordSettings, read, write, write_settings};
use srf::{DecoderConfig, Recognizer, Segment, StreamOptions};
use srf_model::config::Cmvn;
use srf_text::calibration::Calibration;
use srf_text::fusion::{Hotword, Lexicon, Phrases};
use srf_text::labels::{LabelSet, Units};
use srf_text::lm::{Limits, NgramModel};
use srf_text::word_model::WordModel;

const PHONES: &[&str] = &["a", "b", "c", "d", "e", "sil"];
const LEXICON: &str = "one a b\none b\ntwo c\nthree d e\nfour e a\nfive d\nsix e\nsicks e\nten a\n";
const ARPA: &str = "\\data\\\nngram 1=9\nngram 2=3\n\\1-grams:\n-2 <unk>\n-1 <s> -0.2\n-1 </s>\n-0.9 one -0.1\n\
    -0.8 two -0.1\n-0.7 three\n-0.9 five\n-1.2 six\n-1.1 ten\n\\2-grams:\n-0.3 one two\n-0.2 two five\n-0.4 <s> ten\n\\end\\\n";

fn language() -> NgramModel {
    NgramModel::read(ARPA.as_bytes(), Limits::default()).unwrap()
}

fn words(labels: &LabelSet) -> WordModel {
    WordModel { lexicon: Lexicon::parse(LEXICON, labels).unwrap(), language: Arc::new(language()) }
}

/// A model directory with words.
fn directory(dir: &Path) -> LabelSet {
    let parts = tiny::parts(Cmvn::Online, Units::Phones, PHONES);
    srf::directory::write(dir, &parts).unwrap();
    let WordModel { lexicon, .. } = words(&parts.labels);
    write(dir, &WordModel::format(&lexicon, &language(), &parts.labels)).unwrap();
    parts.labels
}

fn segments(recognizer: &Recognizer, options: &StreamOptions) -> Vec<Segment> {
    let mut stream = recognizer.stream(options).unwrap();
    stream.accept(&tiny::sound(3, 60_000), 16_000).unwrap();
    stream.finish()
}

fn text(recognizer: &Recognizer, options: &StreamOptions) -> String {
    segments(recognizer, options).iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_directory_with_words_writes_words_and_phones_on_request() {
    let dir = tempfile::tempdir().unwrap();
    directory(dir.path());
    let settings = WordSettings { alpha: 0.25, beta: 0.5, beam: 30, ..WordSettings::default() };
    write_settings(dir.path(), &settings).unwrap();
    let recognizer = Recognizer::open(dir.path()).unwrap();
    assert_eq!(*recognizer.words().unwrap().settings(), settings);
    let heard = segments(&recognizer, &StreamOptions::default());
    let spoken: Vec<&str> = heard.iter().flat_map(|segment| &segment.words).map(|word| word.text.as_str()).collect();
    assert!(2 < spoken.len(), "{spoken:?}");
    assert!(spoken.iter().all(|word| LEXICON.lines().any(|line| line.starts_with(&format!("{word} ")))), "{spoken:?}");
    for word in heard.iter().flat_map(|segment| &segment.words) {
        assert!(word.start_s < word.end_s && 0.0 < word.confidence.unwrap() && word.confidence.unwrap() <= 1.0);
    }
    let confidence = Calibration { scale: 0.5, shift: -1.0 };
    write_settings(dir.path(), &WordSettings { confidence, ..settings }).unwrap();
    let corrected = segments(&Recognizer::open(dir.path()).unwrap(), &StreamOptions::default());
    for (before, after) in heard.iter().zip(&corrected) {
        let words = before.words.iter().zip(&after.words);
        assert!(
            words.clone().all(|(b, a)| a.confidence == b.confidence.map(|c| confidence.apply(c)) && a.text == b.text)
        );
        assert!(words.clone().any(|(before, after)| before.confidence != after.confidence));
        let of_tokens = |segment: &Segment| segment.tokens.iter().map(|token| token.confidence).collect::<Vec<_>>();
        assert_eq!(of_tokens(before), of_tokens(after), "only words are corrected");
    }
    let phones = StreamOptions { decoder: Some(DecoderConfig::default()), ..StreamOptions::default() };
    let phones = text(&recognizer, &phones);
    assert!(phones.split(' ').all(|phone| PHONES.contains(&phone)), "{phones}");
    // The same as from memory, but for rounded probabilities, which these few are not.
    let parts = tiny::parts(Cmvn::Online, Units::Phones, PHONES);
    let in_memory = Recognizer::from_parts(parts).unwrap();
    let words = words(in_memory.labels());
    let in_memory = in_memory.with_words(words, *recognizer.words().unwrap().settings()).unwrap();
    assert_eq!(text(&in_memory, &StreamOptions::default()), spoken.join(" "));
}

#[test]
fn words_streamed_in_any_pieces_are_those_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    directory(dir.path());
    let recognizer = Recognizer::open(dir.path()).unwrap();
    let n_classes = recognizer.labels().n_classes();
    let samples = tiny::sound(5, 48_000);
    for n_best in [1, 4] {
        let options = StreamOptions { n_best, has_evidence: true, ..StreamOptions::default() };
        let whole = recognizer.trace(&samples, 16_000, None, &options).unwrap();
        assert!(whole.segments.iter().any(|segment| !segment.words.is_empty()));
        for chunking in chunkings(6, 7) {
            let cut = recognizer.trace(&samples, 16_000, Some(&chunking), &options).unwrap();
            assert_eq!(compare(&cut, &whole, n_classes), None, "{chunking:?}");
        }
    }
}

#[test]
fn alternatives_hotwords_and_phrases_are_words() {
    let dir = tempfile::tempdir().unwrap();
    directory(dir.path());
    let recognizer = Recognizer::open(dir.path()).unwrap();
    let with = |hotwords: &[Hotword], phrases: Option<&Phrases>, n_best: usize| {
        let decoder = Some(recognizer.decoder_with(hotwords, phrases).unwrap());
        segments(&recognizer, &StreamOptions { decoder, n_best, ..StreamOptions::default() })
    };
    let count = |segments: &[Segment], word: &str| {
        segments.iter().flat_map(|segment| &segment.words).filter(|found| found.text == word).count()
    };
    let plain = with(&[], None, 5);
    let alternatives = &plain[0].alternatives;
    assert!(!alternatives.is_empty() && alternatives.iter().all(|other| other.text != plain[0].text));
    assert!(alternatives.iter().all(|other| other.score <= plain[0].score));
    // A homophone of a word that the language model knows better is written only where it is favoured.
    let six = count(&plain, "six");
    assert_eq!(count(&plain, "sicks"), 0);
    let favoured = with(&[Hotword { phrase: "Sicks".to_owned(), score: 4.0 }], None, 1);
    assert!(six < count(&favoured, "sicks"), "{favoured:?}");
    let phrases = Phrases { phrases: vec!["two five".to_owned(), "ten".to_owned()], repeats: true };
    let bound = with(&[], Some(&phrases), 1);
    let spoken: Vec<&str> = bound.iter().flat_map(|segment| &segment.words).map(|word| word.text.as_str()).collect();
    assert!(
        !spoken.is_empty() && spoken.join(" ").replace("two five", "ten").split(' ').all(|w| w == "ten"),
        "{spoken:?}"
    );
    let unknown = [Hotword { phrase: "eleven".to_owned(), score: 1.0 }];
    let error = recognizer.decoder_with(&unknown, None).unwrap_err().to_string();
    assert_eq!(error, "`eleven` has a word that is not in the lexicon");
}

#[test]
fn words_that_do_not_fit_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let labels = directory(dir.path());
    let open = || Recognizer::open(dir.path()).err().unwrap().to_string();
    let settings = dir.path().join("decoding.json");
    for (text, expected) in [
        ("{\"alpha\": -1}", "alpha is -1, expected 0 to 100"),
        ("{\"beam\": 0}", "beam is 0, expected 1 to 10000"),
        ("{\"beta\": 1e9}", "beta is 1000000000, expected -100 to 100"),
        ("{\"gamma\": 1}", "unknown field `gamma`"),
        ("{", "EOF while parsing"),
    ] {
        fs::write(&settings, text).unwrap();
        let message = open();
        assert!(message.starts_with(&format!("`{}`: ", settings.display())) && message.contains(expected), "{message}");
        assert!(!message.contains('\n'));
    }
    fs::remove_file(&settings).unwrap();
    let other = LabelSet::new(Units::Phones, ["a", "b", "c", "d", "e", "f"]).unwrap();
    let words = words(&other);
    write(dir.path(), &WordModel::format(&words.lexicon, &language(), &other)).unwrap();
    let path = dir.path().join("words.bin");
    assert_eq!(open(), format!("`{}`: is for other labels than those of the model", path.display()));
    fs::write(&path, b"RIFF").unwrap();
    assert_eq!(open(), format!("`{}`: does not begin as a word model of version 1", path.display()));
    fs::remove_file(&path).unwrap();
    assert!(read(dir.path(), &labels).unwrap().is_none());
    assert!(Recognizer::open(dir.path()).unwrap().words().is_none());
}

#[test]
fn a_model_written_again_keeps_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    directory(&model);
    write_settings(&model, &WordSettings { alpha: 0.75, ..WordSettings::default() }).unwrap();
    srf::directory::write(&model, &tiny::parts(Cmvn::Online, Units::Phones, PHONES)).unwrap();
    let recognizer = Recognizer::open(dir.path()).unwrap();
    assert_eq!(recognizer.words().unwrap().settings().alpha.to_bits(), 0.75f64.to_bits());
}
