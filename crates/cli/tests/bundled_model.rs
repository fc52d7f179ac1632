//! The model that comes with the program, found without being named, on the samples.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// What `srf` prints to stdout in the source tree, where nobody has named a model.
fn srf(args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    let output = command.current_dir(root).env_remove("SRF_MODEL").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_samples_are_written_down_as_they_were_when_the_model_was_made() {
    let printed = srf(&["evaluate", "samples/samples.jsonl", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let phones = &summary["rates"][0];
    assert_eq!(phones["n_reference"], 100, "{summary}");
    // 5 when it was made; processors round differently.
    assert!(phones["n_errors"].as_u64().is_some_and(|n_errors| n_errors <= 7), "{summary}");
}

#[test]
fn phones_are_found_where_they_were_said() {
    let text = srf(&["transcribe", "samples/man-2.wav", "--format", "ctm"]);
    let first: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    let (start_s, phone): (f64, &str) = (first[2].parse().unwrap(), first[4]);
    assert_eq!(phone, "hh");
    // "hugh was born": the first sound of the recording, which begins with silence.
    assert!((0.05..0.5).contains(&start_s), "{text}");
}
