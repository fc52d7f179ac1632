//! `srf prepare` and `srf validate` as a user runs them: exit codes, files and messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn srf(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).output().expect("the program is built with its tests")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ends by itself")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn a_corpus_is_made_prepared_and_valid_from_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = path(dir.path(), "corpus");
    let made =
        srf(&["prepare", "builtin", &out, "--hours", "0.01", "--speakers", "5", "--split", "60/20/20", "--kaldi"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert!(stderr(&made).contains("41 classes"), "{}", stderr(&made));
    for name in ["train.jsonl", "dev.jsonl", "test.jsonl", "labels.txt", "summary.json", "kaldi/train/wav.scp"] {
        assert!(dir.path().join("corpus").join(name).exists(), "{name}");
    }
    let manifests = ["train", "dev", "test"].map(|part| path(dir.path(), &format!("corpus/{part}.jsonl")));
    let valid = srf(&["validate", &manifests[0], &manifests[1], &manifests[2], "--decode"]);
    assert_eq!(code(&valid), 0, "{}", stderr(&valid));
}

#[test]
fn a_timit_shaped_disc_goes_through_prepare_timit() {
    let dir = tempfile::tempdir().unwrap();
    let (disc, out) = (path(dir.path(), "disc"), path(dir.path(), "out"));
    assert_eq!(code(&srf(&["prepare", "builtin", &disc, "--layout", "timit", "--speakers", "3"])), 0);
    let prepared = srf(&["prepare", "timit", &disc, &out, "--fold", "48"]);
    assert_eq!(code(&prepared), 0, "{}", stderr(&prepared));
    let talk = stderr(&prepared);
    assert!(talk.contains("train: 8 utterances, the complete corpus has 3696"), "{talk}");
    assert!(talk.contains("50 classes: padding, 48 labels"), "{talk}");
}

#[test]
fn problems_are_told_with_file_and_line_and_end_in_1() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = path(dir.path(), "m.jsonl");
    fs::write(&manifest, "{\"audio_filepath\": \"gone.wav\", \"duration\": 1, \"text\": \"a\"}\n{\"audio").unwrap();
    let output = srf(&["validate", &manifest]);
    assert_eq!(code(&output), 1);
    let talk = stderr(&output);
    assert!(talk.contains("m.jsonl:1: utterance `gone`: could not read"), "{talk}");
    assert!(talk.contains("m.jsonl:2: not a manifest entry: EOF"), "{talk}");
}

#[test]
fn what_cannot_start_ends_in_2_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let (src, out) = (path(dir.path(), "nowhere"), path(dir.path(), "out"));
    let output = srf(&["prepare", "timit", &src, &out]);
    assert_eq!(code(&output), 2);
    let talk = stderr(&output);
    assert!(talk.contains("no utterance to prepare was found"), "{talk}");
    assert!(talk.contains("hint: "), "{talk}");
    let output = srf(&["prepare", "builtin", &out, "--layout", "timit", "--speakers", "2"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("hint: add `--speakers 3` or more"), "{}", stderr(&output));
    assert_eq!(code(&srf(&["validate", &src])), 2);
    assert_eq!(code(&srf(&["prepare", "folder", &src, &out, "--split", "50/50"])), 2);
    assert_eq!(code(&srf(&["prepare", "builtin", &out, "--voices", "espeak"])), 2, "espeak has no phones");
    assert_eq!(code(&srf(&["prepare", "builtin", &out, "--hours", "0"])), 2);
}

#[test]
fn validate_reports_all_problems_of_an_utterance() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = path(dir.path(), "m.jsonl");
    fs::write(dir.path().join("labels.txt"), "# units: phones\n<pad>\naa\nb\n<blank>\n").unwrap();
    fs::write(&manifest, "{\"audio_filepath\": \"gone.wav\", \"duration\": 1, \"text\": \"aa zz b xx zz\"}\n").unwrap();
    let output = srf(&["validate", &manifest]);
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    for expected in ["could not read", "label 2 is `zz`", "label 4 is `xx`"] {
        assert_eq!(text.matches(expected).count(), 1, "{expected}: {text}");
    }
}

#[test]
fn a_corpus_of_pieces_is_prepared_trained_and_scored_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let (corpus, run) = (path(dir.path(), "corpus"), path(dir.path(), "run"));
    let made = srf(&[
        "prepare",
        "builtin",
        &corpus,
        "--hours",
        "0.06",
        "--speakers",
        "5",
        "--split",
        "60/20/20",
        "--units",
        "bpe",
        "--pieces",
        "60",
    ]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert!(stderr(&made).contains("62 classes: padding, 60 labels"), "{}", stderr(&made));
    let labels = fs::read_to_string(dir.path().join("corpus/labels.txt")).unwrap();
    assert!(labels.starts_with("# units: bpe\n<pad>\n") && labels.contains("\n▁"), "{labels}");
    let small = ["model.layers=1", "model.primary_height=4", "model.filters=4"];
    let train = ["train", "own/srf", "--data", &corpus, "--out", &run, "--epochs", "1", "training.average_epochs=1"];
    let trained = srf(&[&train[..], &small].concat());
    assert_eq!(code(&trained), 0, "{}", stderr(&trained));
    let scored = srf(&["evaluate", "--model", &run, &path(dir.path(), "corpus/test.jsonl"), "--json"]);
    assert_eq!(code(&scored), 0, "{}", stderr(&scored));
    assert!(String::from_utf8_lossy(&scored.stdout).contains("\"WER\""), "{}", String::from_utf8_lossy(&scored.stdout));
    let few = srf(&["prepare", "builtin", &corpus, "--force", "--hours", "0.01", "--units", "bpe", "--pieces", "3"]);
    assert_eq!(code(&few), 2);
    assert!(stderr(&few).contains("3 pieces are too few"), "{}", stderr(&few));
}
