//! `srf info` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use srf_model::config::Recipe;
use srf_model::params::{Layout, Params};
use srf_model::weights;

fn info(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).arg("info").args(args).output().expect("the program was just built")
}

/// Exit code, stdout and stderr.
fn told(args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = info(args);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (status.code().expect("it was not killed"), text(stdout), text(stderr))
}

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes").join(name)
}

/// A model directory as training leaves one.
fn model_directory(recipe: &Recipe) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let params = Params::initialize(Arc::new(Layout::new(&recipe.model)), 1);
    fs::write(dir.path().join("config.toml"), recipe.format()).expect("the directory is ours");
    weights::save(&dir.path().join("weights.safetensors"), &recipe.model, &params).expect("the directory is ours");
    dir
}

fn first_recipe() -> Recipe {
    Recipe::load(&recipe("timit/routing-sdr-1.toml")).expect("the project's own recipes are valid")
}

#[test]
fn a_recipe_is_told_as_a_table() {
    let (code, stdout, stderr) = told(&[recipe("timit/routing-sdr-1.toml").to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let expected = "\
architecture     srf
parameters       207,682 (207,426 trainable)
receptive field  23 frames
look-ahead       11 frames
delay            122.5 ms

layer     output         parameters
input     T x 123                 0
conv1     T/2 x 62 x 64       1,280
bn1       T/2 x 62 x 64         256
conv2     T/4 x 31 x 64      73,856
bn2       T/4 x 31 x 64         256
proj      T/4 x 20           39,700
encaps    T/4 x 20 x 8          160
ln_in     T/4 x 20 x 8          320
caps1     T/4 x 63 x 8       90,720
ln_caps1  T/4 x 63 x 8        1,008
length    T/4 x 63                0
ln_out    T/4 x 63              126
";
    assert_eq!(stdout, expected);
}

#[test]
fn json_is_one_object_on_one_line_with_the_same_figures() {
    let (code, stdout, _) = told(&[recipe("wsj/srf-10l-big.toml").to_str().unwrap(), "--json"]);
    assert_eq!((code, stdout.lines().count()), (0, 1));
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(object["architecture"], "srf");
    assert_eq!(object["parameters"]["total"], 21_125_692);
    assert_eq!(object["parameters"]["trainable"], 21_125_436);
    assert_eq!(object["receptive_field_frames"], 183);
    assert_eq!(object["look_ahead_frames"], 91);
    assert_eq!(object["delay_ms"], 922.5);
    let layers = object["layers"].as_array().unwrap();
    assert_eq!(layers[8]["name"], "caps1");
    assert_eq!(layers[8]["shape"], serde_json::json!([30, 20]));
    assert_eq!(layers[8]["time_divisor"], 4);
    assert_eq!(layers[8]["parameters"], 3_780_000);
}

#[test]
fn a_model_directory_and_its_weights_tell_the_same_as_their_recipe() {
    let dir = model_directory(&first_recipe());
    let of_recipe = told(&[recipe("timit/routing-sdr-1.toml").to_str().unwrap()]);
    assert_eq!(told(&[dir.path().to_str().unwrap()]), of_recipe);
    assert_eq!(told(&[dir.path().join("weights.safetensors").to_str().unwrap()]), of_recipe);
}

#[test]
fn weights_of_another_model_than_the_configuration_are_told() {
    let dir = model_directory(&first_recipe());
    fs::copy(recipe("timit/window-1-0.toml"), dir.path().join("config.toml")).unwrap();
    let (code, stdout, stderr) = told(&[dir.path().to_str().unwrap()]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("holds another model than"), "{stderr}");
}

#[test]
fn a_bad_recipe_is_one_line_on_stderr_and_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.toml");
    let told_of = |text: &str| {
        fs::write(&path, text).unwrap();
        let (code, stdout, stderr) = told(&[path.to_str().unwrap()]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        stderr.replace(&path.display().to_string(), "bad.toml")
    };
    let head = "[model]\narchitecture = \"srf\"\nclasses = 63\n";
    assert_eq!(
        told_of(&format!("{head}window_left = 40\n")),
        "error: bad.toml:4: `model.window_left` is 40, expected 0 to 32\n"
    );
    assert_eq!(
        told_of(&format!("{head}hidden_height = 0\n")),
        "error: bad.toml:4: `model.hidden_height` is 0, expected 1 to 4096\n"
    );
    assert!(told_of(&format!("{head}hight = 3\n")).starts_with("error: bad.toml:4: unknown key `hight`, expected"));
    let (code, _, stderr) = told(&["no-such-recipe.toml"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: could not read `no-such-recipe.toml`: "), "{stderr}");
}

#[test]
fn a_directory_that_is_no_model_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, stderr) = told(&[dir.path().to_str().unwrap()]);
    let expected = "has no config.toml, expected a recipe, a model directory or a weights file\n";
    assert_eq!(code, 2);
    assert!(stderr.ends_with(expected), "{stderr}");
}

#[test]
fn a_truncated_model_is_told_with_a_hint() {
    let dir = model_directory(&first_recipe());
    let path = dir.path().join("weights.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (code, _, stderr) = told(&[path.to_str().unwrap()]);
    let sizes = format!("has {} bytes, expected {}", bytes.len() / 2, bytes.len());
    assert_eq!(code, 2);
    assert!(stderr.contains(&sizes) && stderr.contains("\nhint: the file was cut off"), "{stderr}");
}
