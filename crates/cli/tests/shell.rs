//! Completions, man pages and suggestions as a user sees them.

use std::process::{Command, Output};

fn srf(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).output().expect("the program was just built")
}

#[test]
fn every_shell_gets_a_script_that_knows_commands_and_values() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let Output { status, stdout, .. } = srf(&["completions", shell]);
        assert!(status.success(), "{shell}");
        let script = String::from_utf8_lossy(&stdout).into_owned();
        assert!(script.contains("prepare"), "{shell}");
        for values in
            ["\"phones chars words bpe\"", "\"61 48 39\"", "\"timit48 timit39 shared37\"", "\"text json ctm trn"]
        {
            assert!(shell != "bash" || script.contains(values), "{values}");
        }
        // PowerShell's script has names of options only.
        assert!(
            shell == "powershell" || shell == "elvish" || script.contains("textgrid"),
            "{shell}: values of --format"
        );
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

#[test]
fn a_misspelt_recording_is_a_problem_with_a_suggestion() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples");
    std::fs::copy(format!("{samples}/man-1.wav"), dir.path().join("talk.wav")).expect("the samples are there");
    let [right, wrong] = ["talk.wav", "takl.wav"].map(|name| dir.path().join(name).to_string_lossy().into_owned());
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/en-digits");
    let Output { status, stderr, .. } = srf(&["transcribe", "-m", model, &wrong, &right]);
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("hint: did you mean `{right}`?")), "{stderr}");
}

#[test]
fn words_for_a_phone_model_get_a_hint_about_the_lexicon() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let phrases = dir.path().join("phrases.txt").to_string_lossy().into_owned();
    std::fs::write(&phrases, "turn on the light\n").expect("the directory is ours");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/en-phones");
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/man-1.wav");
    for option in ["--phrases", "--hotwords"] {
        let Output { status, stderr, .. } = srf(&["transcribe", "-m", model, recording, option, &phrases]);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert_eq!(status.code(), Some(2), "{option}: {stderr}");
        assert!(stderr.contains("the labels of this model are phones"), "{option}: {stderr}");
    }
}
