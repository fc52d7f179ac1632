//! `srf words build` and `tune`, and what other commands make of a model with words, as typed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../asr/tests/tiny/mod.rs"]
mod tiny;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use srf_model::config::Cmvn;
use srf_text::cmudict::PHONES;
use srf_text::labels::Units;
use tempfile::TempDir;

const ARPA: &str = "\\data\\\nngram 1=8\nngram 2=3\n\\1-grams:\n-2.5 <unk>\n-1 <s> -0.2\n-1 </s>\n-1.1 a -0.1\n\
    -1.1 the -0.1\n-1.2 speech\n-1.3 blorp\n-1.3 привет\n\\2-grams:\n-0.3 the speech\n-0.5 <s> a\n-0.6 a привет\n\\end\\\n";

/// A directory with a model of the dictionary's phones, a language model, two recordings and a manifest of them.
fn workplace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    srf::directory::write(&dir.path().join("model"), &tiny::parts(Cmvn::Online, Units::Phones, &PHONES)).unwrap();
    fs::write(dir.path().join("lm.arpa"), ARPA).unwrap();
    let mut manifest = String::new();
    for (seed, name) in [(1, "a.wav"), (2, "b.wav")] {
        tiny::save(&dir.path().join(name), &tiny::sound(seed, 32_000), 16_000);
        let _ = writeln!(
            manifest,
            "{{\"audio_filepath\": \"{name}\", \"text\": \"dh ah s p iy ch\", \"sentence\": \"The speech, a!\"}}"
        );
    }
    fs::write(dir.path().join("test.jsonl"), manifest).unwrap();
    dir
}

fn srf(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).current_dir(dir).env_remove("SRF_MODEL").output().unwrap()
}

/// Stdout and stderr of a command that must succeed.
fn printed(dir: &Path, args: &[&str]) -> [String; 2] {
    let output = srf(dir, args);
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    [stdout, stderr]
}

/// The words of the small language model that can be pronounced.
fn with_words() -> TempDir {
    let dir = workplace();
    let [_, notes] = printed(dir.path(), &["words", "build", "--model", "model", "--lm", "lm.arpa", "--known-only"]);
    assert!(notes.contains("4 words with 6 pronunciations, 1 of them by rules"), "{notes}");
    assert!(notes.contains("9 of 11 n-grams up to order 2"), "{notes}");
    assert!(notes.contains("left out: 1 words of the language model, because nothing says"), "{notes}");
    let size = fs::metadata(dir.path().join("model/words.bin")).unwrap().len();
    assert!(notes.contains(&format!("words.bin`: {size} bytes")), "{notes}");
    dir
}

#[test]
fn a_model_with_words_writes_them_and_phones_on_request() {
    let dir = with_words();
    let [text, notes] = printed(dir.path(), &["transcribe", "a.wav"]);
    let known = ["a", "the", "speech", "blorp"];
    assert!(!text.trim().is_empty() && text.split_whitespace().all(|word| known.contains(&word)), "{text}");
    assert!(notes.contains("the output is words, from a lexicon of 4; `--phones` gives phones"), "{notes}");
    assert_eq!(printed(dir.path(), &["transcribe", "a.wav", "--stream", "--chunk-ms", "31"])[0], text);
    let [phones, notes] = printed(dir.path(), &["transcribe", "a.wav", "--phones"]);
    assert!(phones.split_whitespace().all(|phone| PHONES.contains(&phone)), "{phones}");
    assert!(notes.contains("the output is phones; without `--phones`"), "{notes}");
    printed(dir.path(), &["verify-stream", "a.wav", "--random", "2"]);
    fs::write(dir.path().join("list.txt"), "blorp the speech\n").unwrap();
    let [bound, _] = printed(dir.path(), &["transcribe", "a.wav", "--phrases", "list.txt"]);
    assert_eq!(bound.trim(), "blorp the speech");
    let json = printed(dir.path(), &["transcribe", "a.wav", "--format", "json", "--nbest", "3"])[0].clone();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let segment = &json["segments"][0];
    assert!(segment["words"][0]["confidence"].is_number() && segment["words"][0]["start_s"].is_number(), "{json}");
}

#[test]
fn one_corpus_gives_the_error_rates_of_words_and_of_phones() {
    let dir = with_words();
    let [words, notes] = printed(dir.path(), &["evaluate", "--model", "model", "test.jsonl"]);
    assert!(words.contains("%WER ") && words.contains(" / 6, ") && words.contains("%CER "), "{words}");
    assert!(notes.contains("words are compared"), "{notes}");
    let [phones, _] = printed(dir.path(), &["evaluate", "--model", "model", "test.jsonl", "--phones"]);
    assert!(phones.contains("%PER ") && phones.contains(" / 12, ") && !phones.contains("WER"), "{phones}");
    let no_words = fs::read_to_string(dir.path().join("test.jsonl")).unwrap().replace("sentence", "other");
    fs::write(dir.path().join("phones.jsonl"), no_words).unwrap();
    let [same, notes] = printed(dir.path(), &["evaluate", "--model", "model", "phones.jsonl"]);
    assert_eq!(same.lines().next(), phones.lines().next());
    assert!(notes.contains("phones are compared, because the manifest has no words"), "{notes}");
}

#[test]
fn tuned_weights_become_the_defaults_of_the_model() {
    let dir = with_words();
    let tune =
        ["words", "tune", "--model", "model", "test.jsonl", "--alphas", "0.2,1", "--betas", "-1,2", "--beam", "9"];
    let [rows, _] = printed(dir.path(), &[&tune[..], &["--dry-run"]].concat());
    assert!(!dir.path().join("model/decoding.json").exists());
    assert!((3..=5).contains(&rows.lines().count()), "{rows}");
    assert!(rows.starts_with("alpha 0.5 beta 1 beam 9 WER "), "{rows}");
    let [again, notes] = printed(dir.path(), &tune);
    assert_eq!(again, rows);
    let settings = fs::read_to_string(dir.path().join("model/decoding.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let best = format!("best: alpha {} beta {} beam 9", settings["alpha"], settings["beta"]).replace(".0 ", " ");
    assert!(notes.contains(&best), "{best}: {notes}");
    // The options of the command are stronger than the defaults of the model.
    let defaults = printed(dir.path(), &["evaluate", "--model", "model", "test.jsonl"])[0].clone();
    let row = rows.lines().find(|row| row.starts_with(best.trim_start_matches("best: "))).unwrap();
    let rate = row.split(" WER ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(defaults.contains(&format!("%WER {rate} ")), "{defaults} {row}");
}

#[test]
fn what_cannot_be_built_or_tuned_is_said_in_one_line() {
    let dir = workplace();
    let fail = |args: &[&str]| {
        let output = srf(dir.path(), args);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let message = fail(&["words", "tune", "--model", "model", "test.jsonl"]);
    assert!(message.contains("the model has no words (words.bin)") && message.contains("srf words build"), "{message}");
    fs::write(dir.path().join("bad.txt"), "speech s p iy xx\n").unwrap();
    let message = fail(&["words", "build", "--model", "model", "--lm", "lm.arpa", "--lexicon", "bad.txt"]);
    assert!(message.contains("line 1: `speech` has the label `xx`"), "{message}");
    let message = fail(&["words", "build", "--model", "model", "--lm", "a.wav"]);
    assert!(message.starts_with("error: ") && message.contains("a.wav"), "{message}");
    assert!(!dir.path().join("model/words.bin").exists());
}
