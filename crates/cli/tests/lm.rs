//! `srf lm` as a person at a terminal meets it.
#![allow(clippy::unwrap_used, reason = "a test may fail and may say why")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lm/tests/golden").join(name)
}

fn srf(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn with_stdin(arguments: &[&str], text: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_perplexity_of_an_estimated_model_is_the_one_that_kenlm_prints() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.arpa.gz");
    let (model, text, heldout) = (model.to_str().unwrap(), golden("text.txt"), golden("heldout.txt"));
    let output = srf(&["lm", "estimate", text.to_str().unwrap(), "--out", model, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(summary["orders"][2]["kept"], 1442);
    let output = srf(&["lm", "perplexity", "--lm", model, heldout.to_str().unwrap()]);
    let expected = "\
sentences                  5
words                      25
unknown words              4 (16.00 %)
log10 probability          -52.4658
perplexity                 56.0865
perplexity without unknown 32.8733
";
    assert_eq!(stdout(&output), expected);
    let output = srf(&["lm", "perplexity", "--lm", model, "--sentences", heldout.to_str().unwrap()]);
    let first = stdout(&output).lines().next().unwrap().to_owned();
    assert!(first.starts_with("-14.5273 7 1 "), "{first}");
    let output = srf(&["lm", "perplexity", "--lm", model, "--sentences", "--json", heldout.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["each"].as_array().unwrap().len(), 5);
    assert!((json["perplexity"].as_f64().unwrap() - 56.086_541_73).abs() < 1e-4);
}

#[test]
fn text_comes_from_stdin_and_the_model_goes_to_stdout() {
    let text = fs::read_to_string(golden("text.txt")).unwrap();
    let direct = stdout(&srf(&["lm", "estimate", golden("text.txt").to_str().unwrap()]));
    assert!(direct.starts_with("\\data\\\nngram 1=522\nngram 2=1327\nngram 3=1442\n"), "{}", &direct[..60]);
    assert_eq!(stdout(&with_stdin(&["lm", "estimate", "--threads", "1", "--memory", "1M"], &text)), direct);
    assert_eq!(stdout(&with_stdin(&["lm", "estimate", "-"], &text)), direct);
}

#[test]
fn errors_are_one_line_and_say_what_helps() {
    let output = with_stdin(&["lm", "estimate"], "a b c\n");
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(printed.starts_with("error: no 1-gram has the adjusted count 2"), "{printed}");
    assert!(printed.contains("hint: ") && printed.contains("--discount-fallback"), "{printed}");
    assert!(with_stdin(&["lm", "estimate", "--discount-fallback"], "a b c\n").status.success());
    let printed = stderr(&with_stdin(&["lm", "estimate"], "a <s>\n"));
    assert!(printed.starts_with("error: stdin:1: `<s>` has a meaning of its own"), "{printed}");
    assert!(printed.contains("--skip-symbols"), "{printed}");
    let printed = stderr(&with_stdin(&["lm", "estimate", "--memory", "lots"], "a\n"));
    assert!(printed.starts_with("error: --memory: found `lots`"), "{printed}");
    let printed = stderr(&srf(&["lm", "estimate", "no-such-text.txt"]));
    assert!(printed.starts_with("error: could not read `no-such-text.txt`"), "{printed}");
    assert!(stderr(&with_stdin(&["lm", "estimate"], "")).starts_with("error: the text has no words"));
}
