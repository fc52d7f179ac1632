//! The model of digits in the box on real speech that it was not trained on, where that speech is on the machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "what is skipped is said aloud")]

use std::path::Path;

use srf::Recognizer;
use srf_train::corpus::{Unwatched, Utterance, manifest};
use srf_train::evaluate::{EvaluateOptions, Evaluation, evaluate};

const TEST_SPEAKERS: [&str; 10] = ["am05", "am11", "am17", "am23", "am29", "am35", "am41", "am47", "am53", "am59"];
/// So many utterances of each speaker are enough to see a mistake.
const N_EACH: usize = 5;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Some utterances of each test speaker; none where the speech is not there.
fn utterances() -> Vec<Utterance> {
    let path = root().join("../shared/data/digit-strings/manifest.jsonl");
    if !path.exists() {
        eprintln!("skipped: no recordings of digits at `{}`", path.display());
        return Vec::new();
    }
    let all: Vec<Utterance> = manifest::load(&path).0.into_iter().map(|listed| listed.utterance).collect();
    let of = |speaker: &'static str| all.iter().filter(move |utterance| utterance.speaker == speaker).take(N_EACH);
    TEST_SPEAKERS.into_iter().flat_map(of).cloned().collect()
}

fn recognised(utterances: &[Utterance]) -> Evaluation {
    let recognizer = Recognizer::open(root().join("models/en-digits")).unwrap();
    evaluate(&recognizer, utterances, &EvaluateOptions::default(), &Unwatched)
}

#[test]
fn fewer_than_five_percent_of_the_words_of_unknown_speakers_are_wrong() {
    let utterances = utterances();
    if utterances.is_empty() {
        return;
    }
    assert_eq!(utterances.len(), TEST_SPEAKERS.len() * N_EACH);
    let rate = recognised(&utterances).rate().errors().rate().unwrap();
    assert!(rate < 0.05, "{rate}");
}

#[test]
fn words_end_within_40_ms_of_the_known_ends_in_the_median() {
    let utterances = utterances();
    if utterances.is_empty() {
        return;
    }
    let evaluation = recognised(&utterances);
    let mut errors_s = Vec::new();
    for (answer, transcript) in evaluation.answers.iter().zip(&evaluation.transcripts) {
        let said = &utterances.iter().find(|utterance| utterance.id == answer.id).unwrap().words;
        let heard: Vec<_> = transcript.segments.iter().flat_map(|segment| &segment.words).collect();
        if heard.iter().map(|word| word.text.as_str()).eq(said.iter().map(|word| word.name.as_str())) {
            errors_s.extend(heard.iter().zip(said).map(|(heard, said)| (heard.end_s - said.end_s).abs()));
        }
    }
    assert!(errors_s.len() > 100, "{} words to measure", errors_s.len());
    errors_s.sort_by(f64::total_cmp);
    let median_s = errors_s[errors_s.len() / 2];
    assert!(median_s < 0.040, "{median_s} s");
}
