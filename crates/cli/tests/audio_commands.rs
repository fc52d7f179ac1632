//! `srf convert` and `srf features`, as typed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../audio/tests/encode/mod.rs"]
mod encode;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use srf_audio::ark::{Matrix, load_scp};
use srf_audio::features::{FeaturesConfig, extract};
use srf_audio::{Recording, Samples, Selection, sphere, wav};

/// Runs `srf` in `dir`.
fn srf(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).current_dir(dir).output().expect("srf can be started")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(path: PathBuf) -> Samples {
    Recording::open(path).and_then(|recording| recording.read(Selection::default())).expect("it is a recording")
}

/// A tone with a little noise, different for each `seed`.
fn tone(seed: usize, n_samples: usize) -> Samples {
    let value = |i: usize| {
        let angle = 2.0 * std::f64::consts::PI * (150.0 + 37.0 * seed as f64) * i as f64 / 16_000.0;
        (3000.0 * angle.sin() + ((i * 7919 + seed * 31) % 101) as f64).round() as f32 / 32768.0
    };
    Samples { rate_hz: 16_000, values: (0..n_samples).map(value).collect() }
}

#[test]
fn sphere_becomes_wav_whole_and_in_part() {
    let dir = tempfile::tempdir().unwrap();
    // TIMIT calls its SPHERE files WAV; only the content counts.
    sphere::save(dir.path().join("SA1.WAV"), &tone(0, 16_000), &[]).unwrap();
    let output = srf(dir.path(), &["convert", "SA1.WAV", "out.wav"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), "out.wav: 1.00 s at 16000 Hz\n"));
    assert_eq!(read(dir.path().join("out.wav")), tone(0, 16_000));
    srf(dir.path(), &["convert", "SA1.WAV", "part.wav", "--start", "0.25", "--end", "0.5", "--rate", "8000"]);
    let part = read(dir.path().join("part.wav"));
    assert_eq!((part.rate_hz, part.values.len()), (8000, 2000));
}

/// A 16-bit WAV of two channels, one rising and one falling.
fn stereo() -> Vec<u8> {
    let samples: Vec<u8> = (0..800i16).flat_map(|i| [i, -i]).flat_map(i16::to_le_bytes).collect();
    let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0".to_vec();
    bytes.extend([16_000u32, 64_000].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(*b"\x04\0\x10\0data");
    bytes.extend((samples.len() as u32).to_le_bytes());
    bytes.extend(samples);
    bytes
}

#[test]
fn every_channel_is_kept_unless_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("two.wav"), stereo()).unwrap();
    assert_eq!(srf(dir.path(), &["convert", "two.wav", "all.wav"]).status.code(), Some(0));
    assert_eq!(std::fs::read(dir.path().join("all.wav")).unwrap()[40..], stereo()[40..]);
    srf(dir.path(), &["convert", "two.wav", "second.wav", "--channel", "1"]);
    assert_eq!(read(dir.path().join("second.wav")).values, (0..800).map(|i| -i as f32 / 32768.0).collect::<Vec<_>>());
    srf(dir.path(), &["convert", "two.wav", "mean.wav", "--channel", "mix"]);
    assert!(read(dir.path().join("mean.wav")).values.iter().all(|&value| value == 0.0));
}

#[test]
fn shortened_sphere_files_come_out_sample_for_sample() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<i64> = (0..4000).map(|i| (i * 37 % 2001 - 1000) * i64::from(i % 500 > 100)).collect();
    for version in [1, 2] {
        let how = encode::Shorten { version, kind: 5, n_channels: 1, block_samples: 256, n_means: 4, shift: 0 };
        let fields = [
            ("sample_count", values.len().to_string()),
            ("channel_count", "1".to_owned()),
            ("sample_rate", "16000".to_owned()),
            ("sample_n_bytes", "2".to_owned()),
            ("sample_byte_format", "01".to_owned()),
            ("sample_sig_bits", "16".to_owned()),
            ("sample_coding", format!("pcm,embedded-shorten-v{version}.00")),
        ];
        std::fs::write(dir.path().join("in.sph"), encode::sphere(&fields, &how.encode(&values))).unwrap();
        let output = srf(dir.path(), &["convert", "in.sph", "out.wav"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let expected: Vec<u8> = values.iter().flat_map(|&value| (value as i16).to_le_bytes()).collect();
        assert_eq!(std::fs::read(dir.path().join("out.wav")).unwrap()[44..], expected);
    }
}

#[test]
fn a_directory_is_converted_as_a_whole_and_problems_do_not_stop_it() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in/deep");
    std::fs::create_dir_all(&input).unwrap();
    sphere::save(input.join("a.sph"), &tone(1, 4000), &[]).unwrap();
    wav::save(input.join("b.wav"), &tone(2, 4000)).unwrap();
    std::fs::write(input.join("notes.txt"), "not a recording").unwrap();
    let cut = std::fs::read(input.join("b.wav")).unwrap()[..1000].to_vec();
    std::fs::write(input.join("cut.wav"), cut).unwrap();
    let output = srf(dir.path(), &["convert", "in", "out/"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "problem: `in/deep/cut.wav` ends after 478 samples, but its header claims 4000; what is there was converted\n3 recordings, 0.53 s, in out/\n"
    );
    assert_eq!(read(dir.path().join("out/deep/a.wav")), tone(1, 4000));
    assert_eq!(read(dir.path().join("out/deep/b.wav")), tone(2, 4000));
}

#[test]
fn what_cannot_be_converted_is_told_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.mp4"), b"\0\0\0\x18ftypmp42").unwrap();
    let output = srf(dir.path(), &["convert", "x.mp4", "x.wav"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: `x.mp4`: MP4 header cannot be parsed: unsupported feature: isomp4: missing ftyp atom\n\n\
                    hint: for other codecs, such as Opus, install `ffmpeg`, or pipe: \
                    `ffmpeg -i x.mp4 -f wav - | srf transcribe -`\n";
    assert_eq!(stderr(&output), expected);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Four utterances of two speakers, a manifest with problems in it, and a wav.scp with utt2spk.
fn corpus(dir: &Path) {
    let (mut manifest, mut scp, mut utt2spk) = (String::new(), String::new(), String::new());
    for index in 0..4 {
        let path = dir.join(format!("u{index}.wav"));
        wav::save(&path, &tone(index, 8000 + 1000 * index)).unwrap();
        let speaker = ["f1", "m2"][index / 2];
        let name = format!("\"audio_filepath\": \"u{index}.wav\"");
        writeln!(manifest, "{{{name}, \"duration\": 1, \"text\": \"x\", \"speaker\": \"{speaker}\"}}").unwrap();
        writeln!(scp, "u{index} {}", path.display()).unwrap();
        writeln!(utt2spk, "u{index} {speaker}").unwrap();
    }
    std::fs::write(dir.join("good.jsonl"), &manifest).unwrap();
    manifest += "{\"audio_filepath\": \"u0.wav\", \"durat\n\n{\"audio_filepath\": \"gone.wav\"}\n{\"audio_filepath\": \"u0.wav\"}\n";
    manifest += "{\"audio_filepath\": \"u3.wav\", \"offset\": 0.1, \"duration\": 0.01, \"id\": \"short\"}\n";
    std::fs::write(dir.join("bad.jsonl"), manifest).unwrap();
    std::fs::write(dir.join("wav.scp"), scp).unwrap();
    std::fs::write(dir.join("utt2spk"), utt2spk).unwrap();
}

fn entries(dir: &Path, scp: &str) -> Vec<(String, Matrix)> {
    let read = |entry: &srf_audio::ark::ScpEntry| {
        let mut entry = entry.clone();
        entry.path = dir.join(entry.path);
        (entry.key.clone(), entry.read().unwrap())
    };
    load_scp(dir.join(scp)).unwrap().iter().map(read).collect()
}

#[test]
fn raw_features_are_those_of_the_library() {
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path());
    let raw = ["--no-cmvn", "--dither", "0", "--static"];
    let output = srf(dir.path(), &[["features", "u0.wav", "u3.wav", "--out", "f.ark"].as_slice(), &raw].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let config = FeaturesConfig { dither: 0.0, delta_order: 0, ..FeaturesConfig::default() };
    let expected = |index: usize| {
        let frames = extract(&config, &tone(index, 8000 + 1000 * index).values).unwrap();
        (format!("u{index}"), Matrix { n_cols: 41, values: frames.values })
    };
    assert_eq!(entries(dir.path(), "f.scp"), [expected(0), expected(3)]);
}

#[test]
fn manifest_and_scp_text_and_binary_give_the_same_features_on_one_core_and_two() {
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path());
    for (input, out, format) in
        [("good.jsonl", "a.ark", "ark"), ("wav.scp", "b.ark", "ark"), ("good.jsonl", "c.ark", "text")]
    {
        let output = srf(dir.path(), &["features", input, "--out", out, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let one_core = Command::new(env!("CARGO_BIN_EXE_srf"))
        .args(["features", "good.jsonl", "--out", "d.ark"])
        .env("RAYON_NUM_THREADS", "1")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(one_core.status.code(), Some(0));
    let bytes = |name| std::fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("a.ark") == bytes("b.ark"));
    assert!(bytes("a.ark") == bytes("d.ark"));
    let text = entries(dir.path(), "c.scp");
    assert_eq!(text.len(), 4);
    assert!(text == entries(dir.path(), "a.scp"));
}

#[test]
fn features_of_a_speaker_have_mean_zero_and_variance_one_together() {
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path());
    srf(dir.path(), &["features", "good.jsonl", "--out", "f.safetensors"]);
    let bytes = std::fs::read(dir.path().join("f.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.names().len(), 4);
    for speaker in [["u0", "u1"], ["u2", "u3"]] {
        let mut frames: Vec<f64> = Vec::new();
        for id in speaker {
            let tensor = tensors.tensor(id).unwrap();
            assert_eq!(tensor.shape()[1], 123);
            frames.extend(tensor.data().as_chunks::<4>().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))));
        }
        for dim in 0..123 {
            let values: Vec<f64> = frames.iter().skip(dim).step_by(123).copied().collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let variance = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
            // Each value is rounded once, by at most 2^-24 of a size of a few.
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-6, "{dim}: {mean} {variance}");
        }
    }
}

#[test]
fn every_problem_is_told_and_the_rest_is_written() {
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path());
    let output = srf(dir.path(), &["features", "bad.jsonl", "--out", "f.ark"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let problems: Vec<&str> = text.lines().filter(|line| line.starts_with("problem: ")).collect();
    let expected = [
        "problem: bad.jsonl:5: not a manifest entry: EOF while parsing a string at column 35",
        "problem: `u0.wav`: there is already an utterance `u0`",
        "problem: could not read `gone.wav`: No such file or directory (os error 2)",
        "problem: `u3.wav`: utterance `short` is 10.0 ms long, a frame is 25 ms",
    ];
    assert_eq!(problems, expected);
    assert_eq!(entries(dir.path(), "f.scp").len(), 4);
}

#[test]
fn a_command_that_cannot_start_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path());
    for (args, message) in [
        (
            ["features", "u0.wav", "--out", "f.npy"].as_slice(),
            "error: `f.npy` ends in neither `.ark` nor `.safetensors`; say `--format`\n",
        ),
        (
            &["features", "u0.wav", "--out", "f.ark", "--mels", "0"],
            "error: `features.mel_bins` is 0, expected 1 to 1024\n",
        ),
        (
            &["features", "u0.wav", "--out", "no/such/f.ark"],
            "error: could not write `no/such/f.ark`: No such file or directory (os error 2)\n",
        ),
        (&["features", "good.jsonl", "--out", "f.ark", "--config", "wav.scp"], ""),
    ] {
        let output = srf(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).starts_with(message), "{}", stderr(&output));
    }
}
