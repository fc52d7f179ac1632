//! `srf analyze` as a user runs it: pictures and pages of a small model, and what is said of bad input.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use srf::directory::{self, ModelParts};
use srf_model::config::{Cmvn, FeaturesConfig, ModelConfig, SrfConfig};
use srf_text::labels::{LabelSet, Units};

const OURS: &str = "the directory is ours";

fn write_model(dir: &Path) {
    let labels = LabelSet::new(Units::Phones, ["a", "b", "c"]).expect("three different labels");
    let config = SrfConfig { layers: 2, primary_height: 6, filters: 4, ..SrfConfig::new(labels.n_classes()) };
    let model = ModelConfig::Srf(config);
    let features = FeaturesConfig { cmvn: Cmvn::None, ..FeaturesConfig::default() };
    directory::write(dir, &ModelParts::untrained(model, features, labels, 7)).expect(OURS);
}

/// A WAV of `duration_s` at 8 kHz; behind its first second it is a hole in the file.
fn write_wav(path: &Path, duration_s: u32) {
    let n_bytes = 16_000 * duration_s;
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + n_bytes).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend(8000_u32.to_le_bytes());
    bytes.extend(16_000_u32.to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(n_bytes.to_le_bytes());
    bytes.extend((0..8000).flat_map(|at: i32| (((at * at / 50) % 4000 - 2000) as i16).to_le_bytes()));
    fs::write(path, bytes).expect(OURS);
    let file = fs::OpenOptions::new().write(true).open(path).expect(OURS);
    file.set_len(u64::from(44 + n_bytes)).expect(OURS);
}

fn srf(dir: &Path, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.current_dir(dir).args(args.split_whitespace()).output().expect("the program was built")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn pictures_page_and_table_of_a_recording_with_labels() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    write_model(&at.join("run/model"));
    write_wav(&at.join("u.wav"), 1);
    fs::write(at.join("u.phn"), "0 4000 a\n4000 8000 b\n").unwrap();
    let output = srf(at, "analyze --model run/model u.wav --ref u.phn --out out --times 0.3 --json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["total"][0]["n_slices"], 25);
    assert_eq!(json["utterances"][0]["model"], "run");
    for name in ["couplings-run-0.29s.png", "couplings-run-0.29s.svg", "grid.png", "softmax.svg", "routing.html"] {
        assert!(at.join("out/u").join(name).metadata().unwrap().len() > 1000, "{name}");
    }
    let svg = fs::read_to_string(at.join("out/u/couplings-run-0.29s.svg")).unwrap();
    assert!(svg.contains("reference a"), "the label file was read");
}

#[test]
fn of_a_recording_of_ten_hours_the_first_seconds_are_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    write_model(&at.join("m"));
    write_wav(&at.join("long.wav"), 36_000);
    let output = srf(at, "analyze --model m long.wav --seconds 2");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = "`long` is 10.00 h long, its first 2.00 s are analysed; see --seconds";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
    assert!(String::from_utf8(output.stdout).unwrap().contains("50"), "slices of two seconds");
}

#[test]
fn a_table_of_windows_is_drawn_without_a_model() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("w.csv"), "left,right,set,error,eos\n0,0,dev,24.4,52.8\n1,1,dev,21.8,66.5\n").unwrap();
    let output = srf(dir.path(), "analyze --table w.csv --out o");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(dir.path().join("o/windows.png").exists() && dir.path().join("o/windows.svg").exists());
}

#[test]
fn what_is_wrong_is_reported_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    write_model(&at.join("m"));
    write_wav(&at.join("a.wav"), 1);
    write_wav(&at.join("b.wav"), 1);
    fs::write(at.join("a.phn"), "0 4000 a\n").unwrap();
    fs::write(at.join("a.txt"), "a b").unwrap();
    fs::write(at.join("w.csv"), "what,is,this\n").unwrap();
    fs::write(at.join("no.wav"), "no recording").unwrap();
    for (args, code, told) in [
        (
            "analyze --model m a.wav b.wav --ref a.phn",
            2,
            "`a.phn` is for one recording, but there are 2: give a manifest as --ref",
        ),
        ("analyze --model m a.wav --ref a.txt", 2, "`a.txt` has no labels with times, expected"),
        ("analyze --model m a.wav --seconds 0", 2, "--seconds is 0, expected up to 120"),
        ("analyze --model m a.wav --times -1", 2, "unexpected argument '-1'"),
        ("analyze --model nowhere a.wav", 2, "`nowhere`"),
        ("analyze --table w.csv", 2, "w.csv:1: `what,is,this`, expected the head `left,right,set,error,eos`"),
        ("analyze --model m no.wav a.wav", 1, "problem: `no.wav`"),
    ] {
        let output = srf(at, args);
        assert_eq!(output.status.code(), Some(code), "{args}: {}", stderr(&output));
        assert!(stderr(&output).contains(told), "{args}: {}", stderr(&output));
    }
}

#[test]
fn a_run_is_as_good_as_its_model_and_every_id_has_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    write_model(&at.join("run/model"));
    write_wav(&at.join("u.wav"), 1);
    let ids = ["a/b", "a\\\\b", "a b", "a-b", ".."];
    let line = |id: &&str| format!("{{\"id\": \"{id}\", \"audio_filepath\": \"u.wav\", \"text\": \"a\"}}\n");
    fs::write(at.join("m.jsonl"), ids.iter().map(line).collect::<String>()).unwrap();
    let output = srf(at, "analyze -m run m.jsonl --out out --no-sound --times 0.3");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let folders = fs::read_dir(at.join("out")).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(folders.count(), ids.len());
    assert!(stderr(&output).contains("figures and pages of 5 utterances in `out`"), "{}", stderr(&output));
}

#[test]
fn a_place_that_cannot_be_written_to_is_an_error_before_any_work() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    write_model(&at.join("m"));
    write_wav(&at.join("u.wav"), 1);
    fs::write(at.join("file"), "").unwrap();
    let output = srf(at, "analyze -m m u.wav --out file/below");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("could not create `file/below`"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("figures and pages"), "{}", stderr(&output));
    // The folder of the utterance is what cannot be made: nothing was drawn, and that is said.
    fs::create_dir(at.join("out")).unwrap();
    fs::write(at.join("out/u"), "").unwrap();
    let output = srf(at, "analyze -m m u.wav --out out");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("could not write to `out/u`"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("figures and pages"), "{}", stderr(&output));
}

#[test]
fn a_table_with_an_absurd_window_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("w.csv"), "left,right,set,error,eos\n0,100000000,dev,24.4,52.8\n").unwrap();
    let output = srf(dir.path(), "analyze --table w.csv --out o");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a window of more than 10000 slices"), "{}", stderr(&output));
}
