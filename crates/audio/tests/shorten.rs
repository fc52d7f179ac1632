//! Shorten streams of both versions, made by an encoder of our own, come out as what went in.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod encode;

use encode::{Shorten, sphere};
use proptest::prelude::*;
use srf_audio::{Channel, I16_SCALE, Recording, Selection};

/// A SPHERE file around a shorten stream of 16-bit samples (kind 5) or of u-law or A-law bytes.
fn file(how: &Shorten, coding: &str, stored: &[i64], checksum: i64) -> Vec<u8> {
    let n_samples = stored.len() / how.n_channels;
    let is_linear = coding == "pcm";
    let fields = [
        ("channel_count", how.n_channels.to_string()),
        ("sample_count", n_samples.to_string()),
        ("sample_rate", "16000".to_owned()),
        ("sample_n_bytes", if is_linear { "2" } else { "1" }.to_owned()),
        ("sample_byte_format", if is_linear { "01" } else { "1" }.to_owned()),
        ("sample_coding", format!("{coding},embedded-shorten-v{}.00", how.version)),
        ("sample_checksum", checksum.rem_euclid(65536).to_string()),
    ];
    sphere(&fields, &how.encode(stored))
}

fn read(bytes: Vec<u8>, channel: usize) -> Vec<f32> {
    let recording = Recording::from_bytes("x.sph", bytes).unwrap();
    recording.read(Selection { channel: Channel::Only(channel), ..Selection::default() }).unwrap().values
}

/// A walk with pauses of exact silence.
fn walk(steps: &[i16]) -> Vec<i64> {
    let mut at = 0i64;
    let walk = steps.iter().enumerate().map(|(index, &step)| {
        at = (at + i64::from(step)).clamp(-4000, 4000);
        if index % 200 < 40 { 0 } else { at }
    });
    walk.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn linear_samples_come_back_to_the_bit(
        version in 1u8..=2,
        n_channels in 1usize..=3,
        block_samples in 4usize..80,
        n_means in 0usize..5,
        shift in 0u32..4,
        steps in proptest::collection::vec(-300i16..300, 30..1500),
    ) {
        let mut values: Vec<i64> = walk(&steps).iter().map(|v| v << shift).collect();
        values.truncate(values.len() / n_channels * n_channels);
        // Version 1 keeps means of shifted samples; its shift does not change inside a file.
        let how = Shorten { version, kind: 5, n_channels, block_samples, n_means, shift };
        let bytes = file(&how, "pcm", &values, values.iter().sum());
        for channel in 0..n_channels {
            let expected: Vec<f32> = values.iter().skip(channel).step_by(n_channels).map(|&v| v as f32 / I16_SCALE).collect();
            prop_assert_eq!(read(bytes.clone(), channel), expected);
        }
    }
}

#[test]
fn ulaw_ranks_stand_for_the_bytes_of_the_published_tables() {
    // (shift, rank, byte), from the tables of the original program.
    let table = [
        (0, -128, 127),
        (0, -127, 0),
        (0, -1, 126),
        (0, 0, 255),
        (0, 127, 128),
        (1, -128, 112),
        (1, -120, 127),
        (1, -119, 0),
        (1, -1, 125),
        (1, 0, 255),
        (1, 1, 253),
        (1, 127, 240),
        (5, -128, 49),
        (5, -1, 103),
        (5, 1, 231),
        (5, 2, 219),
        (5, 127, 177),
        (12, -128, 1),
        (12, -2, 127),
        (12, -1, 0),
        (12, 0, 255),
        (12, 1, 254),
        (12, 127, 128),
    ];
    for (shift, rank, byte) in table {
        let how = Shorten { version: 1, kind: 0, n_channels: 1, block_samples: 8, n_means: 0, shift };
        // What is stored is the rank; the encoder would shift it away.
        let stored: Vec<i64> = vec![rank << shift; 16];
        let samples = read(file(&how, "ulaw", &stored, 16 * byte), 0);
        let wav = [
            b"RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\x07\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x01\0\0\0"
                .as_slice(),
            &[byte as u8],
        ]
        .concat();
        let expected = Recording::from_bytes("x.wav", wav).unwrap().read(Selection::default()).unwrap().values[0];
        assert_eq!(samples, [expected; 16], "shift {shift}, rank {rank}");
    }
}

#[test]
fn a_wrong_checksum_or_a_torn_stream_is_told() {
    let how = Shorten { version: 2, kind: 5, n_channels: 1, block_samples: 64, n_means: 4, shift: 0 };
    let values = walk(&[37; 1000]);
    let message = |bytes: Vec<u8>| {
        let recording = Recording::from_bytes("x.sph", bytes).unwrap();
        recording.read(Selection::default()).unwrap_err().to_string()
    };
    let sum: i64 = values.iter().sum::<i64>().rem_euclid(65536);
    let wrong = (sum + 1) % 65536;
    assert_eq!(
        message(file(&how, "pcm", &values, wrong)),
        format!("`x.sph`: the samples have checksum {sum}, but the header says {wrong}")
    );
    let whole = file(&how, "pcm", &values, sum);
    let torn = message(whole[..1024 + (whole.len() - 1024) / 2].to_vec());
    assert!(torn.starts_with("`x.sph` ends after ") && torn.ends_with("but its header claims 1000"), "{torn}");
}
