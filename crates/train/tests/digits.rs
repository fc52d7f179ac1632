//! The bundled digit model on synthetic digit strings, which it was not trained on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use srf::Recognizer;
use srf_audio::{Samples, wav};
use srf_train::builtin::grammar::Sentence;
use srf_train::builtin::voice::{Manner, RATE_HZ, Voice};
use srf_train::corpus::{Unwatched, Utterance, manifest};
use srf_train::evaluate::{EvaluateOptions, Evaluation, evaluate};

/// With pauses, as the model was trained on isolated digits that were joined.
const STRINGS: [&str; 6] = [
    "three, one, four, one, five.",
    "two, seven, one, eight.",
    "nine, zero, six, five.",
    "eight, two, zero, nine, four.",
    "six, three, seven, two.",
    "zero, five, nine, one, seven.",
];

/// Synthesises the strings in `dir`, with exact times of the words.
fn utterances(dir: &Path) -> Vec<Utterance> {
    let mut voice = Voice::new();
    let mut lines = String::new();
    for (index, spoken) in STRINGS.iter().enumerate() {
        let sentence = Sentence { spoken: (*spoken).to_owned() };
        let manner = Manner { stretch: 1.2, pitch_hz: 110.0, pitch_range_hz: 10.0 };
        let speech = voice.speak(&sentence, manner);
        let seconds = |at: usize| at as f64 / f64::from(RATE_HZ);
        let words: Vec<_> = speech
            .words
            .iter()
            .map(|word| serde_json::json!([seconds(word.start), seconds(word.end), word.name]))
            .collect();
        let name = format!("{index}.wav");
        let line = serde_json::json!({
            "audio_filepath": name, "duration": seconds(speech.samples.len()), "text": sentence.text(), "words": words,
        });
        writeln!(lines, "{line}").unwrap();
        wav::save(dir.join(name), &Samples { rate_hz: RATE_HZ, values: speech.samples }).unwrap();
    }
    let path = dir.join("digits.jsonl");
    std::fs::write(&path, lines).unwrap();
    let (listed, problems) = manifest::load(&path);
    assert!(problems.is_empty());
    listed.into_iter().map(|listed| listed.utterance).collect()
}

fn evaluated(utterances: &[Utterance]) -> Evaluation {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let recognizer = Recognizer::open(root.join("models/en-digits")).unwrap();
    evaluate(&recognizer, utterances, &EvaluateOptions::default(), &Unwatched)
}

#[test]
fn most_digits_of_an_unknown_voice_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let utterances = utterances(dir.path());
    assert_eq!(utterances.len(), STRINGS.len());
    let rate = evaluated(&utterances).rate().errors().rate().unwrap();
    assert!(rate < 0.15, "{rate}");
}

#[test]
fn words_end_near_their_known_ends() {
    let dir = tempfile::tempdir().unwrap();
    let utterances = utterances(dir.path());
    let evaluation = evaluated(&utterances);
    let mut errors_s = Vec::new();
    for (answer, transcript) in evaluation.answers.iter().zip(&evaluation.transcripts) {
        let reference = &utterances.iter().find(|utterance| utterance.id == answer.id).unwrap().words;
        let found: Vec<_> = transcript.segments.iter().flat_map(|segment| &segment.words).collect();
        if found.iter().map(|word| word.text.as_str()).eq(reference.iter().map(|word| word.name.as_str())) {
            errors_s
                .extend(found.iter().zip(reference).map(|(found, reference)| (found.end_s - reference.end_s).abs()));
        }
    }
    assert!(errors_s.len() >= 10, "{} words to measure", errors_s.len());
    errors_s.sort_by(f64::total_cmp);
    let median_s = errors_s[errors_s.len() / 2];
    assert!(median_s < 0.1, "{median_s} s");
}
