//! Audio that arrives through a pipe.
//!
//! WAV and raw samples are decoded while they arrive; other recordings are read to their end first.

use std::io::{self, Cursor, Read};

use crate::error::ReadAudioError;
use crate::input::Input;
use crate::pcm::Layout;
use crate::recording::{Blocks, Channel, Container, Recording, Selection, container_of};
use crate::wav;

/// Recordings that cannot be decoded while they arrive must fit into memory.
const MAX_GATHERED_BYTES: u64 = 1 << 30;

/// Bytes read at once: 64 ms of 16-bit mono at 16 kHz.
const BLOCK_BYTES: usize = 2048;

/// Samples without a header: 16 bits, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFormat {
    /// The sample rate.
    pub rate_hz: u32,
    /// Interleaved channels, at least 1.
    pub n_channels: usize,
}

/// A recording or raw samples from a pipe, as mono samples from -1 to 1.
///
/// ```
/// use srf_audio::{Channel, Pipe, RawFormat};
///
/// let bytes: &[u8] = &[0, 0, 0, 0x40];
/// let raw = RawFormat { rate_hz: 16_000, n_channels: 1 };
/// let mut pipe = Pipe::open("stdin", Box::new(bytes), Some(raw), Channel::Mix)?;
/// assert_eq!(pipe.next_block()?, Some([0.0, 0.5].as_slice()));
/// assert_eq!(pipe.next_block()?, None);
/// assert!(pipe.incomplete().is_none(), "nothing was cut off");
/// # Ok::<(), srf_audio::ReadAudioError>(())
/// ```
pub struct Pipe {
    source: PipeSource,
    n_channels: usize,
    rate_hz: u32,
}

enum PipeSource {
    Pcm(Box<Pcm>),
    Recording(Box<Blocks>),
}

impl Pipe {
    /// Looks at the first bytes to decide what it is, unless `raw` says that it has no header.
    pub fn open(
        name: &str,
        reader: Box<dyn Read + Send + Sync>,
        raw: Option<RawFormat>,
        channel: Channel,
    ) -> Result<Self, ReadAudioError> {
        let io_error = |cause| ReadAudioError::Io { name: name.to_owned(), cause };
        let mut input = Input::pipe(reader);
        // Raw samples need no look at their beginning, except to see that there are any.
        let mut head = [0; 16];
        let n_wanted = if raw.is_some() { 1 } else { head.len() };
        let n_read = input.fill(&mut head[..n_wanted]).map_err(io_error)?;
        if n_read == 0 {
            return Err(ReadAudioError::Empty { name: name.to_owned() });
        }
        if let Some(RawFormat { rate_hz, n_channels }) = raw {
            let input = Input::pipe(Box::new(Cursor::new([head[0]]).chain(input)));
            let layout = Layout::S16 { is_big_endian: false };
            return Ok(Self::pcm(Pcm::new(name, input, layout, (n_channels, rate_hz), channel, None)?));
        }
        let container = container_of(&head);
        if container.is_none() && !head.starts_with(b"ID3") {
            return Err(ReadAudioError::unknown(name, &head));
        }
        let all = Cursor::new(head[..n_read].to_vec()).chain(input);
        if container == Some(Container::Wav) {
            let mut input = Input::pipe(Box::new(all));
            let wav::Header { layout, rate_hz, n_channels, n_samples, .. } = wav::Header::read(name, &mut input)?;
            return Ok(Self::pcm(Pcm::new(name, input, layout, (n_channels, rate_hz), channel, Some(n_samples))?));
        }
        let mut bytes = Vec::new();
        all.take(MAX_GATHERED_BYTES + 1).read_to_end(&mut bytes).map_err(io_error)?;
        if MAX_GATHERED_BYTES < bytes.len() as u64 {
            let message = format!("more than {MAX_GATHERED_BYTES} bytes of a format that needs all of them at once");
            return Err(io_error(io::Error::new(io::ErrorKind::FileTooLarge, message)));
        }
        let recording = Recording::from_bytes(name, bytes)?;
        let blocks = recording.blocks(Selection { channel, ..Selection::default() })?;
        let (n_channels, rate_hz) = (recording.info().n_channels, recording.info().rate_hz);
        Ok(Self { source: PipeSource::Recording(Box::new(blocks)), n_channels, rate_hz })
    }

    fn pcm(pcm: Pcm) -> Self {
        Self { n_channels: pcm.n_channels, rate_hz: pcm.rate_hz, source: PipeSource::Pcm(Box::new(pcm)) }
    }

    /// The sample rate.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Channels of the recording, before one is chosen or all are mixed.
    pub fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// The next samples as soon as there are any; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<&[f32]>, ReadAudioError> {
        match &mut self.source {
            PipeSource::Pcm(pcm) => pcm.next_block(),
            PipeSource::Recording(blocks) => blocks.next_block(),
        }
    }

    /// After the last block: what is missing if the pipe was cut off.
    pub fn incomplete(&self) -> Option<ReadAudioError> {
        match &self.source {
            PipeSource::Pcm(pcm) => pcm.incomplete(),
            PipeSource::Recording(blocks) => blocks.incomplete(),
        }
    }
}

/// Uncompressed samples while they arrive.
struct Pcm {
    name: String,
    input: Input,
    layout: Layout,
    rate_hz: u32,
    n_channels: usize,
    channel: Channel,
    /// Samples per channel that the header promises, as far as it knows.
    n_promised: Option<u64>,
    n_read: u64,
    bytes: Vec<u8>,
    /// Bytes of `bytes` that do not make up a sample of every channel yet.
    n_rest: usize,
    interleaved: Vec<f32>,
    mono: Vec<f32>,
}

impl Pcm {
    fn new(
        name: &str,
        input: Input,
        layout: Layout,
        (n_channels, rate_hz): (usize, u32),
        channel: Channel,
        n_samples: Option<u64>,
    ) -> Result<Self, ReadAudioError> {
        let n_channels = n_channels.max(1);
        channel.check(name, n_channels)?;
        let sample_bytes = layout.n_bytes() * n_channels;
        // Without a size in the header the samples end where the pipe does.
        let n_promised = n_samples.filter(|n_samples| *n_samples < u64::from(u32::MAX));
        let bytes = vec![0; BLOCK_BYTES.next_multiple_of(sample_bytes)];
        let (interleaved, mono) = (Vec::new(), Vec::new());
        let name = name.to_owned();
        Ok(Self {
            name,
            input,
            layout,
            rate_hz,
            n_channels,
            channel,
            n_promised,
            n_read: 0,
            bytes,
            n_rest: 0,
            interleaved,
            mono,
        })
    }

    fn next_block(&mut self) -> Result<Option<&[f32]>, ReadAudioError> {
        let sample_bytes = self.layout.n_bytes() * self.n_channels;
        let n_left = self.n_promised.map_or(u64::MAX, |n| (n - self.n_read).saturating_mul(sample_bytes as u64));
        let n_wanted = n_left.min(self.bytes.len() as u64) as usize;
        while self.n_rest < n_wanted {
            match self.input.read(&mut self.bytes[self.n_rest..n_wanted]) {
                Ok(0) => return Ok(None),
                Ok(n_read) => self.n_rest += n_read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(ReadAudioError::Io { name: self.name.clone(), cause }),
            }
            let n_whole = self.n_rest / sample_bytes * sample_bytes;
            if n_whole > 0 {
                return self.decode(n_whole).map(Some);
            }
        }
        Ok(None)
    }

    fn decode(&mut self, n_bytes: usize) -> Result<&[f32], ReadAudioError> {
        self.interleaved.clear();
        self.mono.clear();
        self.layout.decode(&self.bytes[..n_bytes], &mut self.interleaved);
        self.channel.extract(&self.interleaved, self.n_channels, &mut self.mono);
        self.bytes.copy_within(n_bytes..self.n_rest, 0);
        self.n_rest -= n_bytes;
        if let Some(index) = self.mono.iter().position(|value| !value.is_finite()) {
            let at_s = (self.n_read + index as u64) as f64 / f64::from(self.rate_hz);
            return Err(ReadAudioError::NotFinite { name: self.name.clone(), at_s });
        }
        self.n_read += (self.interleaved.len() / self.n_channels) as u64;
        Ok(&self.mono)
    }

    fn incomplete(&self) -> Option<ReadAudioError> {
        let expected = self.n_promised.filter(|n_promised| self.n_read < *n_promised)?;
        Some(ReadAudioError::Truncated { name: self.name.clone(), found: self.n_read, expected })
    }
}
