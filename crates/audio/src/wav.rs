//! RIFF WAVE: reads all usual forms, writes 16 bits.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::{HeaderProblem, ReadAudioError};
use crate::input::Input;
use crate::pcm::{Layout, PcmSource};
use crate::recording::{Container, Info, Samples, Source, available, checked_channels, checked_rate, to_i16};

/// A file of more chunks than this before its samples is not a recording.
const MAX_CHUNKS: usize = 10_000;

/// Sizes from here on are what programs write that do not know the length: 2^32 - 1 or a little below 2^31.
const MIN_UNKNOWN_SIZE: u64 = 0x7fff_0000;

pub(crate) fn open(name: &str, mut input: Input) -> Result<(Info, Box<dyn Source>), ReadAudioError> {
    let header = Header::read(name, &mut input)?;
    let Header { layout, rate_hz, n_channels, start, n_samples, n_missing } = header;
    let info = Info {
        container: Container::Wav,
        encoding: layout.encoding(),
        rate_hz,
        n_channels,
        n_samples: Some(n_samples),
        n_missing,
        is_by_ffmpeg: false,
    };
    Ok((info, Box::new(PcmSource::new(name, input, layout, n_channels, start, n_samples))))
}

/// What a WAV says before its samples.
pub(crate) struct Header {
    pub(crate) layout: Layout,
    pub(crate) rate_hz: u32,
    pub(crate) n_channels: usize,
    /// Where the samples start, in bytes.
    start: u64,
    /// Samples per channel that are there; on a pipe, those promised, or very many.
    pub(crate) n_samples: u64,
    n_missing: u64,
}

impl Header {
    /// Reads chunks up to the samples, where it leaves `input`.
    pub(crate) fn read(name: &str, input: &mut Input) -> Result<Self, ReadAudioError> {
        let mut chunks = Chunks { name, input, at: 0 };
        let riff_size = u64::from(le_u32(&chunks.bytes::<12>()?, 4));
        let mut format = None;
        let mut long_size = None;
        for _ in 0..MAX_CHUNKS {
            let head = chunks.bytes::<8>()?;
            let size = u64::from(le_u32(&head, 4));
            match &head[..4] {
                b"fmt " => format = Some(Format::read(&mut chunks, size)?),
                b"ds64" => long_size = Some(read_long_size(&mut chunks, size)?),
                b"data" => {
                    let format = format.ok_or_else(|| chunks.error(HeaderProblem::Missing { field: "fmt " }))?;
                    let size = match long_size {
                        Some(long_size) if size == u64::from(u32::MAX) => Some(long_size),
                        _ if size >= MIN_UNKNOWN_SIZE || (size == 0 && riff_size == 0) => None,
                        _ => Some(size),
                    };
                    return format.with_data(&chunks, size);
                }
                _ => chunks.skip(size + size % 2)?,
            }
        }
        Err(chunks.error(HeaderProblem::Missing { field: "data" }))
    }
}

/// The file as a walk over its chunks.
struct Chunks<'a> {
    name: &'a str,
    input: &'a mut Input,
    at: u64,
}

impl Chunks<'_> {
    fn error(&self, problem: HeaderProblem) -> ReadAudioError {
        ReadAudioError::Header { name: self.name.to_owned(), container: Container::Wav, problem }
    }

    fn io_error(&self, cause: io::Error) -> ReadAudioError {
        ReadAudioError::Io { name: self.name.to_owned(), cause }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadAudioError> {
        let mut bytes = [0; N];
        let n_read = self.input.fill(&mut bytes).map_err(|cause| self.io_error(cause))?;
        self.at += n_read as u64;
        if n_read < N { Err(self.error(HeaderProblem::BreaksOff { at: self.at })) } else { Ok(bytes) }
    }

    fn skip(&mut self, n_bytes: u64) -> Result<(), ReadAudioError> {
        self.at += n_bytes;
        if self.at > self.input.n_bytes() {
            return Err(self.error(HeaderProblem::BreaksOff { at: self.input.n_bytes() }));
        }
        let reached = self.input.seek(SeekFrom::Start(self.at)).map_err(|cause| self.io_error(cause))?;
        if reached < self.at { Err(self.error(HeaderProblem::BreaksOff { at: reached })) } else { Ok(()) }
    }
}

fn le_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The size of the samples in an RF64 file, whose other size fields are too narrow for it.
fn read_long_size(chunks: &mut Chunks<'_>, size: u64) -> Result<u64, ReadAudioError> {
    let body = chunks.bytes::<16>()?;
    chunks.skip((size + size % 2).saturating_sub(16))?;
    Ok(u64::from(le_u32(&body, 8)) | u64::from(le_u32(&body, 12)) << 32)
}

struct Format {
    layout: Layout,
    rate_hz: u32,
    n_channels: usize,
}

impl Format {
    fn read(chunks: &mut Chunks<'_>, size: u64) -> Result<Self, ReadAudioError> {
        let value = |field, found: u64, expected: &str| HeaderProblem::Value {
            field,
            found: found.to_string(),
            expected: expected.to_owned(),
        };
        if size < 16 {
            return Err(chunks.error(value("fmt size", size, "at least 16")));
        }
        let body = chunks.bytes::<16>()?;
        let mut tag = le_u16(&body, 0);
        let mut n_rest = size + size % 2 - 16;
        if tag == 0xfffe && size >= 26 {
            // The extensible form names the coding in the first bytes of a longer identifier.
            tag = le_u16(&chunks.bytes::<10>()?, 8);
            n_rest -= 10;
        }
        chunks.skip(n_rest)?;

        let n_channels = u64::from(le_u16(&body, 2));
        let n_channels = checked_channels(chunks.name, Container::Wav, "channels", n_channels)?;
        let rate_hz = checked_rate(chunks.name, Container::Wav, "sample rate", u64::from(le_u32(&body, 4)))?;
        let block_align = usize::from(le_u16(&body, 12));
        let n_bits = le_u16(&body, 14);
        let layout = match (tag, block_align / n_channels) {
            (1, 1) => Layout::U8,
            (1, 2) => Layout::S16 { is_big_endian: false },
            (1, 3) => Layout::S24,
            (1, 4) => Layout::S32,
            (3, 4) => Layout::F32,
            (3, 8) => Layout::F64,
            (6, 1) => Layout::Alaw,
            (7, 1) => Layout::Ulaw,
            _ => {
                let name = chunks.name.to_owned();
                let found = format!("format {tag}, {n_bits} bits, {block_align} bytes for {n_channels} channels");
                return Err(ReadAudioError::Coding { name, container: Container::Wav, found });
            }
        };
        if block_align % n_channels != 0 || usize::from(n_bits) > 8 * layout.n_bytes() {
            return Err(chunks.error(value("bits a sample", u64::from(n_bits), "to fit the block size")));
        }
        Ok(Self { layout, rate_hz, n_channels })
    }

    /// The header, now that the samples are reached; `size` is theirs in bytes, or unknown.
    fn with_data(self, chunks: &Chunks<'_>, size: Option<u64>) -> Result<Header, ReadAudioError> {
        let Self { layout, rate_hz, n_channels } = self;
        let sample_bytes = (layout.n_bytes() * n_channels) as u64;
        let n_there = (chunks.input.n_bytes() - chunks.at) / sample_bytes;
        let n_samples = size.map_or(n_there, |size| size / sample_bytes);
        let (n_samples, n_missing) = available(chunks.name, n_there, n_samples)?;
        Ok(Header { layout, rate_hz, n_channels, start: chunks.at, n_samples, n_missing })
    }
}

/// Writes `samples` as a 16-bit mono WAV file at `path`, replacing what is there.
pub fn save(path: impl AsRef<Path>, samples: &Samples) -> io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), samples.rate_hz, 1)?;
    writer.push(&samples.values)?;
    writer.finish()?.flush()
}

/// A 16-bit mono WAV file written a block at a time.
///
/// ```
/// use std::io::Cursor;
/// use srf_audio::{Recording, Selection, wav};
///
/// let mut writer = wav::Writer::new(Cursor::new(Vec::new()), 16_000, 1)?;
/// for block in [[0.5_f32; 800]; 2] {
///     writer.push(&block)?;
/// }
/// let bytes = writer.finish()?.into_inner();
/// assert_eq!(Recording::from_bytes("out.wav", bytes)?.read(Selection::default())?.values.len(), 1600);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<W: Write + Seek> {
    output: W,
    rate_hz: u32,
    n_channels: u16,
    n_bytes: u64,
    bytes: Vec<u8>,
}

impl<W: Write + Seek> Writer<W> {
    /// Writes a header whose sizes are filled in by [`finish`](Self::finish).
    pub fn new(mut output: W, rate_hz: u32, n_channels: u16) -> io::Result<Self> {
        output.write_all(&header(rate_hz, n_channels, 0))?;
        Ok(Self { output, rate_hz, n_channels, n_bytes: 0, bytes: Vec::new() })
    }

    /// Appends samples, those of the channels in turn, each rounded to 16 bits.
    pub fn push(&mut self, values: &[f32]) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.extend(values.iter().flat_map(|&value| to_i16(value).to_le_bytes()));
        self.n_bytes += self.bytes.len() as u64;
        self.output.write_all(&self.bytes)
    }

    /// Writes the sizes into the header and gives back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        let n_bytes = u32::try_from(self.n_bytes)
            .ok()
            .filter(|n| *n <= u32::MAX - 36)
            .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "a WAV file cannot hold more than 4 GiB"))?;
        self.output.seek(SeekFrom::Start(0))?;
        self.output.write_all(&header(self.rate_hz, self.n_channels, n_bytes))?;
        self.output.seek(SeekFrom::End(0))?;
        Ok(self.output)
    }
}

fn header(rate_hz: u32, n_channels: u16, n_bytes: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(44);
    header.extend(b"RIFF");
    header.extend((36 + n_bytes).to_le_bytes());
    header.extend(b"WAVEfmt ");
    header.extend(16u32.to_le_bytes());
    header.extend(1u16.to_le_bytes()); // PCM
    header.extend(n_channels.to_le_bytes());
    header.extend(rate_hz.to_le_bytes());
    header.extend((2 * u32::from(n_channels) * rate_hz).to_le_bytes());
    header.extend((2 * n_channels).to_le_bytes()); // bytes a sample of all channels
    header.extend(16u16.to_le_bytes()); // bits a sample
    header.extend(b"data");
    header.extend(n_bytes.to_le_bytes());
    header
}
