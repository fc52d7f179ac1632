//! What can be wrong with a recording: each case says which file, what was found and what was expected.

use std::io;

use crate::recording::Container;

/// Why a recording, or the part of it that was asked for, could not be read.
///
/// `name` is the path, or what the caller of [`Recording::from_bytes`](crate::Recording::from_bytes) called it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadAudioError {
    /// The file cannot be opened or read.
    #[error("could not read `{name}`: {cause}")]
    Io {
        /// The recording.
        name: String,
        /// What the system said.
        cause: io::Error,
    },
    /// There is not a single byte.
    #[error("`{name}` is empty, expected a recording")]
    Empty {
        /// The recording.
        name: String,
    },
    /// The header is fine, but nothing follows.
    #[error("`{name}` has no samples")]
    NoSamples {
        /// The recording.
        name: String,
    },
    /// The first bytes belong to no container we know.
    #[error("`{name}` begins with `{found}`, expected WAV, SPHERE, FLAC, MP3, Ogg, AIFF, MP4 or Matroska")]
    Unknown {
        /// The recording.
        name: String,
        /// Its first bytes, made printable.
        found: String,
    },
    /// The header contradicts itself or its standard.
    #[error("`{name}`: {container} header {problem}")]
    Header {
        /// The recording.
        name: String,
        /// What it was read as.
        container: Container,
        /// What is wrong.
        problem: HeaderProblem,
    },
    /// The header is fine but the way the samples are stored is not one we decode.
    #[error("`{name}`: {container} with samples stored as `{found}` is not supported")]
    Coding {
        /// The recording.
        name: String,
        /// What it was read as.
        container: Container,
        /// The coding as the header names it.
        found: String,
    },
    /// The compressed samples are damaged.
    #[error("`{name}`: {container} data is damaged after {at_s:.3} s: {problem}")]
    Damaged {
        /// The recording.
        name: String,
        /// What it was read as.
        container: Container,
        /// How far decoding got, in seconds.
        at_s: f64,
        /// What the decoder said.
        problem: String,
    },
    /// The data ends before the header's count of samples is reached.
    #[error("`{name}` ends after {found} samples, but its header claims {expected}")]
    Truncated {
        /// The recording.
        name: String,
        /// Samples a channel that are there.
        found: u64,
        /// Samples a channel that the header claims.
        expected: u64,
    },
    /// The samples do not add up to the checksum in the header.
    #[error("`{name}`: the samples have checksum {found}, but the header says {expected}")]
    Checksum {
        /// The recording.
        name: String,
        /// Of the samples as decoded.
        found: String,
        /// As the header says.
        expected: String,
    },
    /// A floating-point sample is NaN or infinite.
    #[error("`{name}`: the sample at {at_s:.3} s is not a finite number")]
    NotFinite {
        /// The recording.
        name: String,
        /// Where, in seconds.
        at_s: f64,
    },
    /// A channel was asked for that is not there.
    #[error("`{name}` has no channel {channel}, it has {n_channels} (counted from 0)")]
    NoSuchChannel {
        /// The recording.
        name: String,
        /// The channel asked for, from 0.
        channel: usize,
        /// How many there are.
        n_channels: usize,
    },
    /// The times asked for are not a span of time.
    #[error("`{name}`: the part from {start_s} s to {end_s} s is no span of time")]
    Span {
        /// The recording.
        name: String,
        /// Start asked for, in seconds.
        start_s: f64,
        /// End asked for, in seconds.
        end_s: f64,
    },
    /// The times asked for lie outside the recording.
    #[error("`{name}` is {duration_s:.3} s long, the part asked for ends at {end_s:.3} s")]
    BeyondEnd {
        /// The recording.
        name: String,
        /// Its length in seconds.
        duration_s: f64,
        /// Where the part asked for ends (or starts, when it has no end), in seconds.
        end_s: f64,
    },
    /// It is too long to be held in memory at once.
    #[error("`{name}` has more than {max_samples} samples, too many to hold at once")]
    TooLong {
        /// The recording.
        name: String,
        /// The most that is read at once.
        max_samples: usize,
    },
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
            Self::Truncated { .. } => Some("the recording was cut off, for instance by a copy that failed".to_owned()),
            Self::Unknown { name, .. } if name == "stdin" => Some(
                "samples without a header need `--raw` (16-bit, mono) or `--rate HZ`; other formats can be piped through \
                 `ffmpeg -i - -f wav -`"
                    .to_owned(),
            ),
            Self::Unknown { .. } => {
                Some("other formats can be turned into WAV first, for instance with `ffmpeg -i IN OUT.wav`".to_owned())
            }
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// The file ends inside it.
    #[error("breaks off at byte {at}")]
    BreaksOff {
        /// Where the file ends.
        at: u64,
    },
    /// A field that cannot be done without is not there.
    #[error("has no `{field}`")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field has a value that cannot be.
    #[error("has `{field}` of `{found}`, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// Anything else, in the words of the library that parses it.
    #[error("cannot be parsed: {message}")]
    Parse {
        /// Its message.
        message: String,
    },
}
