//! Which utterance of the hypothesis belongs to which of the reference: two files in, a scored system out.
//!
//! One way for each pair of formats: `trn` by utterance ids, `ctm` against `stm` by segments of time,
//! `ctm` against `ctm` by stretches of time that both sides leave free.

pub mod by_id;
pub mod by_segment;
pub mod by_time;

use std::path::PathBuf;

use super::align::Cost;
use super::network::Reading;
use super::read::ReadTranscriptError;

/// What is compared, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How words are prepared.
    pub reading: Reading,
    /// Whether capitals matter.
    pub is_case_sensitive: bool,
    /// What a pair of words costs.
    pub cost: Cost,
    /// Segments without any recognised word at either end are left out.
    pub reduces_reference: bool,
    /// Words outside of the segments are left out.
    pub reduces_hypothesis: bool,
    /// Where the speaker stands in an utterance id.
    pub speaker_id: SpeakerId,
}

/// Where the speaker stands in an utterance id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeakerId {
    /// The first three characters.
    #[default]
    FirstThree,
    /// What comes before the first `-`, or else before the first `_`.
    BeforeSeparator,
    /// The whole of it.
    Whole,
}

/// Why two files could not be scored against each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum PairError {
    #[error(transparent)]
    Read(#[from] ReadTranscriptError),
    #[error("{}:{line}: utterance `{id}` is not in the reference `{}`", path.display(), reference.display())]
    NoReference { path: PathBuf, line: usize, id: String, reference: PathBuf },
    #[error("{}:{line}: utterance `{id}` has another text than on line {first_line}", path.display())]
    TwoReferences { path: PathBuf, line: usize, id: String, first_line: usize },
    #[error("{}:{line}: words of file `{file}` channel `{channel}`, which the reference does not have", path.display())]
    MoreHypothesis { path: PathBuf, line: usize, file: String, channel: String },
    #[error("`{}` ends before file `{file}` of `{}`", path.display(), other.display())]
    EndsEarly { path: PathBuf, file: String, other: PathBuf },
    #[error(
        "{}:{line}: found file `{found}`, expected `{expected}` as in `{}`",
        path.display(),
        other.display()
    )]
    OtherFile { path: PathBuf, line: usize, found: String, expected: String, other: PathBuf },
    #[error("`{}` has one channel of file `{file}`, but `{}` has two", path.display(), other.display())]
    NoSecondChannel { path: PathBuf, file: String, other: PathBuf },
}

impl PairError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
            Self::NoReference { .. } => {
                Some("both files must be of the same test; ids are compared in lower case".into())
            }
            Self::OtherFile { .. } | Self::MoreHypothesis { .. } => {
                Some("sort both files by file, channel and time".into())
            }
            _ => None,
        }
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
