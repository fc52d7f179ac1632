//! What can be wrong with a corpus: a place and a fault in, one line for a person out.

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
pub enum Fault {
    /// The system would not let us read it.
    #[error("could not be read: {0}")]
    Read(#[from] std::io::Error),
    /// A line without end.
    #[error("line is longer than {limit} bytes")]
    LineTooLong {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are no text.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// Counted from 1.
        at: usize,
    },
    /// A file larger than its kind ever is.
    #[error("{found} bytes, expected at most {limit}")]
    FileTooLarge {
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Not the JSON of a manifest.
    #[error("not a manifest entry: {reason}")]
    Json {
        /// What the parser says, with the column.
        reason: String,
    },
    /// Text in a shape that its kind does not have.
    #[error("found {found:?}, expected {expected}")]
    Shape {
        /// What stands there, shortened.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A time that is none.
    #[error("{what} from {start} to {end}, expected an end after its start, in order")]
    Times {
        /// Of what.
        what: String,
        /// As found, in the units of the file.
        start: f64,
        /// As found.
        end: f64,
    },
    /// Something a folder of this kind has.
    #[error("{what} not found")]
    Missing {
        /// What is missing, with its name.
        what: String,
    },
    /// A recording that cannot be read.
    #[error(transparent)]
    Audio(Box<srf_audio::ReadAudioError>),
    /// The recording of a listed utterance that cannot be read.
    #[error("utterance `{id}`: {reason}")]
    AudioOf {
        /// The utterance.
        id: String,
        /// Why not.
        reason: String,
    },
    /// No length, where one is needed.
    #[error("utterance `{id}` has no duration, its audio is {found_s} s")]
    NoDuration {
        /// The utterance.
        id: String,
        /// The length of its recording.
        found_s: f64,
    },
    /// Two utterances of one name.
    #[error("id `{id}` was already used by {first}")]
    DuplicateId {
        /// The name.
        id: String,
        /// Where it stands first.
        first: String,
    },
    /// Nothing to learn.
    #[error("utterance `{id}` has no text")]
    EmptyText {
        /// The utterance.
        id: String,
    },
    /// No phones, where phones are to be learnt.
    #[error("utterance `{id}` has no phones")]
    NoPhones {
        /// The utterance.
        id: String,
    },
    /// A label that the model could not write.
    #[error("utterance `{id}`: label {position} is `{label}`, which is not in the label set")]
    ForeignLabel {
        /// The utterance.
        id: String,
        /// Counted from 1.
        position: usize,
        /// The label.
        label: String,
    },
    /// More labels than output frames.
    #[error("utterance `{id}`: {n_labels} labels need {n_needed} output frames, its {duration_s} s give {n_frames}")]
    TooManyLabels {
        /// The utterance.
        id: String,
        /// How many labels it has.
        n_labels: usize,
        /// How many frames CTC needs for them.
        n_needed: usize,
        /// How many there are.
        n_frames: usize,
        /// Its length.
        duration_s: f64,
    },
    /// A length that is not that of the recording.
    #[error("utterance `{id}` is said to be {said_s} s long, its audio is {found_s} s")]
    Length {
        /// The utterance.
        id: String,
        /// In the manifest.
        said_s: f64,
        /// In the recording.
        found_s: f64,
    },
    /// An utterance beyond the end of its recording.
    #[error("utterance `{id}` ends at {end_s} s, its audio is {found_s} s long")]
    BeyondEnd {
        /// The utterance.
        id: String,
        /// Where it ends.
        end_s: f64,
        /// The length of the recording.
        found_s: f64,
    },
    /// A name that JSON cannot hold.
    #[error("the name of the file is not UTF-8")]
    NameNotUtf8,
    /// A command where a file was expected.
    #[error("`{command}` is a command, which is not run")]
    Command {
        /// The command.
        command: String,
    },
    /// A command that was allowed to run and failed.
    #[error("`{command}` failed: {reason}")]
    CommandFailed {
        /// The command.
        command: String,
        /// How.
        reason: String,
    },
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
