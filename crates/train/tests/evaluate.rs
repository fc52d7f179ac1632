//! Evaluation with a tiny model, against errors counted by hand.
//!
//! What a model with random weights writes is not known beforehand, but it is the same every time: references are made
//! of it by known mistakes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../asr/tests/tiny/mod.rs"]
mod tiny;

use std::path::Path;
use std::sync::Arc;

use srf::Recognizer;
use srf::words::WordSettings;
use srf_model::config::Cmvn;
use srf_score::Counts;
use srf_text::decode::{DecoderConfig, Search};
use srf_text::fusion::Lexicon;
use srf_text::labels::Units;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::lm::{Limits, NgramModel};
use srf_text::output::Transcript;
use srf_text::word_model::WordModel;
use srf_train::corpus::{AudioPart, Timed, Unwatched, Utterance};
use srf_train::evaluate::summary::{Subject, Summary};
use srf_train::evaluate::tune::{Grid, Tuner};
use srf_train::evaluate::{EvaluateOptions, Evaluation, Scoring, evaluate, files};

const PHONES: [&str; 7] = ["aa", "b", "ih", "k", "n", "s", "sil"];

fn utterance(dir: &Path, number: u64) -> Utterance {
    let path = dir.join(format!("{number}.wav"));
    tiny::save(&path, &tiny::sound(number, 40_000), 16_000);
    let audio = AudioPart { path, ..AudioPart::default() };
    Utterance {
        id: format!("s{}-{number}", number % 2),
        speaker: format!("s{}", number % 2),
        audio,
        ..Utterance::default()
    }
}

fn options() -> EvaluateOptions {
    let decoder = DecoderConfig { search: Search::Greedy, ..DecoderConfig::default() };
    EvaluateOptions { decoder, scoring: Scoring { n_replications: 100, seed: 1, mapping: None } }
}

fn run(recognizer: &Recognizer, utterances: &[Utterance]) -> Evaluation {
    evaluate(recognizer, utterances, &options(), &Unwatched)
}

/// A model of phones and four utterances with what it writes for them.
fn heard(dir: &Path) -> (Recognizer, Vec<Utterance>, Vec<Vec<String>>) {
    let recognizer = Recognizer::from_parts(tiny::parts(Cmvn::Online, Units::Phones, &PHONES)).unwrap();
    let utterances: Vec<Utterance> = (0..4).map(|number| utterance(dir, number)).collect();
    let answers = run(&recognizer, &utterances).answers;
    let phones = answers.iter().map(|answer| answer.recognized.iter().map(|r| r.text.clone()).collect());
    let phones: Vec<Vec<String>> = phones.collect();
    assert!(phones.iter().all(|phones| phones.len() > 1), "the model should write something: {phones:?}");
    (recognizer, utterances, phones)
}

#[test]
fn known_mistakes_are_counted_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let (recognizer, mut utterances, mut phones) = heard(dir.path());
    let n_hypothesis: usize = phones.iter().map(Vec::len).sum();
    // Nothing in the first; then a phone nobody says in place of one, before all, and one missing at the end.
    "zh".clone_into(&mut phones[1][0]);
    phones[2].insert(0, "zh".to_owned());
    phones[3].pop();
    for (utterance, phones) in utterances.iter_mut().zip(&phones) {
        utterance.text = phones.join(" ");
    }
    let evaluation = run(&recognizer, &utterances);
    let expected = Counts { correct: n_hypothesis - 2, substitutions: 1, deletions: 1, insertions: 1 };
    let system = &evaluation.rate().system;
    assert_eq!(system.counts(), expected);
    assert_eq!((system.n_wrong(), system.n_utterances()), (3, 4));
    let errors: Vec<(&[u8], usize)> = system.speakers.iter().map(|s| (&*s.name, s.counts.n_errors())).collect();
    assert_eq!(errors, [(&b"s0"[..], 1), (&b"s1"[..], 2)]);
    assert_eq!(evaluation.audio_s, 10.0);
    assert!(evaluation.rate().confidences.is_some());
}

#[test]
fn an_utterance_that_cannot_be_read_is_told_and_in_no_figure() {
    let dir = tempfile::tempdir().unwrap();
    let (recognizer, mut utterances, phones) = heard(dir.path());
    for (utterance, phones) in utterances.iter_mut().zip(&phones) {
        utterance.text = phones.join(" ");
    }
    utterances[1].audio.path = dir.path().join("nowhere.wav");
    std::fs::write(dir.path().join("2.wav"), b"RIFF but no more").unwrap();
    let evaluation = run(&recognizer, &utterances);
    let left_out: Vec<&str> = evaluation.left_out.iter().map(|left| left.id.as_str()).collect();
    assert_eq!(left_out, ["s1-1", "s0-2"]);
    assert!(evaluation.left_out[0].reason.contains("nowhere.wav"));
    assert_eq!((evaluation.answers.len(), evaluation.rate().system.counts().n_errors()), (2, 0));
}

#[test]
fn a_model_of_phones_is_scored_on_phones_where_the_text_is_words() {
    let dir = tempfile::tempdir().unwrap();
    let (recognizer, mut utterances, phones) = heard(dir.path());
    for (utterance, phones) in utterances.iter_mut().zip(&phones) {
        "some words".clone_into(&mut utterance.text);
        "some words".clone_into(&mut utterance.sentence);
        utterance.phone_seq.clone_from(phones);
    }
    let timed = |name: &String| Timed { start_s: 0.0, end_s: 0.1, name: name.clone() };
    utterances[0].phones = phones[0].iter().map(timed).collect();
    utterances[0].phone_seq.clear();
    assert_eq!(run(&recognizer, &utterances).rate().system.counts().n_errors(), 0);
}

#[test]
fn letters_are_scored_as_words_and_as_characters() {
    let dir = tempfile::tempdir().unwrap();
    let recognizer = Recognizer::from_parts(tiny::letters(Cmvn::Online)).unwrap();
    let mut utterances: Vec<Utterance> = (0..4).map(|number| utterance(dir.path(), number)).collect();
    let first = run(&recognizer, &utterances);
    for (utterance, transcript) in utterances.iter_mut().zip(&first.transcripts) {
        utterance.text = transcript.text().to_uppercase() + " ZZ";
    }
    let evaluation = run(&recognizer, &utterances);
    let rates: Vec<(&str, Counts)> =
        evaluation.rates.iter().map(|rate| (rate.measure.name(), rate.system.counts())).collect();
    assert_eq!(rates.iter().map(|rate| rate.0).collect::<Vec<_>>(), ["WER", "CER"]);
    assert_eq!((rates[0].1.deletions, rates[0].1.n_errors()), (4, 4), "a word at the end of each");
    assert_eq!((rates[1].1.deletions, rates[1].1.n_errors()), (8, 8), "two letters in each");
}

#[test]
fn files_say_what_was_compared() {
    let dir = tempfile::tempdir().unwrap();
    let (recognizer, mut utterances, phones) = heard(dir.path());
    for (utterance, phones) in utterances.iter_mut().zip(&phones) {
        utterance.text = phones.join(" ");
    }
    "h# zh".clone_into(&mut utterances[3].text);
    let mut options = options();
    options.scoring.mapping = Some(PhoneMapping::Timit39);
    let evaluation = evaluate(&recognizer, &utterances, &options, &Unwatched);
    let subject = Subject { model: "tiny".to_owned(), mapping: Some("timit39".to_owned()), ..Subject::default() };
    let summary = Summary::of(&evaluation, &subject);
    let out = dir.path().join("out");
    files::write(&out, &evaluation, &summary, &utterances, options.scoring.mapping).unwrap();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(Summary::load(&out.join("evaluation.json")).unwrap(), summary);
    let references: Vec<String> = read("ref.trn").lines().map(str::to_owned).collect();
    assert_eq!(references[0], format!("{} (s0-0)", phones[0].join(" ")));
    assert_eq!(references[3], "sil sh (s1-3)");
    assert_eq!(read("hyp.trn").lines().next().unwrap(), format!("{} (s0-0)", phones[0].join(" ")));
    let lines: Vec<serde_json::Value> = read("hyp.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[3]["text"], "h# zh");
    assert_eq!(lines[3]["pred_text"], phones[3].join(" "));
    assert_eq!(lines[3]["duration"], 2.5);
    assert!(read("score.html").contains("%PER"));
}

/// What was recognized; delays hold what the clock says, which is never the same twice.
fn without_delays(evaluation: &Evaluation) -> Vec<Transcript> {
    let mut transcripts = evaluation.transcripts.clone();
    let segments = transcripts.iter_mut().flat_map(|transcript| &mut transcript.segments);
    segments.flat_map(|segment| &mut segment.tokens).for_each(|token| token.delay = None);
    transcripts
}

#[test]
fn threads_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (recognizer, utterances, _) = heard(dir.path());
    let with_threads = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| run(&recognizer, &utterances))
    };
    let (one, three) = (with_threads(1), with_threads(3));
    assert_eq!((one.n_threads, three.n_threads), (1, 3));
    assert_eq!(without_delays(&one), without_delays(&three));
    assert_eq!(one.rate().interval, three.rate().interval);
}

#[test]
fn tuning_counts_as_evaluation_does_and_finds_the_fewest_errors() {
    let dir = tempfile::tempdir().unwrap();
    let recognizer = with_words();
    let mut utterances: Vec<Utterance> = (0..6).map(|number| utterance(dir.path(), number)).collect();
    // What one choice of weights writes is the reference, so that this choice has no errors.
    let right = WordSettings { alpha: 0.9, beta: 3.0, beam: 20, ..WordSettings::default() };
    let options = |settings: &WordSettings| EvaluateOptions {
        decoder: recognizer.decoder_of(settings).unwrap().unwrap(),
        scoring: Scoring::default(),
    };
    let written = evaluate(&recognizer, &utterances, &options(&right), &Unwatched);
    for (utterance, transcript) in utterances.iter_mut().zip(&written.transcripts) {
        utterance.sentence = transcript.text().to_uppercase() + ".";
        utterance.text = "aa".to_owned();
    }
    let tuner = Tuner::new(&recognizer, &utterances, &Unwatched).unwrap();
    let start = WordSettings { alpha: 0.1, beta: -3.0, ..right };
    for settings in [start, right, WordSettings { alpha: 0.5, beta: 0.0, beam: 3, ..right }] {
        let expected = evaluate(&recognizer, &utterances, &options(&settings), &Unwatched);
        assert_eq!((expected.units, expected.rates.len()), (Units::Words, 2));
        assert_eq!(tuner.errors(&settings).unwrap(), expected.rate().system.counts(), "{settings:?}");
    }
    let plain = evaluate(&recognizer, &utterances, &options(&start), &Unwatched);
    let confidence = tuner.calibration(&start).unwrap();
    let words = recognizer.words().unwrap().model().clone();
    let calibrated = recognizer.clone().with_words(words, WordSettings { confidence, ..start }).unwrap();
    let better = evaluate(&calibrated, &utterances, &options(&start), &Unwatched);
    let nce = |evaluation: &Evaluation| evaluation.rate().confidences.as_ref().unwrap().nce.unwrap();
    assert!(nce(&plain) < nce(&better), "{} {}", nce(&plain), nce(&better));
    let grid = Grid { alphas: vec![0.1, 0.5, 0.9], betas: vec![-3.0, 0.0, 3.0] };
    let mut tried = Vec::new();
    let (best, counts) = tuner.search(&grid, start, &mut |settings, counts| tried.push((*settings, *counts))).unwrap();
    assert!(tried.iter().all(|(_, other)| counts.n_errors() <= other.n_errors()));
    assert!(counts.n_errors() < tried[0].1.n_errors(), "{tried:?}");
    assert!(tried.contains(&(best, counts)) && tried.len() <= 9, "no point is tried twice");
}

#[test]
fn words_of_a_lexicon_are_compared_without_punctuation() {
    let dir = tempfile::tempdir().unwrap();
    let recognizer = with_words();
    let mut listed = utterance(dir.path(), 1);
    let options = EvaluateOptions { decoder: recognizer.decoder(), scoring: Scoring::default() };
    let written = evaluate(&recognizer, std::slice::from_ref(&listed), &options, &Unwatched).transcripts[0].text();
    let first = written.split(' ').next().unwrap().to_owned();
    listed.sentence = format!("“{}”, WRONG-WORD!", written.to_uppercase());
    listed.text = "aa b".to_owned();
    let counts = evaluate(&recognizer, &[listed], &options, &Unwatched).rate().system.counts();
    assert_eq!((counts.deletions, counts.n_errors()), (2, 2), "{first}");
}

/// A model of phones with words.
fn with_words() -> Recognizer {
    let recognizer = Recognizer::from_parts(tiny::parts(Cmvn::Online, Units::Phones, &PHONES)).unwrap();
    let lexicon = "a aa\nab aa b\nsick s ih k\nsink s ih n k\nbin b ih n\nin ih n\nso s\nk k\nb b\nn n\nih ih\n";
    let lexicon = Lexicon::parse(lexicon, recognizer.labels()).unwrap();
    let arpa = "\\data\\\nngram 1=12\n\\1-grams:\n-3 <unk>\n-0.5 a\n-1.5 ab\n-2 sick\n-2 sink\n-2 bin\n-1 in\n-1.2 so\n\
        -1.3 k\n-0.9 b\n-1.1 n\n-0.6 ih\n\\end\\\n";
    let language = Arc::new(NgramModel::read(arpa.as_bytes(), Limits::default()).unwrap());
    recognizer.with_words(WordModel { lexicon, language }, WordSettings::default()).unwrap()
}
