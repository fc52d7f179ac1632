//! Recordings of any format: their headers, and their samples at once, in part or in blocks.

use std::fmt;
use std::io::{Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::error::{HeaderProblem, ReadAudioError};
use crate::input::{Data, Input};
use crate::{I16_SCALE, compressed, ffmpeg, sphere, wav};

/// The most samples [`Recording::read`] gathers; longer recordings are read in blocks or in parts.
const MAX_READ_SAMPLES: usize = 1 << 29;

/// How far beyond the end of the recording the part asked for may reach.
///
/// Corpora round the times of their utterances; what is missing is then simply not there.
const MAX_OVERSHOOT_S: f64 = 0.5;

/// How the file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// RIFF (or RF64) WAVE.
    Wav,
    /// NIST SPHERE.
    Sphere,
    /// Native FLAC.
    Flac,
    /// MPEG audio, layer 3.
    Mp3,
    /// Ogg with Vorbis or FLAC inside.
    Ogg,
    /// AIFF or AIFF-C.
    Aiff,
    /// MP4 and M4A, with AAC, ALAC, MP3 or FLAC inside.
    Mp4,
    /// Matroska and WebM, with the same codecs or Vorbis inside.
    Mkv,
    /// AAC without a container (ADTS).
    Aac,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wav => "WAV",
            Self::Sphere => "SPHERE",
            Self::Flac => "FLAC",
            Self::Mp3 => "MP3",
            Self::Ogg => "Ogg",
            Self::Aiff => "AIFF",
            Self::Mp4 => "MP4",
            Self::Mkv => "Matroska",
            Self::Aac => "AAC",
        })
    }
}

/// How samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Linear integers of this many bits.
    Pcm {
        /// Bits a sample.
        n_bits: u32,
    },
    /// IEEE floating point of this many bits, full scale 1.
    Float {
        /// Bits a sample.
        n_bits: u32,
    },
    /// G.711 u-law.
    Ulaw,
    /// G.711 A-law.
    Alaw,
    /// Shorten inside SPHERE, giving 16-bit samples or u-law bytes.
    Shorten,
    /// A codec whose container says it all.
    Codec,
}

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// How the file is laid out.
    pub container: Container,
    /// How its samples are stored.
    pub encoding: Encoding,
    /// The sample rate.
    pub rate_hz: u32,
    /// At least 1.
    pub n_channels: usize,
    /// Samples per channel, where the header says so.
    pub n_samples: Option<u64>,
    /// Samples per channel that the header promises beyond those in the file: it was cut off.
    pub n_missing: u64,
    /// Whether the program `ffmpeg` decoded it, because we cannot.
    pub is_by_ffmpeg: bool,
}

impl Info {
    /// The length in seconds, where the header says so.
    pub fn duration_s(&self) -> Option<f64> {
        self.n_samples.map(|n| n as f64 / f64::from(self.rate_hz))
    }
}

/// Mono samples from -1 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The sample rate.
    pub rate_hz: u32,
    /// The samples.
    pub values: Vec<f32>,
}

impl Samples {
    /// The length in seconds.
    pub fn duration_s(&self) -> f64 {
        self.values.len() as f64 / f64::from(self.rate_hz)
    }

    /// From 16-bit samples; exact.
    pub fn from_i16(rate_hz: u32, values: &[i16]) -> Self {
        Self { rate_hz, values: values.iter().map(|&value| f32::from(value) / I16_SCALE).collect() }
    }

    /// Each sample rounded to the nearest 16-bit integer, those beyond full scale clipped.
    pub fn to_i16(&self) -> Vec<i16> {
        self.values.iter().map(|&value| to_i16(value)).collect()
    }
}

/// The nearest 16-bit integer; float-to-int casts saturate.
pub(crate) fn to_i16(value: f32) -> i16 {
    (value * I16_SCALE).round() as i16
}

/// Which channel becomes the mono signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Channel {
    /// This one, counted from 0.
    Only(usize),
    /// The mean of all.
    #[default]
    Mix,
}

impl Channel {
    /// Appends the mono signal of `interleaved` samples of `n_channels`.
    pub(crate) fn extract(self, interleaved: &[f32], n_channels: usize, mono: &mut Vec<f32>) {
        match self {
            Self::Mix if n_channels == 1 => mono.extend_from_slice(interleaved),
            Self::Mix => {
                let scale = 1.0 / n_channels as f32;
                mono.extend(interleaved.chunks_exact(n_channels).map(|values| values.iter().sum::<f32>() * scale));
            }
            Self::Only(channel) => mono.extend(interleaved.iter().skip(channel).step_by(n_channels)),
        }
    }

    /// Whether a recording of `n_channels` has it.
    pub(crate) fn check(self, name: &str, n_channels: usize) -> Result<(), ReadAudioError> {
        match self {
            Self::Only(channel) if channel >= n_channels => {
                Err(ReadAudioError::NoSuchChannel { name: name.to_owned(), channel, n_channels })
            }
            _ => Ok(()),
        }
    }
}

/// Which part of a recording to read; the default is all of it, channels mixed.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Selection {
    /// The channel.
    pub channel: Channel,
    /// Where to start, in seconds.
    pub start_s: f64,
    /// Where to end, in seconds; the end of the recording when absent.
    pub end_s: Option<f64>,
}

/// Decoded samples in the order of the file; each container has one.
pub(crate) trait Source: Send {
    /// Replaces `block` by the next interleaved samples; leaves it empty at the end of the data.
    fn next_block(&mut self, block: &mut Vec<f32>) -> Result<(), ReadAudioError>;

    /// Moves to `position` (samples per channel) or somewhere before it, and says where it is now.
    fn seek(&mut self, position: u64) -> Result<u64, ReadAudioError>;

    /// After the last block: whether the data ended before its end was marked.
    fn is_cut_off(&self) -> bool {
        false
    }
}

/// A recording that was opened, its header read; its samples are read on demand.
///
/// ```
/// use srf_audio::{Blocks, Channel, Container, Encoding, I16_SCALE, Info, Recording, Samples, Selection, probe, wav};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.wav");
/// let samples = Samples::from_i16(8_000, &[0, 16_384, -16_384, 8]);
/// assert_eq!(samples.values[3], 8.0 / I16_SCALE);
/// wav::save(&path, &samples)?;
///
/// let info: Info = probe(&path)?;
/// assert_eq!((info.container, info.encoding), (Container::Wav, Encoding::Pcm { n_bits: 16 }));
/// let recording = Recording::from_bytes("a.wav", std::fs::read(&path)?)?;
/// assert_eq!(recording.info(), &info);
/// assert!(recording.incomplete().is_none(), "all samples are there");
/// assert_eq!(recording.read(Selection::default())?.to_i16(), [0, 16_384, -16_384, 8]);
///
/// // Long recordings are read block by block.
/// let mut blocks: Blocks = recording.blocks(Selection { channel: Channel::Only(0), ..Selection::default() })?;
/// let mut n_samples = 0;
/// while let Some(block) = blocks.next_block()? {
///     n_samples += block.len();
/// }
/// assert_eq!((n_samples, blocks.incomplete().is_none()), (4, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    name: String,
    data: Data,
    info: Info,
}

/// What the header of the file at `path` says.
pub fn probe(path: impl AsRef<Path>) -> Result<Info, ReadAudioError> {
    Ok(Recording::open(path)?.info)
}

impl Recording {
    /// Opens the file at `path` and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadAudioError> {
        let path = path.as_ref();
        Self::from_data(path.display().to_string(), Data::File(path.to_owned()))
    }

    /// A recording already in memory; `name` is what error messages call it.
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Result<Self, ReadAudioError> {
        Self::from_data(name.into(), Data::Bytes(bytes.into()))
    }

    fn from_data(name: String, data: Data) -> Result<Self, ReadAudioError> {
        match open_source(&name, &data) {
            Ok((info, _)) => Ok(Self { name, data, info }),
            Err(error) => Self::by_ffmpeg(&name, &data, &error).ok_or(error),
        }
    }

    /// A media file whose codec we do not know, such as Opus, where `ffmpeg` is installed.
    fn by_ffmpeg(name: &str, data: &Data, error: &ReadAudioError) -> Option<Self> {
        let Data::File(path) = data else { return None };
        let container = error.undecoded()?;
        let data = Data::Bytes(ffmpeg::decode(path)?.into());
        let (info, _) = open_source(name, &data).ok()?;
        Some(Self { name: name.to_owned(), data, info: Info { container, is_by_ffmpeg: true, ..info } })
    }

    /// What its header says.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// What error messages call it: the path, or the name given to [`from_bytes`](Self::from_bytes).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is missing of a recording that was cut off, as far as its header tells.
    pub fn incomplete(&self) -> Option<ReadAudioError> {
        let (found, n_missing) = (self.info.n_samples?, self.info.n_missing);
        let error = || ReadAudioError::Truncated { name: self.name.clone(), found, expected: found + n_missing };
        (0 < n_missing).then(error)
    }

    /// The samples of the part selected; a recording that was cut off is an error.
    ///
    /// Reading to the end verifies the count of samples and, where the format has one and all of it is read, the
    /// checksum.
    pub fn read(&self, selection: Selection) -> Result<Samples, ReadAudioError> {
        let mut blocks = self.blocks(selection)?;
        let mut values = Vec::new();
        while let Some(block) = blocks.next_block()? {
            if values.len() + block.len() > MAX_READ_SAMPLES {
                return Err(ReadAudioError::TooLong { name: self.name.clone(), max_samples: MAX_READ_SAMPLES });
            }
            values.extend_from_slice(block);
        }
        blocks.incomplete().map_or(Ok(Samples { rate_hz: self.info.rate_hz, values }), Err)
    }

    /// The same samples a block at a time, in bounded memory however long the recording is.
    ///
    /// Of a recording that was cut off come all samples that are there; see [`Blocks::incomplete`].
    pub fn blocks(&self, selection: Selection) -> Result<Blocks, ReadAudioError> {
        let name = self.name.clone();
        let span = Span::of(&name, &self.info, &selection)?;
        let (_, mut source) = open_source(&name, &self.data)?;
        let position = if span.start > 0 { source.seek(span.start)? } else { 0 };
        Ok(Blocks {
            name,
            info: self.info.clone(),
            channel: selection.channel,
            span,
            source,
            position,
            has_ended: false,
            incomplete: None,
            interleaved: Vec::new(),
            mono: Vec::new(),
        })
    }
}

/// A selection in samples.
struct Span {
    start: u64,
    end: Option<u64>,
}

impl Span {
    fn of(name: &str, info: &Info, selection: &Selection) -> Result<Self, ReadAudioError> {
        let &Selection { channel, start_s, end_s } = selection;
        channel.check(name, info.n_channels)?;
        let end_or_start_s = end_s.unwrap_or(start_s);
        let is_span = start_s >= 0.0 && start_s.is_finite() && end_or_start_s.is_finite() && end_or_start_s >= start_s;
        if !is_span {
            return Err(ReadAudioError::Span { name: name.to_owned(), start_s, end_s: end_or_start_s });
        }
        if let Some(duration_s) = info.duration_s()
            && (end_or_start_s > duration_s + MAX_OVERSHOOT_S || start_s > duration_s)
        {
            return Err(ReadAudioError::BeyondEnd { name: name.to_owned(), duration_s, end_s: end_or_start_s });
        }
        let to_samples = |seconds: f64| (seconds * f64::from(info.rate_hz)).round() as u64;
        Ok(Self { start: to_samples(start_s), end: end_s.map(to_samples) })
    }
}

/// The samples of a selection, a block at a time.
pub struct Blocks {
    name: String,
    info: Info,
    channel: Channel,
    span: Span,
    source: Box<dyn Source>,
    position: u64,
    has_ended: bool,
    /// Where the data ended too early: samples per channel found, and promised if anything says so.
    incomplete: Option<(u64, Option<u64>)>,
    interleaved: Vec<f32>,
    mono: Vec<f32>,
}

impl Blocks {
    /// The sample rate.
    pub fn rate_hz(&self) -> u32 {
        self.info.rate_hz
    }

    /// The next samples, or `None` at the end of the selection.
    pub fn next_block(&mut self) -> Result<Option<&[f32]>, ReadAudioError> {
        while !self.has_ended && self.span.end.is_none_or(|end| self.position < end) {
            self.source.next_block(&mut self.interleaved)?;
            let n_samples = self.interleaved.len() / self.info.n_channels;
            if n_samples == 0 {
                self.has_ended = true;
                self.check_end()?;
                return Ok(None);
            }
            let from = self.span.start.saturating_sub(self.position).min(n_samples as u64) as usize;
            let to = self.span.end.map_or(n_samples, |end| (end - self.position).min(n_samples as u64) as usize);
            self.mix(from, to)?;
            self.position += n_samples as u64;
            if !self.mono.is_empty() {
                return Ok(Some(&self.mono));
            }
        }
        self.has_ended = true;
        Ok(None)
    }

    /// Makes the mono signal of samples `from..to` of the block.
    fn mix(&mut self, from: usize, to: usize) -> Result<(), ReadAudioError> {
        self.mono.clear();
        let n_channels = self.info.n_channels;
        let Some(wanted) = self.interleaved.get(from * n_channels..to * n_channels) else { return Ok(()) };
        self.channel.extract(wanted, n_channels, &mut self.mono);
        match self.mono.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(index) => {
                let at_s = (self.position + (from + index) as u64) as f64 / f64::from(self.info.rate_hz);
                Err(ReadAudioError::NotFinite { name: self.name.clone(), at_s })
            }
        }
    }

    /// After the last block: what is missing of a recording that was cut off.
    ///
    /// The blocks are all that is there.
    pub fn incomplete(&self) -> Option<ReadAudioError> {
        let (found, expected) = self.incomplete?;
        let (name, container) = (self.name.clone(), self.info.container);
        Some(match expected {
            Some(expected) => ReadAudioError::Truncated { name, found, expected },
            None => ReadAudioError::CutOff { name, container, found },
        })
    }

    /// The data has ended: is that where the header, and the selection, said it would?
    fn check_end(&mut self) -> Result<(), ReadAudioError> {
        let name = || self.name.clone();
        let found = self.position;
        let expected = self.info.n_samples.map_or(0, |n_samples| n_samples.saturating_add(self.info.n_missing));
        let is_cut_off = self.source.is_cut_off();
        self.incomplete =
            if found < expected { Some((found, Some(expected))) } else { is_cut_off.then_some((found, None)) };
        if found == 0 {
            return Err(ReadAudioError::NoSamples { name: name() });
        }
        let duration_s = found as f64 / f64::from(self.info.rate_hz);
        let end = self.span.end.unwrap_or(self.span.start);
        let end_s = end as f64 / f64::from(self.info.rate_hz);
        if self.span.start > found || end_s > duration_s + MAX_OVERSHOOT_S {
            return Err(ReadAudioError::BeyondEnd { name: name(), duration_s, end_s });
        }
        Ok(())
    }
}

/// The most channels a recording can have; more is a broken header.
const MAX_CHANNELS: u64 = 64;
/// Outside of these a sample rate is a broken header: nothing below carries speech, no device goes above.
const MIN_RATE_HZ: u64 = 1_000;
const MAX_RATE_HZ: u64 = 768_000;

pub(crate) fn checked_channels(
    name: &str,
    container: Container,
    field: &'static str,
    found: u64,
) -> Result<usize, ReadAudioError> {
    let is_good = (1..=MAX_CHANNELS).contains(&found);
    let problem = || (field, found, format!("1 to {MAX_CHANNELS}"));
    if is_good { Ok(found as usize) } else { Err(value_error(name, container, problem())) }
}

pub(crate) fn checked_rate(
    name: &str,
    container: Container,
    field: &'static str,
    found: u64,
) -> Result<u32, ReadAudioError> {
    let is_good = (MIN_RATE_HZ..=MAX_RATE_HZ).contains(&found);
    let problem = || (field, found, format!("{MIN_RATE_HZ} to {MAX_RATE_HZ} Hz"));
    if is_good { Ok(found as u32) } else { Err(value_error(name, container, problem())) }
}

fn value_error(name: &str, container: Container, problem: (&'static str, u64, String)) -> ReadAudioError {
    let (field, found, expected) = problem;
    let problem = HeaderProblem::Value { field, found: found.to_string(), expected };
    ReadAudioError::Header { name: name.to_owned(), container, problem }
}

/// Of the samples per channel that the header claims, those that the file has room for, and how many are missing.
pub(crate) fn available(name: &str, n_there: u64, n_claimed: u64) -> Result<(u64, u64), ReadAudioError> {
    let n_samples = n_there.min(n_claimed);
    if n_samples == 0 {
        return Err(ReadAudioError::NoSamples { name: name.to_owned() });
    }
    Ok((n_samples, n_claimed - n_samples))
}

/// Decides by the first bytes what the data is, and opens it.
fn open_source(name: &str, data: &Data) -> Result<(Info, Box<dyn Source>), ReadAudioError> {
    let io_error = |cause| ReadAudioError::Io { name: name.to_owned(), cause };
    let mut input = data.open().map_err(io_error)?;
    let (container, n_skip) = sniff(name, &mut input)?;
    input.rewind().map_err(io_error)?;
    match container {
        Container::Wav => wav::open(name, input),
        Container::Sphere => sphere::open(name, input),
        _ => compressed::open(name, container, n_skip, input),
    }
}

/// The container, and how many bytes of tag stand before it.
fn sniff(name: &str, input: &mut Input) -> Result<(Container, u64), ReadAudioError> {
    let io_error = |cause| ReadAudioError::Io { name: name.to_owned(), cause };
    let mut n_skip = 0;
    let mut head = [0; 16];
    // Several ID3 tags may follow each other; a file of nothing else must end somewhere.
    for _ in 0..8 {
        input.seek(SeekFrom::Start(n_skip)).map_err(io_error)?;
        head = [0; 16];
        let n_read = input.fill(&mut head).map_err(io_error)?;
        if n_read == 0 && n_skip == 0 {
            return Err(ReadAudioError::Empty { name: name.to_owned() });
        }
        if &head[..3] != b"ID3" {
            break;
        }
        n_skip += id3_size(&head);
    }
    match container_of(&head) {
        Some(container) => Ok((container, n_skip)),
        None if n_skip > 0 => Ok((Container::Mp3, n_skip)),
        None => Err(ReadAudioError::unknown(name, &head)),
    }
}

/// What begins with these bytes; `None` for no container we know.
pub(crate) fn container_of(head: &[u8; 16]) -> Option<Container> {
    Some(match head {
        [b'R', b'I', b'F', b'F', ..] | [b'R', b'F', b'6', b'4', ..] if &head[8..12] == b"WAVE" => Container::Wav,
        [b'F', b'O', b'R', b'M', ..] if &head[8..11] == b"AIF" => Container::Aiff,
        [b'N', b'I', b'S', b'T', b'_', b'1', b'A', ..] => Container::Sphere,
        [b'f', b'L', b'a', b'C', ..] => Container::Flac,
        [b'O', b'g', b'g', b'S', ..] => Container::Ogg,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Container::Mp4,
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Container::Mkv,
        // Frame sync with layer 0, and a sample rate that is not reserved.
        &[0xff, b, c, ..] if b & 0xf6 == 0xf0 && c & 0x3c <= 0x30 => Container::Aac,
        // Frame sync, then a version, layer 3, a bit rate and a sample rate that are not the reserved ones.
        &[0xff, b, c, ..]
            if b & 0xe0 == 0xe0 && b & 0x18 != 0x08 && b & 0x06 == 0x02 && c & 0xf0 != 0xf0 && c & 0x0c != 0x0c =>
        {
            Container::Mp3
        }
        _ => return None,
    })
}

/// The size of an ID3v2 tag: its header, its body (four times seven bits) and its footer, if it has one.
fn id3_size(head: &[u8; 16]) -> u64 {
    let body = head[6..10].iter().fold(0, |size, &byte| size << 7 | u64::from(byte & 0x7f));
    10 + body + if head[5] & 0x10 != 0 { 10 } else { 0 }
}
