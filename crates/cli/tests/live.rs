//! `srf transcribe --stream`: results while the sound goes on, and what a signal leaves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

#[path = "../../asr/tests/tiny/mod.rs"]
mod tiny;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;
use srf::directory::write;
use srf_model::config::Cmvn;
use srf_text::labels::Units;
use tempfile::TempDir;

const PHONES: &[&str] = &["sil", "aa", "b", "iy", "k", "s"];

/// A directory with a model of random weights and four seconds of sound in `a.wav`.
fn workplace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("model"), &tiny::parts(Cmvn::Online, Units::Phones, PHONES)).unwrap();
    tiny::save(&dir.path().join("a.wav"), &tiny::sound(1, 64_000), 16_000);
    dir
}

fn start(dir: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_srf"))
        .arg("transcribe")
        .args(args)
        .current_dir(dir)
        .env_remove("SRF_MODEL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn printed(dir: &Path, args: &[&str]) -> String {
    let output = start(dir, args).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(events: &[Value], kind: &str) -> Vec<String> {
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn json_is_one_event_per_partial_and_final_result_and_subtitles_are_those_of_the_file() {
    let dir = workplace();
    let text = printed(dir.path(), &["a.wav"]);
    let all = events(&printed(dir.path(), &["a.wav", "--stream", "--format", "json"]));
    assert_eq!(texts(&all, "final").join(" "), text.trim_end().replace('\n', " "));
    let partials = texts(&all, "partial");
    assert!(partials.len() > 3 && partials.windows(2).all(|two| two[0] != two[1]), "{partials:?}");
    let end = all.last().unwrap();
    assert_eq!((&end["type"], &end["duration_s"], &end["id"]), (&"end".into(), &4.0.into(), &"a".into()));
    assert!(all.iter().all(|event| event["id"] == "a"));
    for format in ["srt", "vtt"] {
        let file = printed(dir.path(), &["a.wav", "--format", format]);
        assert!(file.contains("-->"), "{file}");
        assert_eq!(printed(dir.path(), &["a.wav", "--stream", "--format", format]), file);
    }
}

/// Starts a stream on stdin and gives it all samples but not the end. More than a pipe holds, so that the process
/// reads, and handles signals, when this returns.
fn speak(dir: &Path, args: &[&str]) -> (Child, ChildStdin) {
    let mut child = start(dir, args);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&std::fs::read(dir.join("a.wav")).unwrap()[44..]).unwrap();
    stdin.flush().unwrap();
    (child, stdin)
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn results_come_while_the_sound_goes_on_and_a_signal_writes_the_rest() {
    let dir = workplace();
    let expected = events(&printed(dir.path(), &["a.wav", "--stream", "--format", "json"]));
    for name in ["-INT", "-TERM"] {
        let (mut child, stdin) = speak(dir.path(), &["-", "--raw", "--stream", "--format", "json"]);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut seen = String::new();
        // The pipe is still open: whatever comes now comes while somebody speaks.
        while events(&seen).len() + 2 < expected.len() {
            assert_ne!(reader.read_line(&mut seen).unwrap(), 0, "{seen}");
        }
        assert!(!texts(&events(&seen), "partial").is_empty());
        signal(&child, name);
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let all = events(&seen);
        assert_eq!(texts(&all, "final"), texts(&expected, "final"));
        assert_eq!(all.last().unwrap()["type"], "end");
        drop(stdin);
    }
}

#[test]
fn a_signal_leaves_text_and_subtitles_of_what_was_heard() {
    let dir = workplace();
    for (format, name) in [("text", "-TERM"), ("srt", "-INT"), ("vtt", "-TERM"), ("ctm", "-INT")] {
        let expected = printed(dir.path(), &["a.wav", "--format", format]);
        let (mut child, stdin) = speak(dir.path(), &["-", "--raw", "--stream", "--format", format]);
        signal(&child, name);
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(text, expected.replace("a A ", "stdin A "), "{format}");
        drop(stdin);
    }
}

/// Waits until the process handles SIGTERM; before, a signal would simply end it.
#[cfg(target_os = "linux")]
fn wait_for_handler(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let handles = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & (1 << (15 - 1)) != 0
    };
    while !handles() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_before_any_sound_ends_the_command() {
    let dir = workplace();
    let mut child = start(dir.path(), &["-", "--raw", "--stream"]);
    wait_for_handler(&child);
    // To wait closes the pipe, which must not look like its end before the signal is seen.
    let pipe = child.stdin.take();
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(pipe);
}
