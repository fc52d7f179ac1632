//! Model directories: what is written is read back; what is broken, missing or hostile is reported in one line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tiny;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use srf::directory::{ModelParts, read, write};
use srf::{Recognizer, StreamOptions};
use srf_audio::features::cmvn::CmvnStats;
use srf_model::config::Cmvn;
use srf_text::labels::Units;
use tempfile::TempDir;

fn with_statistics() -> ModelParts {
    let mut parts = tiny::letters(Cmvn::Global);
    let mut stats = CmvnStats::new(18);
    stats.add(&(0..180).map(|i| (i * i % 23) as f32 / 3.0).collect::<Vec<f32>>());
    parts.cmvn = Some(stats);
    parts
}

fn written(parts: &ModelParts) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), parts).unwrap();
    dir
}

/// The error message for a directory, without its path.
fn told(dir: &Path) -> String {
    let error = Recognizer::open(dir).err().expect("the directory is broken");
    let mut message = error.to_string();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        message = format!("{message}: {next}");
        cause = next;
    }
    assert!(!message.contains('\n'), "{message}");
    message.replace(&format!("{}/", dir.display()), "").replace(&dir.display().to_string(), "DIR")
}

#[test]
fn what_is_written_is_read_back() {
    for parts in [with_statistics(), tiny::letters(Cmvn::Online), tiny::letters(Cmvn::Speaker)] {
        let dir = written(&parts);
        assert_eq!(read(dir.path()).unwrap(), parts);
    }
}

#[test]
fn a_model_without_statistics_leaves_none_of_the_one_before() {
    let dir = written(&with_statistics());
    let parts = tiny::letters(Cmvn::Online);
    write(dir.path(), &parts).unwrap();
    assert_eq!(read(dir.path()).unwrap(), parts);
}

#[test]
fn a_failed_write_leaves_the_old_model_and_a_good_one_replaces_all_of_it() {
    let old = with_statistics();
    let dir = written(&old);
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let mut broken = tiny::parts(Cmvn::Online, Units::Chars, &[" ", "u", "v", "w", "x", "y", "z"]);
    broken.values[7] = f32::INFINITY;
    write(dir.path(), &broken).unwrap_err();
    assert_eq!(read(dir.path()).unwrap(), old);
    broken.values[7] = 0.5;
    write(dir.path(), &broken).unwrap();
    assert_eq!(read(dir.path()).unwrap(), broken);
    assert!(!dir.path().join("cmvn.json").exists());
    assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine");
    let names = fs::read_dir(dir.path().parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let name = dir.path().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(names.filter(|other| other.to_string_lossy().starts_with(&name)).count(), 1);
}

#[test]
fn files_of_another_model_are_refused_though_they_fit() {
    let [ours, other] = [[" ", "a", "b", "c"], [" ", "c", "b", "a"]]
        .map(|symbols| written(&tiny::parts(Cmvn::Online, Units::Chars, &symbols)));
    fs::copy(other.path().join("labels.txt"), ours.path().join("labels.txt")).unwrap();
    assert_eq!(told(ours.path()), "`labels.txt` is not the file that `weights.safetensors` was written with");
    let ours = written(&tiny::letters(Cmvn::Online));
    fs::copy(written(&with_statistics()).path().join("cmvn.json"), ours.path().join("cmvn.json")).unwrap();
    assert_eq!(told(ours.path()), "`cmvn.json` is not the file that `weights.safetensors` was written with");
}

#[test]
fn a_missing_file_is_named_and_a_missing_card_is_none() {
    for name in ["config.toml", "labels.txt", "weights.safetensors"] {
        let dir = written(&with_statistics());
        fs::remove_file(dir.path().join(name)).unwrap();
        let message = told(dir.path());
        assert!(message.contains(name) && message.contains("No such file"), "{message}");
    }
    let dir = written(&with_statistics());
    fs::remove_file(dir.path().join("cmvn.json")).unwrap();
    assert_eq!(told(dir.path()), "`DIR`: features are normalised by global statistics, but there are none (cmvn.json)");
    let dir = written(&with_statistics());
    fs::remove_file(dir.path().join("card.md")).unwrap();
    assert_eq!(read(dir.path()).unwrap().card, "");
    assert!(told(Path::new("/no/such/model")).contains("is not a directory, expected a model directory"));
}

/// The files of a directory, by their names.
fn files_of(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn files_in_memory_make_the_recogniser_of_their_directory() {
    let dir = written(&with_statistics());
    let files = files_of(dir.path());
    let samples: Vec<f32> = (0..16_000).map(|i| (i as f32 * 0.05).sin() * 0.3).collect();
    let text = |recognizer: &Recognizer| recognizer.transcribe_samples(&samples, 16_000).unwrap().segments;
    let from_files = Recognizer::from_files(&files).unwrap();
    assert_eq!(text(&from_files).len(), text(&Recognizer::open(dir.path()).unwrap()).len());
    let log_probs = |recognizer: &Recognizer| {
        let (mut listener, mut log_probs) = (recognizer.listener(None).unwrap(), Vec::new());
        listener.accept(&samples, 16_000, &mut log_probs).unwrap();
        log_probs
    };
    assert_eq!(log_probs(&from_files), log_probs(&Recognizer::open(dir.path()).unwrap()));

    let without = |name: &str| {
        let mut files = files.clone();
        files.remove(name);
        Recognizer::from_files(&files).err().expect("a file is missing").to_string()
    };
    for name in ["config.toml", "labels.txt", "weights.safetensors"] {
        assert_eq!(without(name), format!("could not read `{name}`"));
    }
    assert!(without("cmvn.json").starts_with("`the model`: features are normalised by global statistics"));
    let mut mixed = files.clone();
    mixed.insert("cmvn.json".into(), r#"{"n_frames": 2, "sums": [1, 2], "squares": [1, 4]}"#.into());
    assert!(Recognizer::from_files(&mixed).is_err());
}

#[test]
fn parts_that_do_not_fit_are_told() {
    let dir = written(&with_statistics());
    fs::write(dir.path().join("labels.txt"), "# units: chars\n<pad>\na\nb\n<blank>\n").unwrap();
    assert_eq!(told(dir.path()), "`DIR`: the labels make 4 classes, but the model has 9");

    let dir = written(&with_statistics());
    fs::write(dir.path().join("cmvn.json"), r#"{"n_frames": 2, "sums": [1, 2], "squares": [1, 4]}"#).unwrap();
    assert_eq!(told(dir.path()), "`DIR`: the statistics are of 2 values per frame, but a frame has 18");

    let dir = written(&with_statistics());
    let config = fs::read_to_string(dir.path().join("config.toml")).unwrap();
    fs::write(dir.path().join("config.toml"), config.replace("iterations = 1", "iterations = 2")).unwrap();
    assert_eq!(told(dir.path()), "`weights.safetensors` holds another model than `config.toml` describes");

    let mut parts = with_statistics();
    parts.values.pop();
    let message = write(dir.path(), &parts).unwrap_err().to_string();
    assert!(message.starts_with("found ") && message.contains(" weights, but the model has "), "{message}");
}

#[test]
fn hostile_files_are_told_in_one_line() {
    let config = |text: &str| ("config.toml", text.to_owned().into_bytes());
    let good = fs::read(written(&with_statistics()).path().join("config.toml")).unwrap();
    let good = String::from_utf8(good).unwrap();
    let header_of_gigabytes = [&(5_u64 << 30).to_le_bytes()[..], b"{}"].concat();
    let cases = [
        ("weights.safetensors", header_of_gigabytes, "states a header of 5368709120 bytes"),
        ("weights.safetensors", b"PK\x03\x04 not a model".to_vec(), "states a header of"),
        ("weights.safetensors", Vec::new(), "weights.safetensors"),
        (config("").0, config(&format!("colour = 3\n{good}")).1, "config.toml:1: unknown key `colour`"),
        (config("").0, config(&good.replace("mel_bins = 5", "mel_bins = 50000")).1, "mel_bins"),
        (config("").0, vec![0xff, 0xfe, 0], "config.toml"),
        ("labels.txt", b"# units: songs\n".to_vec(), "expected `# units: phones`"),
        ("labels.txt", vec![0; 100], "labels.txt"),
        ("cmvn.json", b"{\"n_frames\": 1, \"sums\": [], \"squares\": [1]}".to_vec(), "found 0 sums and 1 squares"),
        ("cmvn.json", b"{\"n_frames\": 1, \"sums\": [], \"squares\": [], \"x\": 1}".to_vec(), "unknown field `x`"),
        ("cmvn.json", b"{\"n_frames\": -1, \"sums\": [1], \"squares\": [1]}".to_vec(), "expected at least one frame"),
        ("cmvn.json", vec![b' '; (4 << 20) + 1], "is larger than 4194304 bytes"),
        ("card.md", vec![b' '; (1 << 20) + 1], "is larger than 1048576 bytes"),
    ];
    for (name, bytes, expected) in cases {
        let dir = written(&with_statistics());
        fs::write(dir.path().join(name), bytes).unwrap();
        let message = told(dir.path());
        assert!(message.contains(expected), "`{message}` lacks `{expected}`");
    }
}

#[test]
fn weights_that_are_no_numbers_or_too_few_are_told() {
    let mut parts = with_statistics();
    parts.values[7] = f32::NAN;
    let message = write(tempfile::tempdir().unwrap().path(), &parts).unwrap_err().to_string();
    assert!(message.contains("NaN at index 7 of the tensor `conv1.a.kernel`, expected a finite number"), "{message}");
    let dir = written(&with_statistics());
    let path = dir.path().join("weights.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    assert!(told(dir.path()).contains("bytes, expected"));
}

/// Changes `bytes` in one of a few ways that disks, networks and people have.
fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    let at = |random: &mut fastrand::Rng, n: usize| random.usize(..n.max(1));
    match random.u8(..5) {
        0 => bytes.truncate(at(random, bytes.len())),
        1 => {
            let index = at(random, bytes.len());
            bytes.insert(index, random.u8(..));
        }
        2 => drop(bytes.splice(..0, std::iter::repeat_n(b'9', random.usize(..20)))),
        _ => {
            for _ in 0..random.usize(1..8) {
                // Mostly in the head, where sizes and names are.
                let end = if random.bool() { bytes.len().min(200) } else { bytes.len() };
                let index = at(random, end);
                if let Some(byte) = bytes.get_mut(index) {
                    *byte = if random.bool() { random.u8(..) } else { random.u8(b'0'..=b'9') };
                }
            }
        }
    }
}

#[test]
fn a_directory_changed_at_random_is_read_or_refused_but_never_panics() {
    let dir = written(&with_statistics());
    let names = ["config.toml", "labels.txt", "weights.safetensors", "cmvn.json", "card.md"];
    let files: Vec<Vec<u8>> = names.iter().map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    let mut random = fastrand::Rng::with_seed(11);
    let [mut n_read, mut n_refused] = [0; 2];
    for _ in 0..600 {
        let index = random.usize(..names.len());
        let path = dir.path().join(names[index]);
        let mut bytes = files[index].clone();
        mutate(&mut bytes, &mut random);
        fs::write(&path, bytes).unwrap();
        match Recognizer::open(dir.path()) {
            Ok(recognizer) => {
                n_read += 1;
                let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
                stream.accept(&tiny::sound(1, 8000), 16_000).unwrap();
                stream.finish();
            }
            Err(error) => {
                n_refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
        fs::write(&path, &files[index]).unwrap();
    }
    assert!(50 < n_read && 50 < n_refused, "{n_read} read, {n_refused} refused");
}
