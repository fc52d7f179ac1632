//! `srf train` as people use and abuse it: stopped, killed, out of disk, with damaged files, and with wrong recipes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

const RECIPE: &str = r#"
[model]
architecture = "srf"
filters = 2
layers = 2
primary_height = 4
hidden_height = 4
primary_depth = 2
hidden_depth = 2
class_depth = 2

[features]
cmvn = "online"

[training]
epochs = 4
batch_frames = 900
average_epochs = 2
validation_utterances = 3

[training.augment]
speeds = [0.9, 1.0, 1.1]
masks = { n_bands = 1, max_bins = 8, n_stretches = 1, max_frames = 20, max_percent = 20 }

[training.schedule.warmup]
steps = 20
kappa = [{ from_epoch = 1, value = 0.05 }, { from_epoch = 3, value = 0.02 }]
"#;

/// A corpus of a minute and a half, a recipe for a tiny network, and what a run that was never stopped makes of them.
struct Bench {
    dir: TempDir,
    whole: Final,
}

/// What a run ends in.
#[derive(PartialEq, Eq)]
struct Final {
    checkpoint: Vec<u8>,
    weights: Vec<u8>,
}

fn srf(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.args(args).stdin(Stdio::null());
    command
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let corpus = dir.path().join("corpus");
        let prepared = srf(&["-q", "prepare", "builtin", path(&corpus), "--hours", "0.025", "--speakers", "6"]);
        assert!({ prepared }.status().unwrap().success());
        fs::write(dir.path().join("tiny.toml"), RECIPE).unwrap();
        let run = dir.path().join("whole");
        let done = train_in(dir.path(), &run, &["--threads", "2"]).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        let whole = final_of(&run);
        Bench { dir, whole }
    })
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn train_in(dir: &Path, run: &Path, more: &[&str]) -> Command {
    let (recipe, corpus) = (dir.join("tiny.toml"), dir.join("corpus"));
    let mut command = srf(&["train", path(&recipe), "--data", path(&corpus), "--out", path(run)]);
    command.args(more);
    command
}

fn train(run: &Path, more: &[&str]) -> Command {
    train_in(bench().dir.path(), run, more)
}

/// The checkpoints of a run, the oldest first.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn final_of(run: &Path) -> Final {
    let last = checkpoints(run).pop().unwrap();
    Final { checkpoint: fs::read(last).unwrap(), weights: fs::read(run.join("model/weights.safetensors")).unwrap() }
}

#[track_caller]
fn assert_whole(run: &Path) {
    assert!(final_of(run) == bench().whole, "the run did not end in the bytes of one that was never stopped");
}

#[test]
fn two_runs_from_one_seed_end_in_the_same_bytes_with_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    assert!(train(&run, &["--threads", "1"]).output().unwrap().status.success());
    assert_whole(&run);
    let other = dir.path().join("other");
    assert!(train(&other, &["training.seed=2"]).output().unwrap().status.success());
    assert!(final_of(&other) != bench().whole);
}

/// Kills `n_kills` trainings under way, at moments that follow from `seed`, and lets each run end after some of them.
fn kill_again_and_again(n_kills: u32, seed: u32) {
    let dir = tempfile::tempdir().unwrap();
    let (mut n_runs, mut n_killed, mut n_tried) = (0, 0, 0_u32);
    while n_killed < n_kills {
        let run = dir.path().join(format!("run-{n_runs}"));
        // A checkpoint after every step, so that some kills fall within a write.
        let mut child = train(&run, &["--save-every", "0"]).stderr(Stdio::null()).spawn().unwrap();
        n_tried += 1;
        let wait_ms = 20 + seed.wrapping_mul(7919).wrapping_add(n_tried.wrapping_mul(104_729)) % 400;
        thread::sleep(Duration::from_millis(u64::from(wait_ms)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            n_killed += 1;
        } else {
            assert_whole(&run);
            n_runs += 1;
        }
        child.wait().unwrap();
    }
    let run = dir.path().join(format!("run-{n_runs}"));
    let done = train(&run, &[]).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert_whole(&run);
}

#[test]
fn a_training_killed_at_any_moment_ends_in_the_same_bytes() {
    // More of them, as a longer check: `SRF_KILLS=20 cargo test -p srf-cli --test train killed`.
    let n_kills = std::env::var("SRF_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    kill_again_and_again(n_kills, 1);
}

#[test]
#[cfg(unix)]
fn what_a_kill_within_a_write_leaves_behind_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    interrupt(&run);
    let good = checkpoints(&run).pop().unwrap();
    let bytes = fs::read(&good).unwrap();
    // Half a file that was not renamed yet, and, as if the disk had lied, one that was.
    fs::write(run.join("checkpoints/step-9999999998.ckpt.partial"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(run.join("checkpoints/step-9999999999.ckpt"), &bytes[..bytes.len() / 3]).unwrap();
    let mut log = File::options().append(true).open(run.join("log.jsonl")).unwrap();
    log.write_all(br#"{"time_s":1,"step":3,"eve"#).unwrap();
    let done = train(&run, &[]).output().unwrap();
    let told = stderr(&done);
    assert!(done.status.success(), "{told}");
    assert!(told.contains("step-9999999999.ckpt` is damaged: it has "), "{told}");
    assert!(told.contains("going on from"), "{told}");
    assert_whole(&run);
    assert!(checkpoints(&run).len() == 2);
}

#[test]
#[cfg(unix)]
fn a_byte_that_changed_on_the_disk_is_noticed_and_the_checkpoint_before_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    interrupt(&run);
    let last = checkpoints(&run).pop().unwrap();
    let mut file = File::options().write(true).open(&last).unwrap();
    file.seek(SeekFrom::End(-1000)).unwrap();
    file.write_all(&[0x55; 3]).unwrap();
    let done = train(&run, &[]).output().unwrap();
    let told = stderr(&done);
    assert!(told.contains("is damaged: its checksum is"), "{told}");
    assert_whole(&run);
}

/// Starts a training and stops it as Ctrl-C does, as soon as it has written its second checkpoint.
#[cfg(unix)]
fn interrupt(run: &Path) {
    let mut child = train(run, &["--save-every", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    while !run.join("checkpoints").is_dir() || checkpoints(run).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its second checkpoint");
        thread::sleep(Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    let told = stderr(&stopped);
    assert_eq!(stopped.status.code(), Some(1), "{told}");
    assert!(told.contains("stopped; saved `") && told.contains("give the same command again"), "{told}");
}

#[test]
#[cfg(unix)]
fn stopped_in_order_it_says_how_to_go_on_and_ends_in_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    interrupt(&run);
    assert!(train(&run, &[]).output().unwrap().status.success());
    assert_whole(&run);
    // A finished run has nothing left to do, and says where the model is.
    let again = train(&run, &[]).output().unwrap();
    assert!(again.status.success() && stderr(&again).contains("the model is in"), "{}", stderr(&again));
    assert_whole(&run);
}

#[test]
#[cfg(unix)]
fn a_full_disk_stops_it_with_a_clear_line_and_room_lets_it_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let recipe = bench().dir.path().join("tiny.toml");
    let corpus = bench().dir.path().join("corpus");
    // No file may grow beyond a few KiB: the same error as from a disk that is full, for checkpoints but not for small files.
    let script = r#"trap '' XFSZ; ulimit -f 8; exec "$0" "$@""#;
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_srf"), "train", path(&recipe), "--data", path(&corpus)]);
    let full = limited.args(["--out", path(&run)]).output().unwrap();
    let told = stderr(&full);
    assert_eq!(full.status.code(), Some(2), "{told}");
    assert!(told.contains("error: could not write `") && told.contains("hint: make room on the disk"), "{told}");
    let leftovers: Vec<PathBuf> = checkpoints(&run);
    assert!(leftovers.is_empty(), "{leftovers:?}");
    assert!(train(&run, &[]).output().unwrap().status.success());
    assert_whole(&run);
}

#[test]
#[cfg(unix)]
fn another_recipe_or_other_data_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    interrupt(&run);
    let refused = train(&run, &["training.epochs=9"]).output().unwrap();
    let told = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("was started with `training.epochs` 4, this command has 9"), "{told}");
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    for name in ["train.jsonl", "dev.jsonl", "labels.txt"] {
        fs::copy(bench().dir.path().join("corpus").join(name), data.join(name)).unwrap();
    }
    let manifest = fs::read_to_string(data.join("train.jsonl")).unwrap();
    fs::write(data.join("train.jsonl"), manifest.split_once('\n').unwrap().1).unwrap();
    let recipe = bench().dir.path().join("tiny.toml");
    let refused = srf(&["train", path(&recipe), "--data", path(&data), "--out", path(&run)]).output().unwrap();
    assert!(stderr(&refused).contains("was started with data of fingerprint "), "{}", stderr(&refused));
}

#[test]
fn a_wrong_command_is_told_in_one_line_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let cases: &[(&[&str], &str)] = &[
        (&["training.epoch=3"], "hint: did you mean `training.epochs`?"),
        (&["epochs"], "`epochs` does not change the recipe, expected `key=value`"),
        (&["training.epochs=0"], "`training.epochs` is 0, expected 1 to 1000000"),
        (&["model.classes=7"], "`model.classes` is 7, but the labels of the data make"),
        (&["training.augment.speeds=[9.0]"], "`training.augment.speeds` is 9, expected speeds from 0.5 to 2"),
        (&["training.patience=0"], "`training.patience` is 0, expected 1 to 1000000"),
        (&["--from", "nowhere"], "could not read the model `nowhere/weights.safetensors`"),
    ];
    for (more, expected) in cases {
        let refused = train(&run, more).output().unwrap();
        let told = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{more:?}: {told}");
        assert!(!run.exists(), "{more:?} left a run directory");
    }
    let nowhere = srf(&["train", "nowhere.toml", "--data", path(dir.path()), "--out", "run"]).output().unwrap();
    assert!(stderr(&nowhere).contains("hint: `--data` is a folder that `srf prepare` made"), "{}", stderr(&nowhere));
}

#[test]
fn a_rate_that_ruins_the_network_stops_with_state_and_batch_saved() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let kappa = "training.schedule.warmup.kappa=[{from_epoch=1,value=1e38}]";
    let failed = train(&run, &[kappa, "training.max_skipped=2", "training.augment={}"]).output().unwrap();
    let told = stderr(&failed);
    assert_eq!(failed.status.code(), Some(2), "{told}");
    assert!(
        told.contains("3 batches had to be skipped, `training.max_skipped` is 2; the last one because its "),
        "{told}"
    );
    assert_eq!(told.matches("is left out: its ").count(), 3, "{told}");
    assert!(run.join("failed/state.ckpt").is_file());
    assert!(!fs::read_to_string(run.join("failed/batch.txt")).unwrap().trim().is_empty());
}

#[test]
fn a_model_goes_on_from_another_one_also_with_other_labels() {
    let dir = tempfile::tempdir().unwrap();
    let model = bench().dir.path().join("whole/model");
    let from = ["--from", path(&model), "training.epochs=1", "training.average_epochs=1"];
    let same = dir.path().join("same");
    let done = train(&same, &from).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    let words = dir.path().join("words");
    let args = ["-q", "prepare", "builtin", path(&words), "--hours", "0.02", "--speakers", "6", "--units", "words"];
    assert!(srf(&args).status().unwrap().success());
    let recipe = bench().dir.path().join("tiny.toml");
    let other = dir.path().join("other");
    let args = ["train", path(&recipe), "--data", path(&words), "--out", path(&other)];
    let done = srf(&args).args(from).output().unwrap();
    assert!(other.join("model/weights.safetensors").is_file(), "{}", stderr(&done));
    let wider = train(&dir.path().join("wider"), &["--from", path(&model), "model.hidden_height=5"]).output().unwrap();
    let told = stderr(&wider);
    assert!(told.contains("cannot start from") && told.contains("`caps1.W` is ["), "{told}");
}

#[test]
fn the_average_of_a_checkpoints_epochs_is_the_finished_model_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = bench().dir.path().join("whole");
    let last = checkpoints(&run).pop().unwrap();
    let mean = dir.path().join("mean");
    let done = srf(&["average", path(&last), "--epochs", "2", "--out", path(&mean)]).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(fs::read(mean.join("weights.safetensors")).unwrap(), bench().whole.weights);
    // The mean of a model with itself is that model.
    let itself = dir.path().join("itself");
    let model = run.join("model");
    let done = srf(&["average", path(&model), path(&mean), "--out", path(&itself)]).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(fs::read(itself.join("weights.safetensors")).unwrap(), bench().whole.weights);
    let many = srf(&["average", path(&last), "--epochs", "9", "--out", path(&mean)]).output().unwrap();
    assert!(stderr(&many).contains("keeps 2 epochs, 9 were asked for"), "{}", stderr(&many));
}

/// Without a terminal; the recordings have 16 kHz.
#[test]
fn characters_are_measured_twice_lines_come_within_an_epoch_and_low_rates_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = dir.path().join("corpus");
    let size = ["--hours", "0.02", "--speakers", "4", "--units", "chars"];
    assert!(srf(&["-q", "prepare", "builtin", path(&corpus)]).args(size).status().unwrap().success());
    fs::write(dir.path().join("tiny.toml"), RECIPE).unwrap();
    let run = |name: &str, more: &[&str]| {
        let done = train_in(dir.path(), &dir.path().join(name), &[&["--epochs", "1"], more].concat()).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        stderr(&done)
    };
    let said = run("often", &["--log-every", "0", "features.sample_rate_hz=22050"]);
    let epoch = said.lines().find(|line| line.starts_with("epoch   1: loss")).unwrap();
    assert!(epoch.contains(", WER ") && epoch.contains(", CER "), "{epoch}");
    let within = |said: &str| said.lines().filter(|line| line.starts_with("epoch 1/1: loss")).count();
    assert!(2 < within(&said), "{said}");
    assert!(said.contains("recordings have a sample rate below the model's 22050 Hz"), "{said}");
    let said = run("seldom", &[]);
    assert!(within(&said) == 0 && !said.contains("sample rate below"), "{said}");
}

#[test]
fn a_folder_that_no_training_wrote_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("thesis");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("chapter.tex"), "precious").unwrap();
    let refused = train(&run, &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("thesis` holds files that no training wrote"), "{}", stderr(&refused));
    assert_eq!(fs::read_dir(&run).unwrap().count(), 1);
    let forced = train(&run, &["--force", "--epochs", "1"]).output().unwrap();
    assert!(forced.status.success(), "{}", stderr(&forced));
    assert_eq!(fs::read_to_string(run.join("chapter.tex")).unwrap(), "precious");
    assert!(run.join("model/weights.safetensors").is_file());
}

#[test]
fn epochs_stretch_the_schedule_and_fewer_epochs_clamp_the_average() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = |run: &Path| fs::read_to_string(run.join("recipe.toml")).unwrap();
    let longer = dir.path().join("longer");
    let done = train(&longer, &["--epochs", "1"]).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(recipe(&longer).contains("epochs = 1\n"), "{}", recipe(&longer));
    assert!(stderr(&done).contains("`*` marks the smallest loss on dev so far"), "{}", stderr(&done));
    let clamped = dir.path().join("clamped");
    let done = train(&clamped, &["training.epochs=1"]).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(stderr(&done).contains("the model will be the mean of 1 epochs, not 2"), "{}", stderr(&done));
    let both = train(&dir.path().join("both"), &["--epochs", "1", "training.epochs=1"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
}
