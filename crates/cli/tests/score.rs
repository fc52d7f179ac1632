//! `srf score` and `srf compare` as a person at a terminal meets them.
#![allow(clippy::unwrap_used, reason = "a test may fail and may say why it was skipped")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn srf(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(arguments).current_dir(directory).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A directory with a reference in trn and hypotheses in trn and in Kaldi's text.
fn test_files() -> tempfile::TempDir {
    let work = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(work.path().join(name), text).unwrap();
    write("ref.trn", "the cat sat on the mat (ann-1)\nÉcole is out (bob-1)\n");
    write("hyp.trn", "the cat on a mat (ann-1)\nécole is is out (bob-1)\n");
    write("hyp.txt", "ann-1 the cat on a mat\nbob-1 école is is out\n");
    write("good.trn", "the cat sat on the mat (ann-1)\nécole is out (bob-1)\n");
    write("short.trn", "the cat sat on the mat (ann-1)\n");
    work
}

#[test]
fn the_rate_is_one_line_whatever_the_format() {
    let work = test_files();
    for hypothesis in ["hyp.trn", "hyp.txt"] {
        let output = srf(work.path(), &["score", "ref.trn", hypothesis]);
        assert_eq!(stdout(&output), "%WER 33.33 [ 3 / 9, 1 ins, 1 del, 1 sub ]\n%SER 100.00 [ 2 / 2 ]\n");
        assert!(output.status.success());
    }
}

#[test]
fn characters_and_phones_have_their_own_names() {
    let work = test_files();
    let characters = stdout(&srf(work.path(), &["score", "--unit", "char", "ref.trn", "hyp.trn"]));
    assert!(characters.starts_with("%CER 29.63 [ 8 / 27,"), "{characters}");
    fs::write(work.path().join("ref.phn"), "h# bcl b ao q zh (fxx0_sx1)\n").unwrap();
    fs::write(work.path().join("hyp.phn"), "sil sil b aa sh (fxx0_sx1)\n").unwrap();
    let phones = stdout(&srf(work.path(), &["score", "--fold", "39", "ref.phn", "hyp.phn"]));
    assert!(phones.starts_with("%PER 0.00 [ 0 / 5,"), "{phones}");
    let merged = stdout(&srf(work.path(), &["score", "--fold", "39", "--merge-silences", "ref.phn", "hyp.phn"]));
    assert!(merged.starts_with("%PER 0.00 [ 0 / 4,"), "{merged}");
}

#[test]
fn missing_utterances_are_refused_by_default() {
    let work = test_files();
    let output = srf(work.path(), &["score", "ref.trn", "short.trn"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("`short.trn` lacks 1 of 2 utterances, the first is `bob-1`"), "{told}");
    assert!(told.contains("hint: `--mode all`"), "{told}");
    let output = srf(work.path(), &["score", "--mode", "all", "ref.trn", "short.trn"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("%WER 33.33 [ 3 / 9, 0 ins, 3 del, 0 sub ]"));
}

#[test]
fn speakers_and_frequent_errors_are_listed() {
    let work = test_files();
    let arguments = ["score", "ref.trn", "hyp.trn", "--speakers", "--confusions", "2", "--alignments"];
    let shown = stdout(&srf(work.path(), &arguments));
    assert!(shown.contains("ann          1       6      1      1      0   33.33"), "{shown}");
    assert!(shown.contains("     1  (nothing) -> is"), "{shown}");
    assert!(shown.contains("  ref  the cat SAT on THE mat"), "{shown}");
    assert!(shown.contains("  hyp  the cat *** on A   mat"), "{shown}");
}

#[test]
fn json_holds_every_word() {
    let work = test_files();
    let output = srf(work.path(), &["score", "--json", "ref.trn", "hyp.trn"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["measure"], "WER");
    assert_eq!(value["counts"]["errors"], 3);
    assert_eq!(value["utterances"][0]["words"][2], serde_json::json!(["sat", null]));
}

#[test]
fn the_page_needs_no_network() {
    let work = test_files();
    let output = srf(work.path(), &["score", "--html", "page.html", "ref.trn", "hyp.trn"]);
    assert!(output.status.success());
    let page = fs::read_to_string(work.path().join("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("addEventListener"));
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page refers to something outside: {outside}");
    }
}

#[test]
fn a_test_of_another_size_is_noted() {
    let work = tempfile::tempdir().unwrap();
    let lines: String = (0..333).map(|n| format!("word (440c{n:04})")).collect::<Vec<_>>().join("\n");
    fs::write(work.path().join("ref.trn"), lines).unwrap();
    let output = srf(work.path(), &["score", "ref.trn", "ref.trn"]);
    let told = stderr(&output);
    assert!(told.contains("333 utterances as WSJ eval92, but the reference has 333 tokens instead of 5643"), "{told}");
}

#[test]
fn systems_are_compared_in_one_table_and_a_sentence() {
    let work = test_files();
    let output = srf(work.path(), &["compare", "ref.trn", "hyp.trn", "good.trn"]);
    let shown = stdout(&output);
    assert!(shown.contains("error rate A 33.33"), "{shown}");
    for test in ["MAPSSWE", "McNemar", "sign", "Wilcoxon"] {
        assert!(shown.contains(test), "{shown}");
    }
    assert!(shown.contains("only 2 segments with errors, too few to decide which is better"), "{shown}");
    let again = srf(work.path(), &["compare", "ref.trn", "hyp.trn", "good.trn"]);
    assert_eq!(shown, stdout(&again), "the same seed gives the same table");
}

#[test]
fn the_comparison_as_json_names_its_tests() {
    let work = test_files();
    let output = srf(work.path(), &["compare", "--json", "ref.trn", "hyp.trn", "good.trn"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["comparisons"][0]["tests"][1]["test"], "McNemar");
    assert!((value["comparisons"][0]["tests"][1]["p"].as_f64().unwrap() - 0.5).abs() < 1e-12);
}
