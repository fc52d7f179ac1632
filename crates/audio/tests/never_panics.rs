//! Every parser on broken input: valid files of every kind, cut short, with bits flipped and bytes overwritten.
//!
//! Whatever comes, there is an answer or an error, and memory stays bounded. The inputs are the same every time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "it says how many inputs were tried")]

mod encode;

use std::io::Cursor;
use std::path::PathBuf;

use encode::Shorten;
use srf_audio::ark::{Form, Matrix, Reader, Writer, load_scp};
use srf_audio::{Recording, Samples, Selection, sphere};

/// Inputs a seed file; multiplied by `NEVER_PANICS_FACTOR` for a longer run.
const N_INPUTS: usize = 1500;
/// A damaged header can promise silence without end; this much of it is read.
const MAX_SAMPLES: usize = 1 << 21;
/// More than this was never needed; a parser that believed a header would go far beyond.
const MAX_MEMORY_KB: u64 = 600_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// One damage after the other, mostly near the front, where headers are.
fn damaged(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let reach = if random.below(3) > 0 { bytes.len().min(128) } else { bytes.len() };
        let at = random.below(reach);
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 => {
                // Numbers that headers should not have.
                let extreme: u32 = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xffff, 0x0001_0000][random.below(7)];
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&extreme.to_le_bytes()[..end - at]);
            }
            4 => {
                let digits = *b"99999999";
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&digits[..end - at]);
            }
            5 => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let copy = bytes[at..(at + random.below(64)).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

fn n_inputs() -> usize {
    let factor = std::env::var("NEVER_PANICS_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    N_INPUTS * factor
}

/// Calls `parse` on many damaged forms of each seed; how many.
fn try_all(seeds: &[(String, Vec<u8>)], mut parse: impl FnMut(&str, Vec<u8>)) -> usize {
    let mut random = Random(20);
    let mut n_tried = 0;
    for (name, seed) in seeds {
        for length in 0..seed.len().min(200) {
            parse(name, seed[..length].to_vec());
            n_tried += 1;
        }
        for _ in 0..n_inputs() {
            parse(name, damaged(seed, &mut random));
            n_tried += 1;
        }
    }
    n_tried
}

/// The most memory this process has held, where the system says so.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}

fn check_memory() {
    if let Some(peak_kb) = peak_kb() {
        assert!(peak_kb < MAX_MEMORY_KB, "{peak_kb} kB were held at once");
    }
}

fn tone(n_samples: usize) -> Samples {
    Samples {
        rate_hz: 16_000,
        values: (0..n_samples).map(|i| (((i * 7919) % 2001) as f32 - 1000.0) / 32768.0).collect(),
    }
}

/// A WAV of the given format tag and bytes a sample, two channels, the extensible form too.
fn wav(tag: u16, n_bytes: u16) -> Vec<u8> {
    let body: Vec<u8> = (0..40 * usize::from(n_bytes)).map(|i| (i % 48) as u8).collect();
    let extra: &[u8] = if tag == 0xfffe {
        &[22, 0, 16, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113]
    } else {
        &[]
    };
    let mut bytes = [b"RIFF".as_slice(), &(36 + (extra.len() + body.len()) as u32).to_le_bytes(), b"WAVEfmt "].concat();
    bytes.extend((16 + extra.len() as u32).to_le_bytes());
    bytes.extend([tag.to_le_bytes(), 2u16.to_le_bytes()].concat());
    bytes.extend([16_000u32.to_le_bytes(), (32_000 * u32::from(n_bytes)).to_le_bytes()].concat());
    bytes.extend([(2 * n_bytes).to_le_bytes(), (8 * n_bytes).to_le_bytes()].concat());
    bytes.extend([extra, b"data", &(body.len() as u32).to_le_bytes(), &body].concat());
    bytes
}

fn shorten(version: u8, kind: u32, coding: &str, n_channels: usize) -> Vec<u8> {
    let how = Shorten { version, kind, n_channels, block_samples: 32, n_means: 4, shift: 0 };
    let values: Vec<i64> = (0..300).map(|i| (i * 37) % 101 - 50).collect();
    let fields = [
        ("channel_count", n_channels.to_string()),
        ("sample_count", (300 / n_channels).to_string()),
        ("sample_rate", "16000".to_owned()),
        ("sample_n_bytes", if coding == "pcm" { "2" } else { "1" }.to_owned()),
        ("sample_byte_format", "01".to_owned()),
        ("sample_coding", format!("{coding},embedded-shorten-v{version}.00")),
    ];
    encode::sphere(&fields, &how.encode(&values))
}

fn recordings() -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<(String, Vec<u8>)> = Vec::new();
    for (tag, n_bytes) in [(1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (3, 8), (6, 1), (7, 1), (0xfffe, 2)] {
        seeds.push((format!("wav {tag} {n_bytes}"), wav(tag, n_bytes)));
    }
    let mut plain = Vec::new();
    sphere::write(&mut plain, &tone(200), &[("speaker_id", "x")]).unwrap();
    seeds.push(("sphere".to_owned(), plain));
    for (version, kind, coding, n_channels) in
        [(1, 5, "pcm", 1), (2, 5, "pcm", 2), (2, 8, "ulaw", 1), (1, 0, "ulaw", 1), (2, 9, "alaw", 1)]
    {
        let bytes = shorten(version, kind, coding, n_channels);
        // Without most of the padding, damage meets the stream more often.
        seeds.push((format!("shorten {version} {kind} {coding}"), bytes));
    }
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["tone.flac", "tone.mp3", "tone.ogg", "tone.aiff", "tone.m4a", "tone.mkv"] {
        seeds.push((name.to_owned(), std::fs::read(dir.join(name)).unwrap()));
    }
    seeds
}

fn read_blocks(recording: &Recording, selection: Selection) {
    let Ok(mut blocks) = recording.blocks(selection) else { return };
    let mut n_samples = 0;
    while let Ok(Some(block)) = blocks.next_block() {
        assert!(block.iter().all(|value| value.is_finite()));
        n_samples += block.len();
        if n_samples > MAX_SAMPLES {
            break;
        }
    }
}

/// Panics inside symphonia, which the library turns into errors, need not be shown.
fn silence_symphonia() {
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|location| location.file().contains("symphonia")) {
            shown(info);
        }
    }));
}

#[test]
fn recordings_of_every_kind_give_samples_or_an_error() {
    silence_symphonia();
    let seeds = recordings();
    for (name, seed) in &seeds {
        assert!(Recording::from_bytes("x", seed.clone()).unwrap().read(Selection::default()).is_ok(), "{name}");
    }
    let n_tried = try_all(&seeds, |_, bytes| {
        if let Ok(recording) = Recording::from_bytes("x", bytes) {
            read_blocks(&recording, Selection::default());
            read_blocks(&recording, Selection { start_s: 1.5, end_s: Some(1.6), ..Selection::default() });
        }
    });
    println!("{n_tried} broken recordings were tried");
    check_memory();
}

fn archives() -> Vec<(String, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.ark");
    let matrix = Matrix { n_cols: 3, values: tone(30).values };
    let wide = Matrix { n_cols: 3, values: matrix.values.iter().map(|&v| f64::from(v)).collect() };
    let mut seeds = Vec::new();
    for form in [Form::Binary, Form::Text] {
        let mut writer = Writer::create(&path, None, form).unwrap();
        writer.write("one", &matrix).unwrap();
        writer.write("two", &wide).unwrap();
        writer.finish().unwrap();
        seeds.push((format!("{form:?}"), std::fs::read(&path).unwrap()));
    }
    for (token, n_bytes) in [("CM", 8 * 3 + 30), ("CM2", 60), ("CM3", 30)] {
        let header = [1.0f32.to_le_bytes(), 2.0f32.to_le_bytes(), 10i32.to_le_bytes(), 3i32.to_le_bytes()].concat();
        let entry = [format!("k \0B{token} ").as_bytes(), &header, &vec![7; n_bytes]].concat();
        seeds.push((token.to_owned(), [entry.clone(), entry].concat()));
    }
    seeds
}

fn read_archive(bytes: &[u8]) -> usize {
    let mut reader = Reader::new("x", Cursor::new(bytes));
    let mut n_entries = 0;
    while let Ok(Some((_, matrix))) = reader.next_entry::<f32>() {
        assert_eq!(matrix.values.len(), matrix.n_rows() * matrix.n_cols);
        n_entries += 1;
    }
    n_entries
}

#[test]
fn archives_of_every_kind_give_matrices_or_an_error() {
    let seeds = archives();
    for (name, seed) in &seeds {
        assert_eq!(read_archive(seed), 2, "{name}");
    }
    let n_tried = try_all(&seeds, |_, bytes| {
        read_archive(&bytes);
    });
    println!("{n_tried} broken archives were tried");
    check_memory();
}

#[test]
fn script_files_give_entries_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.scp");
    let seed = b"one a.ark:4\ntwo b.ark:12[0:3]\nthree /c/d e.mat\n".to_vec();
    let n_tried = try_all(&[("scp".to_owned(), seed)], |_, bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = load_scp(&path);
    });
    println!("{n_tried} broken script files were tried");
}
