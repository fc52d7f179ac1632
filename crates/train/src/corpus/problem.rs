//! What can be wrong with a corpus, each problem as one line with its file and line number.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fault and where it is. Problems are collected; none of them stops a reader.
#[derive(Debug)]
pub struct Problem {
    /// The file (or folder).
    pub path: PathBuf,
    /// The line, counted from 1, in files that have lines.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            // What is wrong with a recording names it.
            None if matches!(self.fault, Fault::Audio(_)) => self.fault.fmt(f),
            Some(line) => write!(f, "{path}:{line}: {}", self.fault),
            None => write!(f, "{path}: {}", self.fault),
        }
    }
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum Fault {
    #[error("could not be read: {0}")]
    Read(#[from] std::io::Error),
    #[error("line is longer than {limit} bytes")]
    LineTooLong { limit: usize },
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 { at: usize },
    #[error("{found} bytes, expected at most {limit}")]
    FileTooLarge { found: u64, limit: u64 },
    #[error("not a manifest entry: {reason}")]
    Json { reason: String },
    #[error("found {found:?}, expected {expected}")]
    Shape { found: String, expected: &'static str },
    #[error("{what} from {start} to {end}, expected an end after its start, in order")]
    Times { what: String, start: f64, end: f64 },
    #[error("{what} not found")]
    Missing { what: String },
    #[error(transparent)]
    Audio(Box<srf_audio::ReadAudioError>),
    #[error("utterance `{id}`: {reason}")]
    AudioOf { id: String, reason: String },
    #[error("utterance `{id}` has no duration, but its audio is {found_s} s long")]
    NoDuration { id: String, found_s: f64 },
    #[error("id `{id}` was already used by {first}")]
    DuplicateId { id: String, first: String },
    #[error("utterance `{id}` has no text")]
    EmptyText { id: String },
    #[error("utterance `{id}` has no phones (`--lexicon cmudict` makes them of words)")]
    NoPhones { id: String },
    #[error("utterance `{id}`: `{word}` cannot be pronounced")]
    Unpronounceable { id: String, word: String },
    #[error("utterance `{id}`: label {position} is `{label}`, which is not in the label set")]
    ForeignLabel { id: String, position: usize, label: String },
    #[error("utterance `{id}`: {n_labels} labels need {n_needed} output frames, its {duration_s} s give {n_frames}")]
    TooManyLabels { id: String, n_labels: usize, n_needed: usize, n_frames: usize, duration_s: f64 },
    #[error("utterance `{id}` is listed as {said_s} s long, but its audio is {found_s} s long")]
    Length { id: String, said_s: f64, found_s: f64 },
    #[error("utterance `{id}` ends at {end_s} s, but its audio is {found_s} s long")]
    BeyondEnd { id: String, end_s: f64, found_s: f64 },
    #[error("the name of the file is not UTF-8")]
    NameNotUtf8,
    #[error("`{command}` is a command, which only `srf prepare kaldi --allow-commands` runs")]
    Command { command: String },
    #[error("`{command}` failed: {reason}")]
    CommandFailed { command: String, reason: String },
}

impl From<srf_audio::ReadAudioError> for Fault {
    fn from(error: srf_audio::ReadAudioError) -> Self {
        Fault::Audio(Box::new(error))
    }
}

impl Fault {
    /// A piece of text in the wrong shape, shortened to a readable length.
    pub(crate) fn shape(found: &str, expected: &'static str) -> Self {
        let mut shown: String = found.chars().take(60).collect();
        if shown.len() < found.len() {
            shown.push('…');
        }
        Fault::Shape { found: shown, expected }
    }
}

/// The problems of one job so far.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, path: &Path, line: Option<usize>, fault: impl Into<Fault>) {
        self.0.push(Problem { path: path.to_owned(), line, fault: fault.into() });
    }
}
