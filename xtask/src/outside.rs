//! A project outside the workspace that depends on `srf-asr` by its path alone, as a user's program would.
//!
//! It is the program of `crates/asr/README.md`, run on a bundled model and a recording. Nothing is downloaded: the
//! project has the versions of the workspace's lock file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

/// Nothing but the dependency.
const MANIFEST: &str = r#"[package]
name = "outside"
edition = "2024"

[dependencies]
srf-asr = { path = "ASR" }

[workspace]
"#;

/// Writes the project, runs it and looks at its output.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    let dir = std::env::temp_dir().join(format!("srf-outside-{}", std::process::id()));
    let outcome = write(root, &dir).and_then(|()| run_in(root, &dir));
    let _ = fs::remove_dir_all(&dir);
    outcome?;
    eprintln!("outside: passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The project, a model as `models/en` and a recording as `talk.flac`, the names in the program.
fn write(root: &Path, dir: &Path) -> anyhow::Result<()> {
    let model = dir.join("models/en");
    for folder in [&model, &dir.join("src")] {
        fs::create_dir_all(folder).with_context(|| format!("could not create `{}`", folder.display()))?;
    }
    let asr = root.join("crates/asr").display().to_string().replace('\\', "/");
    fs::write(dir.join("Cargo.toml"), MANIFEST.replace("ASR", &asr))?;
    fs::write(dir.join("src/main.rs"), program(root)?)?;
    copy(&root.join("Cargo.lock"), &dir.join("Cargo.lock"))?;
    copy(&root.join("crates/audio/tests/data/woman-1.flac"), &dir.join("talk.flac"))?;
    for entry in fs::read_dir(root.join("models/en-phones"))? {
        let entry = entry?;
        copy(&entry.path(), &model.join(entry.file_name()))?;
    }
    Ok(())
}

/// The first program in the README of `srf-asr`.
fn program(root: &Path) -> anyhow::Result<String> {
    let readme = fs::read_to_string(root.join("crates/asr/README.md"))?;
    let program = readme.split_once("```rust,no_run\n").and_then(|(_, rest)| rest.split_once("```"));
    program.map(|(program, _)| program.to_owned()).context("crates/asr/README.md has no program")
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).map(drop).with_context(|| format!("could not copy `{}`", from.display()))
}

fn run_in(root: &Path, dir: &Path) -> anyhow::Result<()> {
    let target: PathBuf = root.join("target/outside");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(dir)
        .env("CARGO_TARGET_DIR", target)
        // Nobody debugs it, and it builds faster.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .context("could not start cargo")?;
    if !output.status.success() {
        bail!("the project outside the workspace failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The recording has speech, and the second half of the program hears a second of silence.
    let first = text.lines().next().unwrap_or_default();
    ensure!(first.split_whitespace().count() > 10, "expected the phones of a sentence, found `{first}`");
    eprintln!("outside: {first}");
    Ok(())
}
