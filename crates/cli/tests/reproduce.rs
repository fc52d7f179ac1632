//! `srf reproduce` end to end, on tiny networks: every table, killed and resumed tables, and wrong requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Every table with its number.
const TABLES: [&str; 8] = ["routing", "windows", "depth", "architectures", "times", "wsj", "wsj-times", "distance"];

fn srf(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.args(args).stdin(Stdio::null());
    command
}

fn smoke(table: &str, out: &Path) -> Command {
    let mut command = srf(&["reproduce", table, "--smoke", "--threads", "2", "--out"]);
    command.arg(out);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn finished(mut command: Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert_eq!(status.code(), Some(0), "{stdout}\n{stderr}");
    (stdout, stderr)
}

/// All tables, made one after the other in one directory, and what each one printed.
fn tables() -> &'static (TempDir, Vec<String>) {
    static ALL: OnceLock<(TempDir, Vec<String>)> = OnceLock::new();
    ALL.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let printed = TABLES.iter().map(|table| finished(smoke(table, dir.path())).0).collect();
        (dir, printed)
    })
}

fn json(out: &Path, table: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(out.join(format!("{table}.json"))).unwrap()).unwrap()
}

/// Every file of this name below `dir` with its bytes.
fn files_named(dir: &Path, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_named(&path, name));
        } else if path.file_name().unwrap() == name {
            found.push((path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn every_table_has_all_its_figures_in_every_form_and_says_that_it_was_a_trial() {
    let (dir, printed) = tables();
    for (table, printed) in TABLES.iter().zip(printed) {
        let read = |extension: &str| fs::read_to_string(dir.path().join(format!("{table}.{extension}"))).unwrap();
        assert_eq!(read("md"), *printed, "{table}");
        let page = read("html");
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{table}");
        for attribute in ["src=\"", "href=\""] {
            let is_outside = |rest: &str| !rest.starts_with('#');
            assert!(!page.split(attribute).skip(1).any(is_outside), "{table}: the page loads something");
        }
        for tag in ["table", "section", "tr", "td"] {
            let n = |what: String| page.matches(&what).count();
            let n_opened = n(format!("<{tag}>")) + n(format!("<{tag} "));
            assert_eq!(n_opened, n(format!("</{tag}>")), "{table}: {tag}");
        }
        for form in [&page, printed] {
            assert!(form.contains("smoke: figures mean nothing"), "{table}");
        }
        let report = json(dir.path(), table);
        assert_eq!(report["is_smoke"], true);
        for row in report["rows"].as_array().unwrap() {
            assert!(printed.contains(row["title"].as_str().unwrap()));
            assert!(0 < row["n_parameters"].as_u64().unwrap() && row["n_seeds"] == 1, "{row}");
            for cell in row["cells"].as_array().unwrap() {
                assert!(cell["ours"]["mean"].is_number(), "{table}: {row}");
            }
        }
        for claim in report["claims"].as_array().unwrap() {
            assert!(claim["ours"].is_number() && claim["paper"].is_number(), "{table}: {claim}");
            assert_eq!(claim["verdict"], "not_decided", "{table}: {claim}");
        }
    }
}

#[test]
fn the_table_of_windows_has_a_picture() {
    let (dir, _) = tables();
    let png = fs::read(dir.path().join("windows.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let svg = fs::read_to_string(dir.path().join("windows.svg")).unwrap();
    let page = fs::read_to_string(dir.path().join("windows.html")).unwrap();
    assert!(svg.contains("2,2") && page.contains("sentences whose end is found"));
}

#[test]
fn what_is_done_is_not_done_again_and_other_tables_use_it() {
    let (dir, printed) = tables();
    let logs = || files_named(dir.path(), "log.jsonl");
    let before = logs();
    // Rows that two tables have in common, such as srf-7l, are there once.
    assert_eq!(before.len(), 6 + 9 + 4 + 10 + 9);
    let mut in_json = smoke("distance", dir.path());
    let (told, _) = finished({
        in_json.arg("--json");
        in_json
    });
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), json(dir.path(), "distance"));
    let (again, stderr) = finished(smoke("1", dir.path()));
    assert_eq!(again.lines().take(12).collect::<Vec<_>>(), printed[0].lines().take(12).collect::<Vec<_>>());
    assert!(!stderr.contains("epoch") && !stderr.contains("evaluating"), "{stderr}");
    assert!(before == logs(), "something was trained again");
}

#[test]
fn runs_are_those_of_train_and_evaluations_those_of_evaluate() {
    let (dir, _) = tables();
    let run = dir.path().join("routing-sdr-1/seed-1");
    let (stdout, _) = finished(srf(&["runs", run.to_str().unwrap()]));
    assert!(stdout.contains("completed") && stdout.contains("test ") && stdout.contains(" PER ["), "{stdout}");
    let evaluation = run.join("test");
    let [reference, hypothesis] = ["ref.trn", "hyp.trn"].map(|name| evaluation.join(name).display().to_string());
    let (scored, _) = finished(srf(&["score", &reference, &hypothesis, "--json"]));
    let scored: Value = serde_json::from_str(&scored).unwrap();
    let rate = json(dir.path(), "routing")["rows"][3]["cells"][1]["ours"]["mean"].as_f64().unwrap();
    // The same counts, divided twice.
    assert!((100.0 * scored["counts"]["rate"].as_f64().unwrap() - rate).abs() < 1e-9, "{rate}: {scored}");
}

#[test]
fn other_recipes_for_runs_that_exist_are_refused_before_any_work() {
    let (dir, _) = tables();
    let mut command = smoke("depth", dir.path());
    let Output { status, stderr, .. } = command.arg("training.batch_frames=900").output().unwrap();
    let stderr = text(&stderr);
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("was started with `training.batch_frames` 1500, this command has 900"), "{stderr}");
    assert!(stderr.contains("hint: give the same budget, changes and data"), "{stderr}");
}

/// The arguments of a table with two rows and two seeds.
fn two_by_two(out: &Path) -> Command {
    let mut command = smoke("depth", out);
    command.args(["--rows", "depth-2,depth-8", "--seeds", "2"]);
    command
}

#[test]
fn a_table_killed_after_its_first_row_goes_on_and_ends_in_the_same_figures() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    finished(two_by_two(&whole));
    // The corpus is named in the table: both must have it at one place. It is theirs alone, so it may be moved.
    let data = whole.join("corpus-phones");
    let with_data = |out: &Path| {
        let mut command = two_by_two(out);
        command.arg("--data").arg(&data);
        command
    };
    let mut child = with_data(&killed).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_second_begun = || killed.join("depth-8/seed-1/log.jsonl").is_file();
    while !is_second_begun() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    // It may have ended by itself just now.
    let _ = child.kill();
    child.wait().unwrap();
    let first = fs::read(killed.join("depth-2/seed-1/log.jsonl")).unwrap();
    let (_, stderr) = finished(with_data(&killed));
    assert!(stderr.contains("row 2 of 2: depth-8, seed 2"), "{stderr}");
    assert!(first == fs::read(killed.join("depth-2/seed-1/log.jsonl")).unwrap(), "the first row was trained again");
    assert!(files_named(&whole, "weights.safetensors") == files_named(&killed, "weights.safetensors"));
    let figures = |out: &Path| {
        let report = json(out, "depth");
        let cells: Vec<Value> = report["rows"].as_array().unwrap().iter().map(|row| row["cells"].clone()).collect();
        (cells, report["claims"].clone())
    };
    assert_eq!(figures(&whole), figures(&killed));
    assert_eq!(figures(&whole).0[0][1]["ours"]["each"].as_array().unwrap().len(), 2);
}

#[test]
fn a_budget_of_time_is_turned_into_epochs_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let timed = || {
        let mut command = smoke("depth", &out);
        command.args(["--rows", "depth-2", "--minutes", "0.001", "depth-*:training.epochs=2"]);
        command
    };
    let (_, stderr) = finished(timed());
    assert!(stderr.contains("depth-2: timing a few batches"), "{stderr}");
    assert!(out.join("depth-2/pace.json").is_file() && !out.join("depth-2/pace").exists());
    assert_eq!(json(&out, "depth")["rows"][0]["n_epochs"], 2);
    let (_, stderr) = finished(timed());
    assert!(!stderr.contains("timing"), "{stderr}");
}

#[test]
fn wrong_requests_are_told_in_a_line_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let phones = tables().0.path().join("corpus-phones");
    let phones = phones.to_str().unwrap();
    let cases: [(&[&str], &str, &str); 9] = [
        (&["rooting", "--smoke"], "invalid value 'rooting'", "a similar value exists: 'routing'"),
        (&["depth"], "--data <DIR>", "Usage"),
        (&["depth", "--smoke", "--rows", "depth-1"], "has no row `depth-1`", "did you mean `depth-"),
        (&["wsj", "--data", phones], "table `wsj` is about words, but the labels", "`--units chars`"),
        (&["depth", "--data", phones, "training.seed=2"], "`training.seed` cannot be changed", "`--seeds N`"),
        (&["depth", "--data", phones, "dep-2:training.epochs=2"], "has no row `dep-2`", "did you mean `depth-2`?"),
        (&["depth", "--data", phones, "training.epoch=2"], "unknown key `epoch`", "did you mean `training.epochs`?"),
        (
            &["4", "--data", phones, "training.schedule.warmup.steps=9"],
            "row `blstm-5l-250h`: `training",
            "`srf-*:training",
        ),
        (&["depth", "--data", phones, "--minutes", "0"], "`--minutes 0` is not a time to train", ""),
    ];
    for (args, expected, hint) in cases {
        let mut command = srf(&["reproduce"]);
        let Output { status, stdout, stderr } = command.args(args).arg("--out").arg(&out).output().unwrap();
        let stderr = text(&stderr);
        assert_eq!(status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stdout.is_empty() && stderr.contains(expected) && stderr.contains(hint), "{args:?}: {stderr}");
    }
    assert!(!out.join("depth-2").exists(), "a refused request trained something");
}
