//! What can be wrong with a recording.

use std::io;

use crate::recording::Container;

/// Why a recording, or the part of it that was asked for, could not be read.
///
/// `name` is the path, or what the caller of [`Recording::from_bytes`](crate::Recording::from_bytes) called it.
///
/// ```
/// use srf_audio::{HeaderProblem, ReadAudioError, Recording};
///
/// match Recording::from_bytes("cut.wav", &b"RIFF\x24\0\0\0WAVEfmt "[..]) {
///     Err(ReadAudioError::Header { problem: HeaderProblem::BreaksOff { at }, .. }) => println!("ends at byte {at}"),
///     Err(error) => println!("{error}; {}", error.hint().unwrap_or_default()),
///     Ok(_) => unreachable!("the header is cut off"),
/// }
/// ```
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadAudioError {
    #[error("could not read `{name}`: {cause}")]
    Io { name: String, cause: io::Error },
    #[error("`{name}` is empty, expected a recording")]
    Empty { name: String },
    #[error("`{name}` has no samples")]
    NoSamples { name: String },
    #[error("`{name}` begins with `{found}`, expected WAV, SPHERE, FLAC, MP3, Ogg, AIFF, MP4 or Matroska")]
    Unknown { name: String, found: String },
    #[error("`{name}`: {container} header {problem}")]
    Header { name: String, container: Container, problem: HeaderProblem },
    #[error("`{name}`: {container} with samples stored as `{found}` is not supported")]
    Coding { name: String, container: Container, found: String },
    #[error("`{name}`: {container} data is damaged after {at_s:.3} s: {problem}")]
    Damaged { name: String, container: Container, at_s: f64, problem: String },
    #[error("`{name}` ends after {found} samples, but its header claims {expected}")]
    Truncated { name: String, found: u64, expected: u64 },
    #[error("`{name}` ends after {found} samples, before the end of its {container} data")]
    CutOff { name: String, container: Container, found: u64 },
    #[error("`{name}`: the samples have checksum {found}, but the header says {expected}")]
    Checksum { name: String, found: String, expected: String },
    #[error("`{name}`: the sample at {at_s:.3} s is not a finite number")]
    NotFinite { name: String, at_s: f64 },
    #[error("`{name}` has no channel {channel}, it has {n_channels} (counted from 0)")]
    NoSuchChannel { name: String, channel: usize, n_channels: usize },
    #[error("`{name}`: the part from {start_s} s to {end_s} s is not a valid range")]
    Span { name: String, start_s: f64, end_s: f64 },
    #[error("`{name}` is {duration_s:.3} s long, the part asked for ends at {end_s:.3} s")]
    BeyondEnd { name: String, duration_s: f64, end_s: f64 },
    #[error("`{name}` has more than {max_samples} samples, too many to hold at once")]
    TooLong { name: String, max_samples: usize },
}

impl ReadAudioError {
    /// The container, where it is one of those with many codecs and this codec is not one of ours.
    pub(crate) fn undecoded(&self) -> Option<Container> {
        match self {
            Self::Header { container: container @ (Container::Ogg | Container::Mp4 | Container::Mkv), .. } => {
                Some(*container)
            }
            _ => None,
        }
    }

    pub(crate) fn unknown(name: &str, head: &[u8; 16]) -> Self {
        Self::Unknown { name: name.to_owned(), found: head[..8].escape_ascii().to_string() }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Coding { container: Container::Sphere, found, .. } if found.contains("shortpack") => Some(
                "shortpack is the old compression of the first WSJ0 discs; decompress with NIST's `w_decode -o pcm`"
                    .to_owned(),
            ),
            Self::Truncated { .. } | Self::CutOff { .. } => Some("the recording was cut off, for instance by a copy that failed".to_owned()),
            Self::Unknown { name, .. } if name == "stdin" => Some(
                "samples without a header need `--raw` (16-bit, mono) or `--rate HZ`; other formats can be piped through \
                 `ffmpeg -i - -f wav -`"
                    .to_owned(),
            ),
            Self::Unknown { .. } => {
                Some("other formats can be turned into WAV first, for instance with `ffmpeg -i IN OUT.wav`".to_owned())
            }
            Self::Header { name, .. } if self.undecoded().is_some() && name == "stdin" => Some(
                "other codecs, such as Opus, can be piped: `... | ffmpeg -i - -f wav - | srf transcribe -`".to_owned(),
            ),
            Self::Header { name, .. } if self.undecoded().is_some() => Some(format!(
                "for other codecs, such as Opus, install `ffmpeg`, or pipe: `ffmpeg -i {} -f wav - | srf transcribe -`",
                srf_base::shell::quote(name)
            )),
            Self::BeyondEnd { .. } => Some("give times inside the recording".to_owned()),
            Self::TooLong { .. } => Some("read it in parts, by start and end".to_owned()),
            _ => None,
        }
    }
}

/// What is wrong with a header.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    #[error("breaks off at byte {at}")]
    BreaksOff { at: u64 },
    #[error("has no `{field}`")]
    Missing { field: &'static str },
    #[error("has `{field}` of `{found}`, expected {expected}")]
    Value { field: &'static str, found: String, expected: String },
    #[error("cannot be parsed: {message}")]
    Parse { message: String },
}
