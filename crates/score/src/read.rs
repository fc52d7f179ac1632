//! Transcript files as lines: a path in, its bytes and its errors with file and line out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::align::TooLongError;
use super::encoding::Encoding;
use super::network::ReadAlternativesError;

/// Why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ReadTranscriptError {
    #[error("could not read `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{}:{line}: bytes that are not UTF-8", path.display())]
    NotUtf8 { path: PathBuf, line: usize },
    #[error("{}:{line}: no utterance id in brackets at the end of the line", path.display())]
    NoId { path: PathBuf, line: usize },
    #[error("{}:{line}: utterance `{id}` was already on line {first_line}", path.display())]
    DuplicateId { path: PathBuf, line: usize, id: String, first_line: usize },
    #[error("{}:{line}: found {found} fields, expected at least {expected} ({fields})", path.display())]
    TooFewFields { path: PathBuf, line: usize, found: usize, expected: usize, fields: &'static str },
    #[error("{}:{line}: {what} is `{found}`, expected a number of seconds", path.display())]
    NotANumber { path: PathBuf, line: usize, what: &'static str, found: String },
    #[error("{}:{line}: begins at {start_s} s, but the line before it begins at {previous_s} s", path.display())]
    OutOfOrder { path: PathBuf, line: usize, start_s: f64, previous_s: f64 },
    #[error("{}:{line}: ends at {end_s} s, before it begins at {start_s} s", path.display())]
    EndBeforeStart { path: PathBuf, line: usize, start_s: f64, end_s: f64 },
    #[error("{}:{line}: {source}", path.display())]
    Alternatives { path: PathBuf, line: usize, source: ReadAlternativesError },
    #[error("{}:{line}: {source}", path.display())]
    TooLong { path: PathBuf, line: usize, source: TooLongError },
    #[error("{}:{line}: speaker cannot be read from id `{id}`, expected `-` or `_` in it", path.display())]
    NoSpeaker { path: PathBuf, line: usize, id: String },
    #[error("`{}` has no utterances", path.display())]
    Empty { path: PathBuf },
}

impl ReadTranscriptError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotUtf8 { .. } => Some("convert the file to UTF-8, or score it with `srf sclite -e ascii`".into()),
            Self::NoId { .. } => Some("a trn line is `words of the utterance (speaker_utterance)`".into()),
            Self::Alternatives { .. } => Some("alternatives are written `{ one / other / @ }`".into()),
            Self::NoSpeaker { .. } => Some("`-i wsj` takes the first three letters of the id instead".into()),
            _ => None,
        }
    }
}

/// A file and the bytes in it.
pub struct Source {
    /// Where it was read from, for messages.
    pub path: PathBuf,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// A line that is not a comment.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a [u8],
    /// Whether the file goes on after it; NIST's scorer overlooks a last line without its end.
    pub(crate) is_terminated: bool,
}

impl Source {
    /// Reads the whole of a file.
    pub fn load(path: &Path) -> Result<Self, ReadTranscriptError> {
        let bytes = fs::read(path).map_err(|source| ReadTranscriptError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Checks that all of it is in `encoding`.
    pub fn check(&self, encoding: Encoding) -> Result<(), ReadTranscriptError> {
        if !matches!(encoding, Encoding::Utf8(_)) {
            return Ok(());
        }
        std::str::from_utf8(&self.bytes).map(|_| ()).map_err(|error| {
            let line = self.bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
            ReadTranscriptError::NotUtf8 { path: self.path.clone(), line }
        })
    }

    /// Every line, comments included.
    pub(crate) fn all_lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.bytes.split_inclusive(|b| *b == b'\n').enumerate().map(|(index, text)| {
            let is_terminated = text.last() == Some(&b'\n');
            Line { number: index + 1, text: text.strip_suffix(b"\n").unwrap_or(text), is_terminated }
        })
    }

    /// The lines that are neither empty nor comments (`;;` and `**`).
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.all_lines().filter(|line| {
            !line.text.starts_with(b";;") && !line.text.starts_with(b"**") && !line.text.trim_ascii().is_empty()
        })
    }
}
