//! Pairs the utterances of a reference and a hypothesis and aligns them.
//!
//! One way for each pair of formats: `trn` by utterance ids, `ctm` against `stm` by segments of time, `ctm` against
//! `ctm` by stretches of time between which both sides are silent.
//!
//! ```
//! use srf_score::formats::{Source, TrnOptions, parse_trn};
//! use srf_score::pairing::{
//!     ChannelProgress, PairError, PairOptions, SegmentProgress, SegmentScores, SpeakerId, TimeScores, score_by_id,
//!     score_by_segment, score_by_time, score_utterances,
//! };
//! use srf_score::{Cost, Heading};
//!
//! let source = |text: &str| Source { path: "file".into(), bytes: text.into() };
//! let heading = || Heading { title: "mine".into(), ..Heading::default() };
//! let options = PairOptions { speaker_id: SpeakerId::BeforeSeparator, ..PairOptions::default() };
//!
//! let (reference, hypothesis) = (source("a cat (ann-1)\n"), source("cat (ann-1)\n"));
//! let system = score_by_id(&reference, &hypothesis, heading(), &options, &mut 0)?;
//! assert_eq!(system.counts().deletions, 1);
//! let [references, hypotheses] = [&reference, &hypothesis].map(|trn| parse_trn(trn, TrnOptions::default()));
//! let same = score_utterances((&reference, &references?), (&hypothesis, &hypotheses?), heading(), &options, &mut 0)?;
//! assert_eq!(same.counts(), system.counts());
//! let other = source("dog (bob-1)\n");
//! let error = score_by_id(&reference, &other, heading(), &options, &mut 0).err();
//! assert!(matches!(error, Some(PairError::NoReference { .. })));
//!
//! let stm = source("talk A ann 0.0 2.0 a cat\n");
//! let ctm = source("talk A 0.2 0.1 a\ntalk A 0.5 0.4 cat\n");
//! let SegmentScores { system, channels, .. } = score_by_segment(&stm, &ctm, heading(), &options, &mut 0)?;
//! assert_eq!(system.counts().n_errors(), 0);
//! for ChannelProgress { file, segments } in &channels {
//!     let lines: Vec<&str> = segments.iter().map(|SegmentProgress { progress, .. }| progress.as_str()).collect();
//!     println!("{file}: {lines:?}");
//! }
//! let options = PairOptions { cost: Cost::Times, ..options };
//! let TimeScores { system, .. } = score_by_time(&ctm, &ctm, heading(), &options, &mut 0)?;
//! assert_eq!(system.counts().correct, 2);
//! # Ok::<(), PairError>(())
//! ```

mod by_segment;
mod by_time;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use rayon::prelude::*;

pub use by_segment::{ChannelProgress, SegmentProgress, SegmentScores, score_by_segment};
pub use by_time::{TimeScores, score_by_time};

use crate::align::{Alignment, Cost, align};
use crate::formats::{ReadTranscriptError, Source, TrnOptions, TrnUtterance, check_unique, id_name, parse_trn};
use crate::network::{Network, Reading};
use crate::system::{Heading, ScoredUtterance, System, Traits};
use crate::word::Text;

/// What is compared, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairOptions {
    /// How words are prepared.
    pub reading: Reading,
    /// Whether capitals matter.
    pub is_case_sensitive: bool,
    /// What the cost of a pair of words depends on.
    pub cost: Cost,
    /// Leaves out segments before the first and after the last recognised word.
    pub reduces_reference: bool,
    /// Leaves out words outside of the segments.
    pub reduces_hypothesis: bool,
    /// Which part of an utterance id names the speaker.
    pub speaker_id: SpeakerId,
}

/// Which part of an utterance id names the speaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeakerId {
    /// The first three characters.
    #[default]
    FirstThree,
    /// The part before the first `-`, or else before the first `_`.
    BeforeSeparator,
    /// All of it.
    All,
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
    #[error("{}:{line}: found file `{found}`, expected `{expected}` as in `{}`", path.display(), other.display())]
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

/// Scores every utterance of the `trn` file `hypothesis`; utterances that only the reference has are not looked at.
pub fn score_by_id(
    reference: &Source,
    hypothesis: &Source,
    heading: Heading,
    options: &PairOptions,
    sequence: &mut usize,
) -> Result<System, PairError> {
    let (encoding, is_case_sensitive) = (options.reading.encoding, options.is_case_sensitive);
    let trn = TrnOptions { encoding, is_case_sensitive, drops_unfinished_line: true };
    let (hypotheses, references) = (parse_trn(hypothesis, trn)?, parse_trn(reference, trn)?);
    score_utterances((reference, &references), (hypothesis, &hypotheses), heading, options, sequence)
}

/// Like [`score_by_id`], with utterances that were already read.
pub fn score_utterances(
    (reference, references): (&Source, &[TrnUtterance]),
    (hypothesis, hypotheses): (&Source, &[TrnUtterance]),
    heading: Heading,
    options: &PairOptions,
    sequence: &mut usize,
) -> Result<System, PairError> {
    check_unique(hypothesis, hypotheses)?;
    let references = find_references(reference, references, hypothesis, hypotheses)?;
    let mut system = System::new(heading);
    system.labels.add(hypothesis);
    system.labels.add(reference);
    let score = |(h, r): (&TrnUtterance, &&TrnUtterance)| {
        let speaker = speaker(hypothesis, h, options.speaker_id)?;
        Ok((speaker, align_texts((reference, r), (hypothesis, h), options)?))
    };
    let scored: Vec<_> = hypotheses.par_iter().zip(&references).map(score).collect::<Result<_, PairError>>()?;
    let (characters, case_sensitive) = (options.reading.characters.is_some(), options.is_case_sensitive);
    let traits = Traits { characters, case_sensitive, ..Traits::default() };
    for (utterance, (speaker, alignment)) in hypotheses.iter().zip(scored) {
        let (id, sequence_here) = (utterance.id.clone(), *sequence);
        let scored = ScoredUtterance { id, sequence: sequence_here, traits, alignment, ..ScoredUtterance::default() };
        system.add(&speaker, scored);
        *sequence += 1;
    }
    Ok(system)
}

/// The reference of each hypothesis.
fn find_references<'a>(
    reference: &Source,
    references: &'a [TrnUtterance],
    hypothesis: &Source,
    hypotheses: &[TrnUtterance],
) -> Result<Vec<&'a TrnUtterance>, PairError> {
    let wanted: HashSet<&[u8]> = hypotheses.iter().map(|h| &*h.id).collect();
    let mut by_id: HashMap<&[u8], &TrnUtterance> = HashMap::with_capacity(references.len());
    for utterance in references.iter().filter(|r| wanted.contains(&*r.id)) {
        let first = *by_id.entry(&utterance.id).or_insert(utterance);
        // NIST's scorer compares as far as the later text goes.
        if !first.text.starts_with(&utterance.text) {
            let (path, id) = (reference.path.clone(), id_name(&utterance.id).into_owned());
            return Err(PairError::TwoReferences { path, line: utterance.line, id, first_line: first.line });
        }
    }
    let find = |h: &TrnUtterance| {
        by_id.get(&*h.id).copied().ok_or_else(|| PairError::NoReference {
            path: hypothesis.path.clone(),
            line: h.line,
            id: id_name(&h.id).into_owned(),
            reference: reference.path.clone(),
        })
    };
    hypotheses.iter().map(find).collect()
}

fn align_texts(
    (reference, r): (&Source, &TrnUtterance),
    (hypothesis, h): (&Source, &TrnUtterance),
    options: &PairOptions,
) -> Result<Alignment, ReadTranscriptError> {
    let r_network = parse_network(reference, r.line, &r.text, options)?;
    let h_network = parse_network(hypothesis, h.line, &h.text, options)?;
    let (path, line) = (&hypothesis.path, h.line);
    let too_long = |source| ReadTranscriptError::TooLong { path: path.clone(), line, source };
    align(&r_network, &h_network, options.cost).map_err(too_long)
}

fn parse_network(
    file: &Source,
    line: usize,
    text: &[u8],
    options: &PairOptions,
) -> Result<Network, ReadTranscriptError> {
    let error = |source| ReadTranscriptError::Alternatives { path: file.path.clone(), line, source };
    Network::parse(text, options.reading).map_err(error)
}

fn speaker(file: &Source, utterance: &TrnUtterance, part: SpeakerId) -> Result<Text, ReadTranscriptError> {
    let id = &*utterance.id;
    let inside = &id[1..];
    match part {
        SpeakerId::All => Ok(id.into()),
        SpeakerId::FirstThree => Ok(inside[..inside.len().min(3)].into()),
        SpeakerId::BeforeSeparator => {
            let end = [b'-', b'_'].iter().find_map(|separator| inside.iter().position(|b| b == separator));
            end.map(|end| Text::from(&inside[..end])).ok_or_else(|| {
                let (path, line) = (file.path.clone(), utterance.line);
                ReadTranscriptError::NoSpeaker { path, line, id: lossy(id) }
            })
        }
    }
}
