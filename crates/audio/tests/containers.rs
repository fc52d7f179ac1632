//! Every container against the tone it was made of; the files in `data` hold the same 2.5 s as [`tone`].

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use srf_audio::{Channel, Container, Encoding, I16_SCALE, ReadAudioError, Recording, Samples, Selection, wav};

const RATE_HZ: u32 = 8000;
const N_SAMPLES: usize = 20_000;

/// A rising and a steady sine, rounded to integers.
fn tone() -> Vec<f32> {
    (0..N_SAMPLES)
        .map(|i| {
            let t = i as f64 / f64::from(RATE_HZ);
            let turn = 2.0 * std::f64::consts::PI;
            let value = 6000.0 * (turn * (200.0 * t + 60.0 * t * t)).sin() + 2500.0 * (turn * 1130.0 * t).sin();
            value.round() as f32 / I16_SCALE
        })
        .collect()
}

fn data(name: &str) -> Recording {
    Recording::open(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name))
        .expect("the file is in the repository")
}

fn signal_to_noise_db(signal: &[f32], found: &[f32]) -> f64 {
    let power = |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    let noise = power(&mut signal.iter().zip(found).map(|(a, b)| a - b));
    10.0 * (power(&mut signal.iter().copied()) / noise).log10()
}

#[test]
fn flac_gives_its_samples_to_the_bit_and_its_channels_apart() {
    let recording = data("tone.flac");
    let info = recording.info();
    assert_eq!((info.container, info.encoding), (Container::Flac, Encoding::Pcm { n_bits: 16 }));
    assert_eq!((info.rate_hz, info.n_channels, info.n_samples), (RATE_HZ, 2, Some(N_SAMPLES as u64)));
    let read = |channel| recording.read(Selection { channel, ..Selection::default() }).unwrap().values;
    let right: Vec<f32> = tone().iter().map(|v| (v * I16_SCALE / 2.0).floor() / I16_SCALE).collect();
    assert_eq!(read(Channel::Only(0)), tone());
    assert_eq!(read(Channel::Only(1)), right);
    let mixed: Vec<f32> = tone().iter().zip(&right).map(|(a, b)| (a + b) / 2.0).collect();
    assert_eq!(read(Channel::Mix), mixed);
}

#[test]
fn speech_has_the_same_samples_in_flac_and_wav() {
    let read = |name| data(name).read(Selection::default()).unwrap();
    assert_eq!(read("woman-1.flac"), read("woman-1.wav"));
}

#[test]
fn aiff_gives_its_samples_to_the_bit() {
    let samples = data("tone.aiff").read(Selection::default()).unwrap();
    assert_eq!(samples, Samples { rate_hz: RATE_HZ, values: tone()[..4000].to_vec() });
}

#[test]
fn lossy_codecs_give_as_many_samples_as_went_in_and_nearly_the_same() {
    for (name, min_db) in [("tone.mp3", 20.0), ("tone.ogg", 15.0)] {
        let recording = data(name);
        assert_eq!(recording.info().n_samples, Some(N_SAMPLES as u64), "{name}");
        let samples = recording.read(Selection::default()).unwrap();
        assert_eq!(samples.values.len(), N_SAMPLES, "{name}");
        let ratio_db = signal_to_noise_db(&tone(), &samples.values);
        assert!(ratio_db > min_db, "{name}: {ratio_db:.1} dB");
    }
}

/// The channels of `tone.flac` mixed as ffmpeg mixed them for the files below: each times the square root of a half.
fn mixed_tone() -> Vec<f32> {
    let mean = data("tone.flac").read(Selection::default()).unwrap().values;
    mean.into_iter().map(|value| value * std::f32::consts::SQRT_2).collect()
}

#[test]
fn mp4_and_matroska_give_nearly_what_went_in() {
    for (name, container, min_db) in [("tone.m4a", Container::Mp4, 15.0), ("tone.mkv", Container::Mkv, 15.0)] {
        let recording = data(name);
        assert_eq!(recording.info().container, container);
        let found = recording.read(Selection::default()).unwrap().values;
        // Encoders put some silence first, up to two frames of AAC.
        let ratio_db = |delay: usize| signal_to_noise_db(&mixed_tone()[..15_000], &found[delay..][..15_000]);
        let best_db = (0..2200).map(ratio_db).fold(f64::NEG_INFINITY, f64::max);
        assert!(best_db > min_db, "{name}: {best_db:.1} dB");
    }
}

#[test]
fn a_codec_that_is_not_ours_is_told_with_the_way_around() {
    let bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.webm")).unwrap();
    let error = Recording::from_bytes("a tone.webm", bytes).unwrap_err();
    assert!(error.to_string().starts_with("`a tone.webm`: Matroska header"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.ends_with("pipe: `ffmpeg -i 'a tone.webm' -f wav - | srf transcribe -`"), "{hint}");
}

#[test]
fn a_part_is_the_same_samples_as_in_the_whole() {
    for name in ["tone.flac", "tone.mp3", "tone.ogg", "tone.aiff", "tone.m4a", "tone.mkv"] {
        let recording = data(name);
        let whole = recording.read(Selection::default()).unwrap().values;
        for (start, end) in [(0, 1), (0, 3999), (1234, 2345), (3999, 4000), (9000, 9001), (16_001, 19_999)] {
            if end > whole.len() {
                continue;
            }
            let rate_hz = f64::from(RATE_HZ);
            let (start_s, end_s) = (start as f64 / rate_hz, Some(end as f64 / rate_hz));
            let part = recording.read(Selection { start_s, end_s, ..Selection::default() }).unwrap();
            assert!(part.values == whole[start..end], "{name} {start}..{end}");
        }
    }
}

#[test]
fn a_file_cut_short_is_told_with_both_counts() {
    let bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.flac")).unwrap();
    let recording = Recording::from_bytes("cut.flac", &bytes[..20_000]).unwrap();
    let error = recording.read(Selection::default()).unwrap_err();
    assert!(matches!(error, ReadAudioError::Truncated { expected: 20_000, .. }), "{error}");
}

#[test]
fn a_damaged_flac_is_told() {
    let mut bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.flac")).unwrap();
    bytes[15_000] ^= 0x10;
    let recording = Recording::from_bytes("flipped.flac", bytes).unwrap();
    assert!(recording.read(Selection::default()).is_err());
}

#[test]
fn the_type_is_decided_by_content_even_behind_a_tag() {
    let bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.mp3")).unwrap();
    let tag = [b"ID3\x04\0\0\0\0\x02\x0a".as_slice(), &[0; 266]].concat();
    let tagged = Recording::from_bytes("tagged.wav", [tag, bytes].concat()).unwrap();
    assert_eq!(tagged.info().container, Container::Mp3);
    let plain = data("tone.mp3").read(Selection::default()).unwrap();
    assert!(tagged.read(Selection::default()).unwrap() == plain);
}

/// A WAV of the given format tag and bytes a sample, one channel.
fn wav_bytes(tag: u16, n_bytes: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(b"RIFF");
    bytes.extend((36 + body.len() as u32).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0");
    bytes.extend([tag.to_le_bytes(), 1u16.to_le_bytes()].concat());
    bytes.extend([RATE_HZ.to_le_bytes(), (RATE_HZ * u32::from(n_bytes)).to_le_bytes()].concat());
    bytes.extend([n_bytes.to_le_bytes(), (8 * n_bytes).to_le_bytes()].concat());
    bytes.extend(b"data");
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Vec<f32>, String> {
    let read = |recording: Recording| recording.read(Selection::default());
    Recording::from_bytes("x.wav", bytes).and_then(read).map(|samples| samples.values).map_err(|e| e.to_string())
}

#[test]
fn wav_of_every_depth_comes_out_on_the_16_bit_scale() {
    assert_eq!(read(wav_bytes(1, 1, &[0, 128, 255])), Ok(vec![-1.0, 0.0, 32512.0 / I16_SCALE]));
    assert_eq!(read(wav_bytes(1, 2, &[0, 0x80, 0xff, 0x7f])), Ok(vec![-1.0, 32767.0 / I16_SCALE]));
    assert_eq!(read(wav_bytes(1, 3, &[0x80, 1, 0, 0, 0, 0x80])), Ok(vec![1.5 / I16_SCALE, -1.0]));
    assert_eq!(read(wav_bytes(1, 4, &[0, 0x80, 1, 0, 0, 0, 0, 0x80])), Ok(vec![1.5 / I16_SCALE, -1.0]));
    let floats = [1.0f32, -0.25, 1.5].map(f32::to_le_bytes).concat();
    assert_eq!(read(wav_bytes(3, 4, &floats)), Ok(vec![1.0, -0.25, 1.5]));
    let doubles = [1.0f64, -0.25].map(f64::to_le_bytes).concat();
    assert_eq!(read(wav_bytes(3, 8, &doubles)), Ok(vec![1.0, -0.25]));
    assert_eq!(read(wav_bytes(6, 1, &[0x55, 0xd5, 0x2a])), Ok([-8.0, 8.0, -32256.0].map(|v| v / I16_SCALE).to_vec()));
    assert_eq!(read(wav_bytes(7, 1, &[0xff, 0x80, 0])), Ok([0.0, 32124.0, -32124.0].map(|v| v / I16_SCALE).to_vec()));
}

#[test]
fn wav_from_a_pipe_has_the_length_of_the_file() {
    for (riff_size, data_size) in [(u32::MAX, u32::MAX), (0x7fff_f024, 0x7fff_f000), (0, 0)] {
        let mut bytes = wav_bytes(1, 2, &[1, 0, 2, 0]);
        bytes[4..8].copy_from_slice(&riff_size.to_le_bytes());
        bytes[40..44].copy_from_slice(&data_size.to_le_bytes());
        assert_eq!(read(bytes), Ok([1.0, 2.0].map(|v| v / I16_SCALE).to_vec()));
    }
}

#[test]
fn the_extensible_form_and_unknown_chunks_are_understood() {
    let mut bytes = wav_bytes(0xfffe, 2, &[1, 0, 2, 0]);
    bytes[16] = 40;
    let more = [22, 0, 16, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];
    bytes.splice(36..36, more.into_iter().chain(*b"LIST\x03\0\0\0abc\0"));
    assert_eq!(read(bytes), Ok([1.0, 2.0].map(|v| v / I16_SCALE).to_vec()));
}

#[test]
fn each_broken_wav_is_told_in_one_line() {
    let good = wav_bytes(1, 2, &[1, 0, 2, 0]);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    let nan = [0.5f32, f32::NAN].map(f32::to_le_bytes).concat();
    let cases = [
        (Vec::new(), "`x.wav` is empty, expected a recording"),
        (
            b"hello world".to_vec(),
            "`x.wav` begins with `hello wo`, expected WAV, SPHERE, FLAC, MP3, Ogg, AIFF, MP4 or Matroska",
        ),
        (good[..30].to_vec(), "`x.wav`: WAV header breaks off at byte 30"),
        (good[..46].to_vec(), "`x.wav` ends after 1 samples, but its header claims 2"),
        (with(40, &[0xff, 0xff, 0xf0, 0x40]), "`x.wav` ends after 2 samples, but its header claims 544768"),
        (with(40, &[0; 4]), "`x.wav` has no samples"),
        (with(22, &[0]), "`x.wav`: WAV header has `channels` of `0`, expected 1 to 64"),
        (with(24, &[1, 0, 0, 0]), "`x.wav`: WAV header has `sample rate` of `1`, expected 1000 to 768000 Hz"),
        (
            with(20, &[2]),
            "`x.wav`: WAV with samples stored as `format 2, 16 bits, 2 bytes for 1 channels` is not supported",
        ),
        (with(12, b"junk"), "`x.wav`: WAV header has no `fmt `"),
        (wav_bytes(3, 4, &nan), "`x.wav`: the sample at 0.000 s is not a finite number"),
    ];
    for (bytes, expected) in cases {
        let message = read(bytes).unwrap_err();
        // The absurd size is checked for its form only.
        if expected.contains("544768") {
            assert!(message.starts_with("`x.wav` ends after 2 samples, but its header claims 5"), "{message}");
        } else {
            assert_eq!(message, expected);
        }
    }
}

#[test]
fn parts_outside_the_recording_are_told() {
    let recording = data("tone.flac");
    let message =
        |start_s, end_s| recording.read(Selection { start_s, end_s, ..Selection::default() }).unwrap_err().to_string();
    assert!(message(0.0, Some(3.1)).ends_with("is 2.500 s long, the part asked for ends at 3.100 s"));
    assert!(message(9.0, None).ends_with("is 2.500 s long, the part asked for ends at 9.000 s"));
    assert!(message(2.0, Some(1.0)).ends_with("the part from 2 s to 1 s is not a valid range"));
    assert!(message(f64::NAN, None).ends_with("is not a valid range"));
    let channel = Channel::Only(2);
    let error = recording.read(Selection { channel, ..Selection::default() }).unwrap_err();
    assert!(error.to_string().ends_with("has no channel 2, it has 2 (counted from 0)"));
    // Times rounded up a little are forgiven.
    let selection = Selection { start_s: 2.0, end_s: Some(2.6), ..Selection::default() };
    assert_eq!(recording.read(selection).unwrap().values.len(), 4000);
}

#[test]
fn a_written_wav_is_read_back_to_the_bit() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let samples = Samples { rate_hz: RATE_HZ, values: tone() };
    wav::save(file.path(), &samples).unwrap();
    assert_eq!(Recording::open(file.path()).unwrap().read(Selection::default()).unwrap(), samples);
    let loud = Samples { rate_hz: RATE_HZ, values: [40_000.0, -40_000.0, 0.4, -0.6].map(|v| v / I16_SCALE).to_vec() };
    assert_eq!(loud.to_i16(), [32767, -32768, 0, -1]);
}
