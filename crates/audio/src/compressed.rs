//! FLAC, MP3, Ogg, AIFF, MP4 and Matroska, decoded by symphonia.
//!
//! Its arithmetic on damaged files can overflow, which panics in a debug build; such a panic ends the recording, not
//! the program.

use std::io::{self, Seek as _, SeekFrom};

use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::{Error, SeekErrorKind};
use symphonia::core::formats::{FormatOptions, FormatReader, SeekMode, SeekTo, Track, TrackType};
use symphonia::core::io::{MediaSourceStream, ReadBytes as _};
use symphonia::core::units::Timestamp;
use symphonia::default::formats::{AdtsReader, AiffReader, FlacReader, IsoMp4Reader, MkvReader, MpaReader, OggReader};

use crate::error::{HeaderProblem, ReadAudioError};
use crate::input::Input;
use crate::recording::{Container, Encoding, Info, Source, checked_channels, checked_rate};

/// MP3 remembers the past: it is started this much before the sample asked for, so that what comes out there does
/// not depend on where decoding began.
const WARM_UP_S: u64 = 1;

/// A page of Ogg is never longer.
const MAX_PAGE_BYTES: u64 = 27 + 255 + 255 * 255;

/// Runs a step of symphonia; a panic inside becomes an error.
fn guarded<T>(step: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Whatever state the panic leaves behind is not used again: every error ends the reading.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(step));
    result.unwrap_or(Err(Error::DecodeError("the decoder gave up")))
}

/// Opens what [`sniff`](crate::recording) found to be `container`, after `n_skip` bytes of tags.
pub(crate) fn open(
    name: &str,
    container: Container,
    n_skip: u64,
    mut input: Input,
) -> Result<(Info, Box<dyn Source>), ReadAudioError> {
    let header = |error| header_error(name, container, error);
    // Ogg has no count of samples: a file that was cut off looks like a shorter one.
    let is_cut_off = container == Container::Ogg
        && !has_last_page(&mut input).map_err(|cause| ReadAudioError::Io { name: name.to_owned(), cause })?;
    let reader = guarded(|| open_reader(container, n_skip, input)).map_err(header)?;
    let track = reader.default_track(TrackType::Audio).ok_or(Error::Unsupported("no audio track")).map_err(header)?;
    let parameters = track.codec_params.as_ref().and_then(|p| p.audio());
    let parameters = parameters.ok_or(Error::Unsupported("no codec")).map_err(header)?;

    let rate_hz = u64::from(parameters.sample_rate.unwrap_or(0));
    let n_channels = parameters.channels.as_ref().map_or(0, |channels| channels.count() as u64);
    let info = Info {
        container,
        encoding: parameters.bits_per_sample.map_or(Encoding::Codec, |n_bits| Encoding::Pcm { n_bits }),
        rate_hz: checked_rate(name, container, "sample rate", rate_hz)?,
        n_channels: checked_channels(name, container, "channel count", n_channels)?,
        n_samples: exact_length(container, track),
        n_missing: 0,
        is_by_ffmpeg: false,
    };

    let options = AudioDecoderOptions::default().gapless(info.n_samples.is_some()).verify(true);
    let make_decoder = || symphonia::default::get_codecs().make_audio_decoder(parameters, &options);
    let decoder = guarded(make_decoder).map_err(header)?;
    let (name, track_id) = (name.to_owned(), track.id);
    let source = CompressedSource {
        name,
        info: info.clone(),
        reader,
        decoder,
        track_id,
        position: 0,
        is_whole: true,
        is_cut_off,
    };
    Ok((info, Box::new(source)))
}

/// Whether Ogg data ends with a complete page that is marked as the last one of its stream.
fn has_last_page(input: &mut Input) -> io::Result<bool> {
    input.seek(SeekFrom::Start(input.n_bytes().saturating_sub(MAX_PAGE_BYTES)))?;
    let mut tail = vec![0; MAX_PAGE_BYTES as usize];
    let n_read = input.fill(&mut tail)?;
    input.rewind()?;
    let tail = &tail[..n_read];
    let starts = tail.windows(4).enumerate().filter(|(_, window)| **window == *b"OggS").map(|(at, _)| at);
    Ok(starts.rev().any(|at| is_last_page(&tail[at..])))
}

/// Whether these bytes are a page, with nothing after it, that ends its stream.
fn is_last_page(bytes: &[u8]) -> bool {
    const END_OF_STREAM: u8 = 4;
    let Some((head, body)) = bytes.split_at_checked(27) else { return false };
    let n_segments = usize::from(head[26]);
    let Some((lengths, body)) = body.split_at_checked(n_segments) else { return false };
    let n_bytes: usize = lengths.iter().map(|length| usize::from(*length)).sum();
    head[5] & END_OF_STREAM != 0 && body.len() == n_bytes
}

fn open_reader(container: Container, n_skip: u64, input: Input) -> Result<Box<dyn FormatReader>, Error> {
    let mut stream = MediaSourceStream::new(Box::new(input), symphonia::core::io::MediaSourceStreamOptions::default());
    stream.ignore_bytes(n_skip)?;
    let options = FormatOptions::default();
    Ok(match container {
        Container::Flac => Box::new(FlacReader::try_new(stream, options)?),
        Container::Mp3 => Box::new(MpaReader::try_new(stream, options)?),
        Container::Ogg => Box::new(OggReader::try_new(stream, options)?),
        Container::Aiff => Box::new(AiffReader::try_new(stream, options)?),
        Container::Mp4 => Box::new(IsoMp4Reader::try_new(stream, options)?),
        Container::Mkv => Box::new(MkvReader::try_new(stream, options)?),
        Container::Aac => Box::new(AdtsReader::try_new(stream, options)?),
        Container::Wav | Container::Sphere => unreachable!("these have readers of their own"),
    })
}

/// Samples per channel, unless it is only an estimate.
///
/// An MP3 says its length in the tag that also holds the encoder's delay; without it symphonia guesses from the bit
/// rate, and a guess may neither trim the end nor be held against the file.
fn exact_length(container: Container, track: &Track) -> Option<u64> {
    match container {
        Container::Mp3 if track.delay.is_none() => None,
        // The tables of these count packets or milliseconds, not samples.
        Container::Mp4 | Container::Mkv | Container::Aac => None,
        _ => track.num_frames,
    }
}

fn header_error(name: &str, container: Container, error: Error) -> ReadAudioError {
    let name = name.to_owned();
    let problem = match error {
        Error::IoError(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            HeaderProblem::Parse { message: "the file ends inside it".to_owned() }
        }
        Error::IoError(cause) => return ReadAudioError::Io { name, cause },
        other => HeaderProblem::Parse { message: other.to_string() },
    };
    ReadAudioError::Header { name, container, problem }
}

struct CompressedSource {
    name: String,
    info: Info,
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track_id: u32,
    /// Samples per channel decoded so far.
    position: u64,
    /// Whether decoding began at the start, so that the checksum covers everything.
    is_whole: bool,
    /// Whether the data ends before its end is marked.
    is_cut_off: bool,
}

impl CompressedSource {
    fn error(&self, error: Error) -> ReadAudioError {
        let name = self.name.clone();
        match error {
            Error::IoError(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => ReadAudioError::Io { name, cause },
            other => self.damaged(other.to_string()),
        }
    }

    fn damaged(&self, problem: String) -> ReadAudioError {
        let at_s = self.position as f64 / f64::from(self.info.rate_hz);
        ReadAudioError::Damaged { name: self.name.clone(), container: self.info.container, at_s, problem }
    }

    /// At the end of the data: FLAC carries the MD5 of its samples.
    fn verify(&mut self) -> Result<(), ReadAudioError> {
        let is_complete = self.info.n_samples.is_none_or(|n| n == self.position);
        if self.is_whole && is_complete && self.decoder.finalize().verify_ok == Some(false) {
            let (found, expected) = ("another".to_owned(), "its MD5".to_owned());
            return Err(ReadAudioError::Checksum { name: self.name.clone(), found, expected });
        }
        Ok(())
    }
}

impl Source for CompressedSource {
    fn next_block(&mut self, block: &mut Vec<f32>) -> Result<(), ReadAudioError> {
        block.clear();
        while block.is_empty() {
            let packet = match guarded(|| self.reader.next_packet()) {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.verify(),
                // The file was cut off; the count of samples, if there is one, says how much is missing.
                Err(Error::IoError(e)) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    self.is_cut_off = true;
                    return Ok(());
                }
                Err(error) => return Err(self.error(error)),
            };
            if packet.track_id != self.track_id {
                continue;
            }
            let Info { n_channels, rate_hz, .. } = self.info;
            let decode = || {
                let decoded = self.decoder.decode(&packet)?;
                if decoded.num_planes() != n_channels || decoded.spec().rate() != rate_hz {
                    return Err(Error::DecodeError("the channels or the rate change"));
                }
                decoded.copy_to_vec_interleaved::<f32>(block);
                Ok(())
            };
            guarded(decode).map_err(|error| self.error(error))?;
        }
        self.position += (block.len() / self.info.n_channels) as u64;
        Ok(())
    }

    fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    fn seek(&mut self, position: u64) -> Result<u64, ReadAudioError> {
        let target = position.saturating_sub(WARM_UP_S * u64::from(self.info.rate_hz));
        // Only from the start is every position certain: a page of Ogg says where it ends, not where it starts, and the
        // times of the others are not counted in samples.
        if target == 0
            || matches!(self.info.container, Container::Ogg | Container::Mp4 | Container::Mkv | Container::Aac)
        {
            return Ok(self.position);
        }
        let ts = Timestamp::new(i64::try_from(target).unwrap_or(i64::MAX));
        let to = SeekTo::Timestamp { ts, track_id: self.track_id };
        match guarded(|| self.reader.seek(SeekMode::Accurate, to)) {
            Ok(seeked) => {
                self.decoder.reset();
                self.is_whole = false;
                self.position = u64::try_from(seeked.actual_ts.get()).unwrap_or(0);
                Ok(self.position)
            }
            Err(Error::SeekError(SeekErrorKind::OutOfRange)) => {
                let duration_s = self.info.duration_s().unwrap_or(f64::NAN);
                let end_s = position as f64 / f64::from(self.info.rate_hz);
                Err(ReadAudioError::BeyondEnd { name: self.name.clone(), duration_s, end_s })
            }
            Err(error) => Err(self.error(error)),
        }
    }
}
