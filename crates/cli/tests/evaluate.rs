//! `srf evaluate` and `srf runs` as a user runs them: exit codes, files, tables and messages.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../asr/tests/tiny/mod.rs"]
mod tiny;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use srf_model::config::Cmvn;
use srf_text::labels::Units;
use srf_train::events::log::Log;
use srf_train::events::{EpochEnd, ErrorCounts, Event, Measured, Record, RunEnd, RunStart, Speed};

fn srf(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.current_dir(dir).args(args).output().expect("the program is built with its tests")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run with a model, and a manifest of three utterances.
fn setup() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let parts = tiny::parts(Cmvn::Online, Units::Phones, &["aa", "b", "ih", "k", "n", "s", "sil"]);
    fs::create_dir(dir.path().join("run")).unwrap();
    srf::directory::write(&dir.path().join("run/model"), &parts).unwrap();
    let lines: String = (0..3).map(|number| manifest_line(dir.path(), number)).collect();
    fs::write(dir.path().join("test.jsonl"), lines).unwrap();
    save_run(&dir.path().join("run"), "[model]\nlayers = 2\n", 40);
    dir
}

/// Saves a recording, and tells the line that lists it.
fn manifest_line(dir: &Path, number: u64) -> String {
    let name = format!("{number}.wav");
    tiny::save(&dir.join(&name), &tiny::sound(number, 40_000), 16_000);
    format!("{{\"audio_filepath\": \"{name}\", \"text\": \"sil aa sil\", \"speaker\": \"s{number}\"}}\n")
}

fn save_run(dir: &Path, recipe: &str, n_wrong: usize) {
    fs::create_dir_all(dir).unwrap();
    let start = RunStart {
        recipe_name: "tiny".to_owned(),
        recipe: recipe.to_owned(),
        seed: 7,
        n_parameters: 12_345,
        n_epochs: 2,
        ..RunStart::default()
    };
    let counts =
        ErrorCounts { measure: "PER".to_owned(), n_reference: 200, substitutions: n_wrong, ..ErrorCounts::default() };
    let epoch = EpochEnd {
        epoch: 2,
        validation: Some(Measured { n_utterances: 3, loss: 1.0, errors: Some(counts), ..Measured::default() }),
        speed: Speed { n_frames: 5000, duration_s: 2.0, wait_s: 0.0 },
        ..EpochEnd::default()
    };
    let mut log = Log::open(&dir.join("log.jsonl")).unwrap();
    let events = [Event::Start(Box::new(start)), Event::Epoch(Box::new(epoch)), Event::End(RunEnd::default())];
    for (step, event) in events.into_iter().enumerate() {
        log.append(&Record { time_s: 0.0, step: step as u64, event }).unwrap();
    }
}

#[test]
fn a_model_is_measured_and_its_run_shows_it() {
    let dir = setup();
    let output = srf(dir.path(), &["evaluate", "--model", "run", "test.jsonl", "--out", "run/test", "--speakers"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["speaker", "s2 ", "%PER ", " / 9, ", "%SER 100.00 [ 3 / 3 ]", "NCE", "3 utterances, 7.50 s in "] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    // The transcripts, scored by themselves, say the same.
    let scored = srf(dir.path(), &["score", "run/test/ref.trn", "run/test/hyp.trn", "--unit", "phone"]);
    let rate = text.lines().find(|line| line.starts_with("%PER")).unwrap();
    assert!(stdout(&scored).contains(rate), "`{rate}` is not in {}", stdout(&scored));
    for name in ["evaluation.json", "ref.trn", "hyp.trn", "hyp.ctm", "hyp.jsonl", "score.html"] {
        assert!(fs::metadata(dir.path().join("run/test").join(name)).unwrap().len() > 0, "{name}");
    }
    let runs = srf(dir.path(), &["runs", "run"]);
    let shown = stdout(&runs);
    assert!(shown.contains(&format!("test {} PER [", rate.split(' ').nth(1).unwrap())), "{shown}");
}

#[test]
fn an_utterance_without_audio_is_told_and_the_exit_code_is_1() {
    let dir = setup();
    fs::remove_file(dir.path().join("1.wav")).unwrap();
    let output = srf(dir.path(), &["evaluate", "--model", "run/model", "test.jsonl", "--json", "--greedy"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("utterance `1` is left out: "), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["n_utterances"], &json["rates"][0]["n_reference"]), (&2.into(), &6.into()));
    assert_eq!((&json["search"], &json["left_out"][0]["id"]), (&"greedy".into(), &"1".into()));
    for number in [0, 2] {
        fs::remove_file(dir.path().join(format!("{number}.wav"))).unwrap();
    }
    let output = srf(dir.path(), &["evaluate", "--model", "run/model", "test.jsonl", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no utterance could be evaluated") && stdout(&output).is_empty());
}

#[test]
fn what_cannot_start_says_why_with_exit_code_2() {
    let dir = setup();
    fs::write(dir.path().join("empty.jsonl"), "").unwrap();
    for (args, message) in [
        (vec!["--model", "nowhere", "test.jsonl"], "nowhere"),
        (vec!["--model", "run", "nowhere.jsonl"], "could not read `nowhere.jsonl`: No such file"),
        (vec!["--model", "run", "empty.jsonl"], "`empty.jsonl` lists no utterance"),
        (vec!["--model", "run", "test.jsonl", "--map", "39"], "unknown mapping `39`"),
    ] {
        let output = srf(dir.path(), &[&["evaluate"], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn runs_stand_side_by_side_with_what_differs() {
    let dir = setup();
    save_run(&dir.path().join("large"), "[model]\nlayers = 7\n", 20);
    let output = srf(dir.path(), &["runs", "run", "large", "--report"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    assert_eq!(lines[1], "run tiny 12,345 2/2 20.00 PER @2 20.00 - 2.0 s 2500 7 completed");
    assert_eq!(lines[2], "large tiny 12,345 2/2 10.00 PER @2 10.00 - 2.0 s 2500 7 completed");
    assert_eq!(lines[4..], ["recipe run large", "model.layers 2 7"]);
    assert!(dir.path().join("large/report.html").exists());
}

#[test]
fn what_is_no_run_is_told_and_the_others_are_shown() {
    let dir = setup();
    let output = srf(dir.path(), &["runs", "run", "run/model", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("`run/model` is not a run: it has no log.jsonl"), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["runs"][0]["best_rate"], &json["runs"][0]["seed"]), (&0.2.into(), &7.into()));
    let alone = srf(dir.path(), &["runs", "."]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("hint: name the runs in it, such as `./run`"), "{}", stderr(&alone));
}

#[test]
fn labels_that_the_model_does_not_have_are_reported_with_a_mapping_that_fits() {
    let dir = setup();
    let line = |text: &str| {
        let line = fs::read_to_string(dir.path().join("test.jsonl")).unwrap();
        line.lines().next().unwrap().replace("sil aa sil", text)
    };
    for (text, expected) in [
        ("pau AA0 sil", "` compares both in a set that has them all"),
        ("hello there", "2 of 2 phones of the reference, such as `hello`, are not among the model's, so an error rate"),
    ] {
        fs::write(dir.path().join("other.jsonl"), line(text)).unwrap();
        let output = srf(dir.path(), &["evaluate", "--model", "run", "other.jsonl"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{}", stdout(&output));
    }
    // One label of many is an error like others.
    fs::write(dir.path().join("other.jsonl"), line(&format!("zz{}", " aa".repeat(20)))).unwrap();
    let output = srf(dir.path(), &["evaluate", "--model", "run", "other.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 21 phones of the reference, such as `zz`, are"), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("%PER"), "{}", stdout(&output));
    fs::write(dir.path().join("other.jsonl"), line("pau AA0 sil")).unwrap();
    let output = srf(dir.path(), &["evaluate", "--model", "run", "other.jsonl", "--map", "timit39"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn ids_that_are_no_plain_words_come_back_from_the_transcripts_of_an_evaluation() {
    let dir = setup();
    let line = |id: &str| {
        let line = serde_json::json!({"id": id, "audio_filepath": "0.wav", "text": "sil aa sil", "speaker": "s"});
        format!("{line}\n")
    };
    let ids = ["x y", "x_y", "a\nb", "(q)", "..", "a/b", ""];
    fs::write(dir.path().join("ids.jsonl"), ids.map(line).concat()).unwrap();
    let output = srf(dir.path(), &["evaluate", "--model", "run", "ids.jsonl", "--out", "out", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let evaluated: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let output = srf(dir.path(), &["score", "out/ref.trn", "out/hyp.trn", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let scored: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(evaluated["n_utterances"], ids.len());
    let found: Vec<&str> = scored["utterances"].as_array().unwrap().iter().map(|u| u["id"].as_str().unwrap()).collect();
    let (mut found, mut expected) = (found, ids.to_vec());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
