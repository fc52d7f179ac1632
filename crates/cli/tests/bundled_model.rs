//! The models that come with the program on the samples, the default one without being named.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `srf` prints to stdout in the source tree, where nobody has named a model.
fn srf(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    let output = command.current_dir(root()).env_remove("SRF_MODEL").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_samples_are_written_down_as_they_were_when_the_model_was_made() {
    let printed = srf(&["evaluate", "-m", "en-phones", "samples/samples.jsonl", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let phones = &summary["rates"][0];
    assert_eq!(phones["n_reference"], 100, "{summary}");
    // 5 when it was made; processors round differently.
    assert!(phones["n_errors"].as_u64().is_some_and(|n_errors| n_errors <= 7), "{summary}");
}

#[test]
fn phones_are_found_where_they_were_said() {
    let text = srf(&["transcribe", "-m", "en-phones", "samples/man-2.wav", "--format", "ctm"]);
    let first: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    let (start_s, phone): (f64, &str) = (first[2].parse().unwrap(), first[4]);
    assert_eq!(phone, "hh");
    // "hugh was born": the first sound of the recording, which begins with silence.
    assert!((0.05..0.5).contains(&start_s), "{text}");
}

#[test]
fn the_default_writes_words_and_on_request_phones() {
    let dictionary = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
    let words = srf(&["transcribe", "samples/man-1.wav"]);
    assert!(words.split_whitespace().count() >= 4 && words.split_whitespace().all(dictionary), "{words}");
    let phones = srf(&["transcribe", "--phones", "samples/man-1.wav"]);
    assert!(phones.split_whitespace().count() > words.split_whitespace().count(), "{phones}");
    assert!(phones.split_whitespace().all(|phone| phone.len() <= 2), "{phones}");
    let scored: serde_json::Value =
        serde_json::from_str(&srf(&["evaluate", "samples/samples.jsonl", "--json"])).unwrap();
    assert_eq!(scored["rates"][0]["measure"], "WER", "{scored}");
}

/// A copy of the program in a folder with nothing else, and nothing in the user's home.
fn alone(args: &[&str]) -> (TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("srf");
    fs::copy(env!("CARGO_BIN_EXE_srf"), &program).unwrap();
    fs::copy(root().join("samples/woman-1.wav"), dir.path().join("talk.wav")).unwrap();
    let mut command = Command::new(program);
    command.current_dir(dir.path()).env("HOME", dir.path());
    for variable in ["SRF_MODEL", "SRF_MODELS", "XDG_DATA_HOME", "LOCALAPPDATA"] {
        command.env_remove(variable);
    }
    let output = command.args(args).output().unwrap();
    (dir, output)
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_program_alone_transcribes_and_names_its_models_and_recipes() {
    let (dir, output) = alone(&["transcribe", "talk.wav"]);
    assert_eq!(printed(&output), srf(&["transcribe", "samples/woman-1.wav"]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the output is words, from a lexicon of"));
    assert!(dir.path().join(".local/share/srf/models/en/words.bin").is_file());
    assert!(!printed(&alone(&["transcribe", "-m", "en-digits", "talk.wav"]).1).trim().is_empty());
    let models = printed(&alone(&["models"]).1);
    assert!(
        models.contains("en-digits") && models.contains("39 phones, 16000 Hz: English words (bundled, the default)")
    );
    let recipes = printed(&alone(&["recipes"]).1);
    assert!(recipes.lines().any(|line| line.starts_with("own/srf ")), "{recipes}");
    assert!(printed(&alone(&["recipes", "own/srf"]).1).contains("[model]"));
    assert!(printed(&alone(&["info", "timit/srf-7l"]).1).contains("1,968,922"));
    let info = printed(&alone(&["info", "en-digits"]).1);
    for expected in ["units            words", "labels           10: ", "sample rate      16000 Hz", "# English digits"]
    {
        assert!(info.contains(expected), "`{expected}` is missing in {info}");
    }
}

#[test]
fn an_installed_model_is_found_by_name_and_a_misspelt_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
        command.args(args).current_dir(root()).env("SRF_MODELS", dir.path().join("models")).output().unwrap()
    };
    printed(&run(&["models", "install", "models/en-digits", "--name", "mine"]));
    assert!(printed(&run(&["models"])).contains("mine"));
    let by_name = printed(&run(&["transcribe", "-m", "mine", "samples/man-1.wav"]));
    assert_eq!(by_name, printed(&run(&["transcribe", "-m", "models/en-digits", "samples/man-1.wav"])));
    assert_eq!(run(&["models", "install", "samples"]).status.code(), Some(2));
    assert_eq!(run(&["models", "install", "models/en-digits"]).status.code(), Some(2), "the name is taken");
    let misspelt = run(&["transcribe", "-m", "models/en-digit", "samples/man-1.wav"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&misspelt.stderr).contains("did you mean `models/en-digits`?"));
}
