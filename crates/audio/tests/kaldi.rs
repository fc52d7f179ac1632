//! Features of recordings equal Kaldi's, and SPHERE files of a recording equal its WAV.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod encode;

use std::path::PathBuf;

use encode::{Shorten, sphere};
use srf_audio::features::{FeaturesConfig, extract};
use srf_audio::{Channel, I16_SCALE, Recording, Samples, Selection};

/// The golden file holds the features of this many samples.
const N_SAMPLES: usize = 10_000;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn samples(name: &str) -> Samples {
    Recording::open(data(&format!("{name}.wav"))).unwrap().read(Selection::default()).unwrap()
}

#[test]
fn features_are_within_a_thousandth_of_kaldis() {
    let bytes = std::fs::read(data("kaldi_features.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.names().len(), 4);
    for (name, tensor) in tensors.tensors() {
        let (recording, kind) = name.split_once('.').unwrap();
        let delta_order = if kind == "deltas" { 2 } else { 0 };
        let config = FeaturesConfig { dither: 0.0, delta_order, ..FeaturesConfig::default() };
        let frames = extract(&config, &samples(recording).values[..N_SAMPLES]).unwrap();
        assert_eq!([frames.n_frames(), frames.n_dims], tensor.shape());
        let expected = tensor.data().as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b));
        let worst = frames.values.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-3, "{name}: {worst}");
    }
}

/// A SPHERE file of `values`, interleaved, whose samples are `body`.
fn file(coding: &str, n_channels: usize, values: &[i64], body: &[u8]) -> Recording {
    let fields = [
        ("channel_count", n_channels.to_string()),
        ("sample_count", (values.len() / n_channels).to_string()),
        ("sample_rate", "16000".to_owned()),
        ("sample_n_bytes", if coding.starts_with("pcm") { "2" } else { "1" }.to_owned()),
        ("sample_byte_format", if coding.starts_with("pcm") { "01" } else { "1" }.to_owned()),
        ("sample_coding", coding.to_owned()),
        ("sample_checksum", values.iter().sum::<i64>().rem_euclid(65536).to_string()),
    ];
    Recording::from_bytes(coding, sphere(&fields, body)).unwrap()
}

#[test]
fn sphere_files_decode_to_exactly_the_recordings_they_were_made_of() {
    let [first, second] = ["woman-1", "man-1"].map(samples);
    let pairs = || first.to_i16().into_iter().zip(second.to_i16());
    let values: Vec<i64> = pairs().flat_map(|(a, b)| [i64::from(a), i64::from(b)]).collect();
    let how = Shorten { version: 2, kind: 5, n_channels: 2, block_samples: 256, n_means: 4, shift: 0 };
    let shorten = file("pcm,embedded-shorten-v2.00", 2, &values, &how.encode(&values));
    let bytes: Vec<u8> = values.iter().flat_map(|&value| (value as i16).to_le_bytes()).collect();
    let linear = file("pcm", 2, &values, &bytes);
    let n_samples = values.len() / 2;
    for recording in [shorten, linear] {
        for (channel, expected) in [&first, &second].into_iter().enumerate() {
            let selection = Selection { channel: Channel::Only(channel), ..Selection::default() };
            assert_eq!(recording.read(selection).unwrap().values, expected.values[..n_samples]);
            let part = Selection { start_s: 0.5, end_s: Some(1.25), ..selection };
            assert_eq!(recording.read(part).unwrap().values, expected.values[8000..20_000]);
        }
    }
}

#[test]
fn every_alaw_and_ulaw_byte_decodes_as_in_a_wav() {
    let bytes: Vec<u8> = (0..=255).collect();
    let values: Vec<i64> = bytes.iter().map(|&byte| i64::from(byte)).collect();
    for (coding, tag) in [("alaw", 6u8), ("ulaw", 7)] {
        let head = b"RIFF\x24\x01\0\0WAVEfmt \x10\0\0\0\0\0\x01\0\x80\x3e\0\0\x80\x3e\0\0\x01\0\x08\0data\0\x01\0\0";
        let mut wav = [head.as_slice(), &bytes].concat();
        wav[20] = tag;
        let wav = Recording::from_bytes("x.wav", wav).unwrap().read(Selection::default()).unwrap();
        assert_eq!(file(coding, 1, &values, &bytes).read(Selection::default()).unwrap(), wav);
        assert!(wav.values.iter().all(|value| (value * I16_SCALE).fract() == 0.0));
    }
}
