//! `srf demo`, killed half way, resumed, repeated, and its printed advice followed.
//! The advice is run by a shell.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn demo(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.args(["demo", "--smoke"]).arg(dir).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn finished(dir: &Path) -> (String, String) {
    let Output { status, stdout, stderr } = demo(dir).output().expect("the program was just built");
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert_eq!(status.code(), Some(0), "{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Kills a demo as soon as its training can be gone on with.
fn kill_while_training(dir: &Path) {
    let mut child = demo(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program was just built");
    let has_checkpoint = || {
        let files = fs::read_dir(dir.join("checkpoints")).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.path().extension().is_some_and(|extension| extension == "ckpt"))
    };
    while !has_checkpoint() && child.try_wait().expect("it is our child").is_none() {
        thread::sleep(Duration::from_millis(5));
    }
    // It may have ended by itself just now.
    let _ = child.kill();
    child.wait().expect("it is our child");
}

fn assert_loads_nothing(page: &str) {
    for attribute in ["src=\"", "href=\"", "url("] {
        let loaded = page.split(attribute).skip(1).find(|rest| !rest.starts_with("data:") && !rest.starts_with('#'));
        assert!(loaded.is_none(), "{attribute}: {:?}", loaded.map(|rest| rest.chars().take(60).collect::<String>()));
    }
}

#[test]
fn a_demo_is_gone_on_with_then_skipped_and_its_advice_works_as_printed() {
    let outside = tempfile::tempdir().expect("there is a place for temporary files");
    let dir = outside.path().join("a demo");
    kill_while_training(&dir);
    let (stdout, stderr) = finished(&dir);
    assert!(stderr.contains("1/5 the corpus is in"), "{stderr}");
    for expected in ["%PER", "real-time factor", "  ref    ", "  hyp    ", "most probable"] {
        assert!(stdout.contains(expected), "`{expected}` is missing in {stdout}");
    }
    let page = fs::read_to_string(dir.join("report.html")).expect("the demo writes a page");
    assert_loads_nothing(&page);
    for expected in ["<h2>Result</h2>", "<h2>Routing of ", "<h2>Confusions</h2>", "<h2>Training</h2>", "data:audio/wav"]
    {
        assert!(page.contains(expected), "`{expected}` is missing in the page");
    }

    let weights = fs::read(dir.join("model/weights.safetensors")).expect("the demo writes a model");
    let (again, stderr) = finished(&dir);
    assert!(stderr.contains("1/5 the corpus is in") && stderr.contains("2/5 the model is in"), "{stderr}");
    assert!(weights == fs::read(dir.join("model/weights.safetensors")).expect("it is still there"));

    let advice: Vec<&str> = again.lines().rev().take(3).collect();
    for line in advice.iter().rev() {
        // Forty epochs take longer than a test should.
        let line = line.replace("training.epochs=40", "training.epochs=2");
        let Output { status, stderr, .. } = Command::new("sh").args(["-c", &line]).output().expect("there is a shell");
        assert_eq!(status.code(), Some(0), "{line}\n{}", text(&stderr));
    }
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    fs::write(dir.path().join("diary.txt"), "dear diary").expect("the directory is ours");
    let Output { status, stderr, .. } = demo(dir.path()).output().expect("the program was just built");
    assert_eq!(status.code(), Some(2));
    let stderr = text(&stderr);
    assert!(stderr.contains("is not empty") && stderr.contains("hint: name another directory"), "{stderr}");
}
