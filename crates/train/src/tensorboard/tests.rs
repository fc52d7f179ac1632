//! Event files byte by byte.

use super::*;
use crate::events::{ErrorCounts, Health, RunEnd, Speed};

fn record(step: u64, event: Event) -> Record {
    Record { time_s: 1.5, step, event }
}

#[test]
fn checksums_are_those_of_the_standard() {
    // The check value of CRC-32C, and the vectors of RFC 3720.
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
}

#[test]
fn the_first_frame_is_that_of_every_event_file() {
    // 24 bytes: key 0x09 and 1.5 as a double, key 0x1a, 13 letters.
    let bytes = framed(version(1.5).bytes());
    assert_eq!(bytes[..8], 24_u64.to_le_bytes());
    assert_eq!(bytes[12..21], [0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
    assert_eq!(bytes[21..23], [0x1a, 13]);
    assert_eq!(&bytes[23..36], b"brain.Event:2");
    // The masked checksum of a length of 24, as every event file of TensorBoard begins with it.
    assert_eq!(bytes[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
}

#[test]
fn a_scalar_is_a_tag_and_a_float() {
    let message = summary(&record(300, Event::Unknown), &[("a/b".to_owned(), 0.5)]);
    let expected = [
        &[0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f][..], // wall time 1.5
        &[0x10, 0xac, 0x02],                       // step 300
        &[0x2a, 12],                               // summary of 12 bytes
        &[0x0a, 10],                               // value of 10 bytes
        &[0x0a, 3, b'a', b'/', b'b'],              // tag
        &[0x15, 0, 0, 0, 0x3f],                    // 0.5
    ];
    assert_eq!(message.bytes(), expected.concat());
}

/// The frames of a file, every checksum held against its bytes.
fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let n_bytes = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        let payload = rest[12..12 + n_bytes].to_vec();
        assert_eq!(rest[..16 + n_bytes], framed(&payload));
        rest = &rest[16 + n_bytes..];
        found.push(payload);
    }
    found
}

#[test]
fn a_file_holds_a_frame_for_every_record_with_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let mut board = TensorBoard::create(&dir.path().join("board"), 1.5, 20).unwrap();
    let errors = ErrorCounts { measure: "PER".to_owned(), n_reference: 4, deletions: 1, ..ErrorCounts::default() };
    let validation = Some(Measured { n_utterances: 1, loss: 2.0, errors: Some(errors), ..Measured::default() });
    let epoch = EpochEnd { epoch: 1, validation, ..EpochEnd::default() };
    let speed = Speed { n_frames: 10, duration_s: 2.0, wait_s: 1.0 };
    for event in [
        Event::Steps(Steps { loss: 3.0, speed, ..Steps::default() }),
        Event::Epoch(Box::new(epoch)),
        Event::End(RunEnd::default()),
        Event::Health(Health {
            epoch: 1,
            layers: vec![LayerHealth { name: "caps1".to_owned(), ..LayerHealth::default() }],
        }),
    ] {
        board.add(&record(21, event)).unwrap();
    }
    let frames = frames(&std::fs::read(board.path()).unwrap());
    assert_eq!(frames.len(), 5);
    assert_eq!(frames[1], session_start(1.5, 21).bytes());
    for (frame, tag) in [(2, "step/loss"), (2, "speed/wait_share"), (3, "per/validation"), (4, "dead_share/caps1")] {
        assert!(frames[frame].windows(tag.len()).any(|window| window == tag.as_bytes()), "{tag}");
    }
}

#[test]
fn two_processes_of_a_second_write_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3).map(|_| TensorBoard::create(dir.path(), 7.0, 0).unwrap().path().to_owned()).collect();
    assert!(paths.is_sorted());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}
