//! Completions, man pages and suggestions as a user sees them.

use std::process::{Command, Output};

fn srf(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).output().expect("the program was just built")
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let Output { status, stdout, .. } = srf(&["completions", shell]);
        assert!(status.success(), "{shell}");
        assert!(String::from_utf8_lossy(&stdout).contains("prepare"), "{shell}");
    }
}

#[test]
fn every_command_gets_a_man_page() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let status = srf(&["man", &dir.path().join("man1").to_string_lossy()]).status;
    assert!(status.success());
    for page in ["srf.1", "srf-prepare.1", "srf-score.1"] {
        let text = std::fs::read_to_string(dir.path().join("man1").join(page)).expect(page);
        assert!(text.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn a_wrong_command_flag_or_path_suggests_the_right_one() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    std::fs::write(dir.path().join("recipe.toml"), "").expect("the directory is ours");
    let misspelt = dir.path().join("recpie.toml").to_string_lossy().into_owned();
    for (args, suggestion) in [
        (vec!["prepaer"], "prepare"),
        (vec!["info", "--jsno", "x"], "--json"),
        (vec!["info", misspelt.as_str()], "recipe.toml"),
    ] {
        let Output { status, stderr, .. } = srf(&args);
        assert_eq!(status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&stderr).contains(suggestion), "{args:?}");
    }
}
