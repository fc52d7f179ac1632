//! Sound from a pipe: bytes in, samples out as soon as they come where the format allows.
//!
//! A WAV of 16-bit samples and raw samples are read as they come; other recordings are gathered first.

use std::io::{self, Read};

use anyhow::{Context as _, bail};
use srf_audio::{I16_SCALE, Recording, Selection};

use crate::printer::Printer;

/// Recordings that cannot be read as they come must fit into memory.
const MAX_GATHERED_BYTES: u64 = 1 << 30;

/// More than this before the samples of a WAV is no WAV.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// Bytes read at once: 64 ms at 16 kHz.
const BLOCK_BYTES: usize = 2048;

/// How raw samples are recognised.
#[derive(Clone, Copy)]
pub(super) struct Raw {
    /// Whatever the bytes look like.
    pub(super) is_forced: bool,
    pub(super) rate_hz: u32,
}

/// Something to listen to.
pub(super) enum Sound {
    Recording(Recording, Selection),
    Samples(Vec<f32>, u32),
    Pcm(Pcm),
    /// The microphone.
    #[cfg(feature = "mic")]
    Live(std::sync::mpsc::Receiver<Vec<f32>>, u32),
}

/// 16-bit samples, little-endian, as they come.
pub(super) struct Pcm {
    input: Box<dyn Read>,
    rate_hz: u32,
    n_channels: usize,
}

impl Sound {
    /// Gives `take` all samples, a block at a time, with their rate.
    pub(super) fn each(self, take: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self {
            Self::Samples(samples, rate_hz) => take(&samples, rate_hz),
            Self::Recording(recording, selection) => {
                let mut blocks = recording.blocks(selection)?;
                let rate_hz = blocks.rate_hz();
                while let Some(block) = blocks.next_block()? {
                    take(block, rate_hz)?;
                }
                Ok(())
            }
            Self::Pcm(pcm) => pcm.each(take),
            #[cfg(feature = "mic")]
            Self::Live(receiver, rate_hz) => super::microphone::each(&receiver, rate_hz, take),
        }
    }
}

impl Pcm {
    fn each(mut self, take: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let n_frame = 2 * self.n_channels;
        let mut bytes = vec![0; BLOCK_BYTES.next_multiple_of(n_frame)];
        let (mut n_there, mut samples) = (0, Vec::new());
        loop {
            match self.input.read(&mut bytes[n_there..]) {
                // Less than a sample is left over, if anything.
                Ok(0) => return Ok(()),
                Ok(n) => n_there += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("could not read stdin"),
            }
            let n_whole = n_there / n_frame * n_frame;
            samples.clear();
            samples.extend(bytes[..n_whole].chunks_exact(n_frame).map(mix));
            bytes.copy_within(n_whole..n_there, 0);
            n_there -= n_whole;
            take(&samples, self.rate_hz)?;
        }
    }
}

/// The mean of the channels.
fn mix(frame: &[u8]) -> f32 {
    let (samples, _) = frame.as_chunks::<2>();
    let sum: f32 = samples.iter().map(|sample| f32::from(i16::from_le_bytes(*sample)) / I16_SCALE).sum();
    sum / samples.len() as f32
}

/// Looks at the first bytes of stdin and decides what it is.
pub(super) fn open(raw: Raw, out: &Printer) -> anyhow::Result<Sound> {
    open_reader(Box::new(io::stdin()), raw, out)
}

fn open_reader(mut input: Box<dyn Read>, raw: Raw, out: &Printer) -> anyhow::Result<Sound> {
    let mut head = Vec::new();
    input.by_ref().take(12).read_to_end(&mut head).context("could not read stdin")?;
    if head.is_empty() {
        bail!("stdin is empty, expected a recording or raw samples");
    }
    let is_wav = head.starts_with(b"RIFF") && head.ends_with(b"WAVE");
    if is_wav && !raw.is_forced {
        return open_wav(input, head);
    }
    if is_recording(&head) && !raw.is_forced {
        return gathered(input, head);
    }
    let Raw { is_forced, rate_hz } = raw;
    if !is_forced {
        out.note(format_args!("stdin is taken for raw 16-bit samples, mono, at {rate_hz} Hz (`--rate HZ`)"));
    }
    Ok(Sound::Pcm(Pcm { input: Box::new(io::Cursor::new(head).chain(input)), rate_hz, n_channels: 1 }))
}

/// Whether the first bytes are those of a recording that is no WAV.
fn is_recording(head: &[u8]) -> bool {
    const MARKS: &[&[u8]] = &[b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b"RF64", &[0xff, 0xfb], &[0xff, 0xf3]];
    MARKS.iter().any(|mark| head.starts_with(mark))
}

/// The whole of stdin as a recording in memory.
fn gathered(input: Box<dyn Read>, mut bytes: Vec<u8>) -> anyhow::Result<Sound> {
    input.take(MAX_GATHERED_BYTES).read_to_end(&mut bytes).context("could not read stdin")?;
    if MAX_GATHERED_BYTES <= bytes.len() as u64 {
        bail!("stdin has more than {MAX_GATHERED_BYTES} bytes; give the recording as a file, or pipe it as WAV");
    }
    Ok(Sound::Recording(Recording::from_bytes("stdin", bytes)?, Selection::default()))
}

/// A WAV whose header is read now and whose samples as they come, if they have 16 bits.
fn open_wav(mut input: Box<dyn Read>, mut head: Vec<u8>) -> anyhow::Result<Sound> {
    let mut format: Option<(u16, u32)> = None;
    loop {
        let start = head.len();
        let n = input.by_ref().take(8).read_to_end(&mut head).context("could not read stdin")?;
        if n < 8 || MAX_HEADER_BYTES < head.len() {
            return gathered(input, head);
        }
        let size = u32::from_le_bytes([head[start + 4], head[start + 5], head[start + 6], head[start + 7]]);
        match (&head[start..start + 4], format) {
            // Programs that write to a pipe do not know the size; the samples end where the pipe does.
            (b"data", Some((n_channels, rate_hz))) => {
                let is_known = 0 < size && size < 0x7fff_0000;
                let input: Box<dyn Read> = if is_known { Box::new(input.take(size.into())) } else { input };
                return Ok(Sound::Pcm(Pcm { input, rate_hz, n_channels: n_channels.into() }));
            }
            (b"data", None) => return gathered(input, head),
            _ => {}
        }
        let body = head.len();
        let n_wanted = u64::from(size.next_multiple_of(2)).min(MAX_HEADER_BYTES as u64);
        input.by_ref().take(n_wanted).read_to_end(&mut head).context("could not read stdin")?;
        if &head[start..start + 4] == b"fmt " {
            format = plain_format(&head[body..]);
        }
    }
}

/// Channels and rate of 16-bit samples; nothing for other encodings and for what no device has.
fn plain_format(chunk: &[u8]) -> Option<(u16, u32)> {
    let number = |at: usize| chunk.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    let n_channels = number(2).filter(|n| (1..=64).contains(n))?;
    let rate_hz = u32::from(number(4)?) | u32::from(number(6)?) << 16;
    (number(0) == Some(1) && number(14) == Some(16)).then_some((n_channels, rate_hz))
}
