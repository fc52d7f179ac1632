//! Runs the examples in the help of all commands that finish quickly, as printed, in a folder with the files they name.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const COMMANDS: [&str; 15] = [
    "transcribe",
    "validate",
    "evaluate",
    "score",
    "compare",
    "sclite",
    "verify-stream",
    "models",
    "recipes",
    "info",
    "align",
    "gop",
    "convert",
    "features",
    "completions",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn shell(dir: &Path, line: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_srf")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("HOME", dir).env_remove("XDG_DATA_HOME");
    command.env_remove("SRF_MODEL").env_remove("SRF_MODELS").output().unwrap()
}

/// The lines after `Examples:` in the help of a command.
fn examples(dir: &Path, command: &str) -> Vec<String> {
    let help = shell(dir, &format!("srf {command} --help"));
    assert_eq!(help.status.code(), Some(0), "{command} --help: {}", String::from_utf8_lossy(&help.stderr));
    let text = String::from_utf8(help.stdout).unwrap();
    let (_, examples) = text.split_once("Examples:\n").unwrap_or_else(|| panic!("{command} has no examples"));
    examples.lines().map(|line| line.trim().to_owned()).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A folder with the files that the examples name. The format of a recording is detected from its content.
fn workplace() -> tempfile::TempDir {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let samples = root().join("samples");
    let wav = samples.join("woman-1.wav");
    for name in ["talk.wav", "talk.flac", "talk.mp3", "a.wav", "a.flac", "b.flac"] {
        fs::copy(&wav, dir.join(name)).unwrap();
    }
    for folder in ["recordings", "data/timit", "corpus", "timit"] {
        copy_folder(&samples, &dir.join(folder));
        let manifest = dir.join(folder).join("samples.jsonl");
        for name in ["train", "dev", "test"] {
            fs::copy(&manifest, dir.join(folder).join(format!("{name}.jsonl"))).unwrap();
        }
    }
    fs::remove_file(dir.join("recordings/samples.jsonl")).unwrap();
    for model in ["my-model", "run/model", "runs/mine/model"] {
        copy_folder(&root().join("models/en-phones"), &dir.join(model));
    }
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    let manifest = fs::read_to_string(samples.join("samples.jsonl")).unwrap();
    write("manifest.jsonl", &manifest.replace("\"audio_filepath\":\"", "\"audio_filepath\":\"corpus/"));
    write("data/learners.jsonl", &manifest.replace("\"audio_filepath\":\"", "\"audio_filepath\":\"timit/"));
    for folder in ["data/timit", "corpus", "timit"] {
        fs::copy(root().join("models/en-phones/labels.txt"), dir.join(folder).join("labels.txt")).unwrap();
    }
    write("data/wav.scp", &format!("talk {}\n", dir.join("talk.wav").display()));
    write("data/utt2spk", "talk anna\n");
    write("data/text", "talk hello\n");
    write("talk.txt", "hello\n");
    write("cmudict.txt", "hello hh ah l ow\n");
    let call: Vec<u8> = fs::read(&wav).unwrap().iter().copied().chain(vec![0; 2 * 16_000 * 20]).collect();
    let mut call = call;
    let data_bytes = (call.len() - 44) as u32;
    call[40..44].copy_from_slice(&data_bytes.to_le_bytes());
    call[4..8].copy_from_slice(&(data_bytes + 36).to_le_bytes());
    for name in ["call.sph", "call.wav"] {
        fs::write(dir.join(name), &call).unwrap();
    }
    for name in ["ref.trn", "hyp.trn", "baseline.trn", "mine.trn", "test.ref", "test.hyp"] {
        write(name, "the cat sat (ann_001)\nthe dog ran (bob_001)\n");
    }
    for name in ["timit.ref", "timit.hyp"] {
        write(name, "h# sh iy hh ae d h# (ann_001)\n");
    }
    for name in ["ref.txt", "hyp.txt"] {
        write(name, "ann-1 the cat sat\n");
    }
    for name in ["ref.stm", "test.stm"] {
        write(name, "call A ann 0.0 2.0 the cat sat\n");
    }
    for name in ["hyp.ctm", "a.ctm", "b.ctm", "c.ctm", "test.ctm", "ref.ctm"] {
        write(name, "call A 0.1 0.3 the\ncall A 0.4 0.3 cat\ncall A 0.7 0.3 sat\n");
    }
    for folder in ["reports", ".zfunc", ".local/share/bash-completion/completions", ".config/fish/completions"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    temporary
}

#[test]
fn examples_of_quick_commands_run_as_printed() {
    let mut failed = Vec::new();
    for command in COMMANDS {
        // A folder for each command: some examples write over files that others read.
        let dir = workplace();
        for line in examples(dir.path(), command) {
            let is_other = ["arecord", "ffmpeg", "srf train"].iter().any(|program| line.starts_with(program));
            if is_other {
                continue;
            }
            let output = shell(dir.path(), &line);
            if output.status.code() != Some(0) {
                failed.push(format!("{line}\n{}", String::from_utf8_lossy(&output.stderr)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_command_has_help_with_examples() {
    let dir = tempfile::tempdir().unwrap();
    let overview = String::from_utf8(shell(dir.path(), "srf --help").stdout).unwrap();
    let commands: Vec<&str> = overview
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(20 < commands.len(), "{overview}");
    for command in commands {
        assert!(!examples(dir.path(), command).is_empty(), "{command}");
    }
}
