//! Uncompressed samples, as in WAV and SPHERE files.

use std::io::{Seek as _, SeekFrom};

use crate::I16_SCALE;
use crate::companding::{decode_alaw, decode_ulaw};
use crate::error::ReadAudioError;
use crate::input::Input;
use crate::recording::{Encoding, Source};

const BLOCK_BYTES: usize = 1 << 15;

/// The bytes of one sample, low byte first unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One byte around 128.
    U8,
    S16 {
        is_big_endian: bool,
    },
    S24,
    S32,
    F32,
    F64,
    Ulaw,
    Alaw,
}

impl Layout {
    pub(crate) fn n_bytes(self) -> usize {
        match self {
            Self::U8 | Self::Ulaw | Self::Alaw => 1,
            Self::S16 { .. } => 2,
            Self::S24 => 3,
            Self::S32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    pub(crate) fn encoding(self) -> Encoding {
        let n_bits = 8 * self.n_bytes() as u32;
        match self {
            Self::Ulaw => Encoding::Ulaw,
            Self::Alaw => Encoding::Alaw,
            Self::F32 | Self::F64 => Encoding::Float { n_bits },
            _ => Encoding::Pcm { n_bits },
        }
    }

    /// Appends the samples in `bytes`, whose length is a multiple of [`n_bytes`](Self::n_bytes).
    pub(crate) fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        match self {
            Self::U8 => samples.extend(bytes.iter().map(|&b| (f32::from(b) - 128.0) / 128.0)),
            Self::Ulaw => samples.extend(bytes.iter().map(|&b| from_i16(decode_ulaw(b)))),
            Self::Alaw => samples.extend(bytes.iter().map(|&b| from_i16(decode_alaw(b)))),
            Self::S16 { is_big_endian: false } => words(bytes, samples, |b| from_i16(i16::from_le_bytes(b))),
            Self::S16 { is_big_endian: true } => words(bytes, samples, |b| from_i16(i16::from_be_bytes(b))),
            Self::S24 => words(bytes, samples, |[a, b, c]| from_i32([0, a, b, c])),
            Self::S32 => words(bytes, samples, from_i32),
            Self::F32 => words(bytes, samples, f32::from_le_bytes),
            Self::F64 => words(bytes, samples, |b| f64::from_le_bytes(b) as f32),
        }
    }
}

fn words<const N: usize>(bytes: &[u8], samples: &mut Vec<f32>, decode: impl Fn([u8; N]) -> f32) {
    samples.extend(bytes.as_chunks::<N>().0.iter().map(|&word| decode(word)));
}

pub(crate) fn from_i16(value: i16) -> f32 {
    f32::from(value) / I16_SCALE
}

/// Keeps 24 bits of a 32-bit integer.
fn from_i32(bytes: [u8; 4]) -> f32 {
    i32::from_le_bytes(bytes) as f32 / 2_147_483_648.0
}

/// The sum of all samples modulo 2^16 (for one-byte codes, of the bytes), as SPHERE headers carry it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum {
    expected: u16,
    sum: u16,
}

impl Checksum {
    pub(crate) fn new(expected: u16) -> Self {
        Self { expected, sum: 0 }
    }

    pub(crate) fn add(&mut self, values: impl Iterator<Item = u16>) {
        self.sum = values.fold(self.sum, u16::wrapping_add);
    }

    fn add_bytes(&mut self, layout: Layout, bytes: &[u8]) {
        let pairs = || bytes.as_chunks::<2>().0.iter();
        match layout {
            Layout::S16 { is_big_endian: false } => self.add(pairs().map(|&pair| u16::from_le_bytes(pair))),
            Layout::S16 { is_big_endian: true } => self.add(pairs().map(|&pair| u16::from_be_bytes(pair))),
            _ => self.add(bytes.iter().map(|&byte| u16::from(byte))),
        }
    }

    pub(crate) fn verify(self, name: &str) -> Result<(), ReadAudioError> {
        if self.sum == self.expected {
            return Ok(());
        }
        let (found, expected) = (self.sum.to_string(), self.expected.to_string());
        Err(ReadAudioError::Checksum { name: name.to_owned(), found, expected })
    }
}

/// The samples of a file from `start` on.
pub(crate) struct PcmSource {
    name: String,
    input: Input,
    layout: Layout,
    n_channels: usize,
    /// Where the samples start, in bytes.
    start: u64,
    /// Bytes still to read.
    n_left: u64,
    /// Bytes of samples in all.
    n_bytes: u64,
    bytes: Vec<u8>,
    checksum: Option<Checksum>,
}

impl PcmSource {
    pub(crate) fn new(name: &str, input: Input, layout: Layout, n_channels: usize, start: u64, n_samples: u64) -> Self {
        let sample_bytes = (layout.n_bytes() * n_channels) as u64;
        let n_bytes = n_samples.saturating_mul(sample_bytes);
        let name = name.to_owned();
        Self { name, input, layout, n_channels, start, n_left: n_bytes, n_bytes, bytes: Vec::new(), checksum: None }
    }

    /// Verified when all samples have been read in order.
    pub(crate) fn with_checksum(self, checksum: Option<Checksum>) -> Self {
        Self { checksum, ..self }
    }

    fn io_error(&self, cause: std::io::Error) -> ReadAudioError {
        ReadAudioError::Io { name: self.name.clone(), cause }
    }
}

impl Source for PcmSource {
    fn next_block(&mut self, block: &mut Vec<f32>) -> Result<(), ReadAudioError> {
        block.clear();
        let sample_bytes = self.layout.n_bytes() * self.n_channels;
        let n_wanted = (BLOCK_BYTES / sample_bytes * sample_bytes).max(sample_bytes) as u64;
        self.bytes.resize(n_wanted.min(self.n_left) as usize, 0);
        let n_read = self.input.fill(&mut self.bytes).map_err(|cause| self.io_error(cause))?;
        // What does not make up a sample of every channel is the torn end of the file.
        let n_whole = n_read / sample_bytes * sample_bytes;
        self.n_left -= n_whole as u64;
        self.layout.decode(&self.bytes[..n_whole], block);
        if let Some(checksum) = &mut self.checksum {
            checksum.add_bytes(self.layout, &self.bytes[..n_whole]);
            if self.n_left == 0 && n_whole > 0 {
                checksum.verify(&self.name)?;
            }
        }
        Ok(())
    }

    fn seek(&mut self, position: u64) -> Result<u64, ReadAudioError> {
        self.checksum = None;
        let offset = position.saturating_mul((self.layout.n_bytes() * self.n_channels) as u64).min(self.n_bytes);
        self.input.seek(SeekFrom::Start(self.start.saturating_add(offset))).map_err(|cause| self.io_error(cause))?;
        self.n_left = self.n_bytes - offset;
        Ok(position)
    }
}
