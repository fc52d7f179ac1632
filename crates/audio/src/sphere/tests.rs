//! Tests of the SPHERE reader and writer.

use super::*;
use crate::{Recording, Selection};

fn file(samples: &Samples) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, samples, &[("speaker_id", "fabc0")]).unwrap();
    bytes
}

fn samples() -> Samples {
    Samples { rate_hz: 16_000, values: (0..5000).map(|i| ((i * 7919) % 60001 - 30000) as f32 / 32768.0).collect() }
}

#[test]
fn what_is_written_is_read_back_to_the_bit() {
    let recording = Recording::from_bytes("x", file(&samples())).unwrap();
    assert_eq!(recording.info().n_samples, Some(5000));
    assert_eq!(recording.read(Selection::default()).unwrap(), samples());
}

/// The message of opening and reading `bytes`, which must fail.
fn message(bytes: Vec<u8>) -> String {
    Recording::from_bytes("x.sph", bytes).and_then(|r| r.read(Selection::default())).unwrap_err().to_string()
}

fn with_field(from: &str, to: &str) -> Vec<u8> {
    let bytes = file(&samples());
    let header = String::from_utf8(bytes[..1024].to_vec()).unwrap();
    assert!(header.contains(from));
    let header = format!("{:1024}", header.replace(from, to).trim_end_matches(' '));
    [header.as_bytes(), &bytes[1024..]].concat()
}

#[test]
fn each_broken_header_is_told_in_one_line() {
    let mut flipped = file(&samples());
    flipped[2000] ^= 1;
    let cases = [
        (flipped, "`x.sph`: the samples have checksum 32172, but the header says 32171"),
        (file(&samples())[..3000].to_vec(), "`x.sph` ends after 988 samples, but its header claims 5000"),
        (file(&samples())[..300].to_vec(), "`x.sph`: SPHERE header breaks off at byte 300"),
        (
            with_field("   1024\n", "9999999\n"),
            "`x.sph`: SPHERE header has `size` of `9999999`, expected 16 to 1048576 bytes",
        ),
        (with_field("sample_count -i 5000\n", ""), "`x.sph`: SPHERE header has no `sample_count`"),
        (with_field("sample_count -i 5000", "sample_count -i 0"), "`x.sph` has no samples"),
        (
            with_field("sample_count -i 5000", "sample_count -i 4294967295"),
            "`x.sph` ends after 5000 samples, but its header claims 4294967295",
        ),
        (
            with_field("sample_count -i 5000", "sample_count -i -3"),
            "`x.sph`: SPHERE header has `sample_count` of `-3`, expected a count",
        ),
        (
            with_field("channel_count -i 1", "channel_count -i 0"),
            "`x.sph`: SPHERE header has `channel_count` of `0`, expected 1 to 64",
        ),
        (
            with_field("sample_rate -i 16000", "sample_rate -i 1"),
            "`x.sph`: SPHERE header has `sample_rate` of `1`, expected 1000 to 768000 Hz",
        ),
        (
            with_field("-s3 pcm", "-s30 pcm,embedded-shortpack-v0.00"),
            "`x.sph`: SPHERE with samples stored as `pcm,embedded-shortpack-v0.00` is not supported",
        ),
        (with_field("end_head", "end head"), "`x.sph`: SPHERE header has no `end_head`"),
        (
            with_field("-s3 pcm", "-s30 pcm,embedded-shorten-v2.00"),
            "`x.sph`: SPHERE header cannot be parsed: in the shorten stream, it begins with `\\xd0\\x8a\\xbf\\xa9`, \
             expected `ajkg`",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(message(bytes), expected);
    }
}

#[test]
fn the_high_byte_may_come_first() {
    let mut bytes = with_field("-s2 01", "-s2 10");
    for pair in bytes[1024..].chunks_exact_mut(2) {
        pair.reverse();
    }
    assert_eq!(Recording::from_bytes("x", bytes).unwrap().read(Selection::default()).unwrap(), samples());
}
