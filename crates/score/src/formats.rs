//! Transcript files: reading of `trn`, `stm` and `ctm`, with the file and line of every error.
//!
//! | format | one line |
//! |---|---|
//! | `trn` | `words of the utterance (speaker_utterance)` |
//! | `stm` | `file channel speaker start end [<label,label>] words` |
//! | `ctm` | `file channel start duration word [confidence]` |
//!
//! ```
//! use srf_score::Encoding;
//! use srf_score::formats::{
//!     Ctm, CtmWord, Label, Labels, ReadTranscriptError, Source, StmSegment, TrnOptions, TrnUtterance, check_order,
//!     check_times, check_unique, id_name, parse_ctm, parse_stm, parse_trn,
//! };
//!
//! let source = |text: &str| Source { path: "file".into(), bytes: text.into() };
//! let trn = source("Yes (ann-1)\n");
//! trn.check(Encoding::default())?;
//! let utterances: Vec<TrnUtterance> = parse_trn(&trn, TrnOptions::default())?;
//! check_unique(&trn, &utterances)?;
//! assert_eq!((id_name(&utterances[0].id).as_ref(), &*utterances[0].text), ("ann-1", &b"yes "[..]));
//!
//! let ctm = source("talk A 0.5 0.4 yes 0.98\n");
//! let words: Ctm = parse_ctm(&ctm, Encoding::Ascii, false)?;
//! check_order(&ctm, &words)?;
//! let CtmWord { start_s, duration_s, .. } = &words.words[0];
//! assert_eq!((*start_s, *duration_s, words.has_confidences), (0.5, 0.4, true));
//!
//! let stm = source("talk A ann 0.0 2.0 <O,F> yes\n");
//! let segments: Vec<StmSegment> = parse_stm(&stm, Encoding::Ascii, false)?;
//! check_times(&stm, &segments)?;
//!
//! // What `;; LABEL "F" "Female" ...` lines define.
//! let Labels { labels, .. } = Labels::default();
//! assert!(labels.iter().all(|label: &Label| !label.id.is_empty()));
//! assert!(matches!(Source::load("no.trn".as_ref()), Err(ReadTranscriptError::Open { .. })));
//! # Ok::<(), ReadTranscriptError>(())
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::align::TooLongError;
use crate::encoding::Encoding;
use crate::network::{Item, ReadAlternativesError};
use crate::word::{NOTHING, Text, Word};

/// Larger transcripts are not read.
const MAX_BYTES: u64 = 1 << 29;

/// Why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ReadTranscriptError {
    #[error("could not read `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("`{}` has more than {limit} bytes, the most that is read of a transcript", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
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
            Self::TooLarge { .. } => Some("score parts of the test one by one".into()),
            _ => None,
        }
    }
}

/// The bytes of a transcript, with the path that messages name.
#[allow(missing_docs, reason = "the names say it")]
pub struct Source {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a [u8],
    /// NIST's scorer ignores a last line without a newline.
    is_terminated: bool,
}

impl Source {
    /// Reads a file of at most 512 MiB.
    pub fn load(path: &Path) -> Result<Self, ReadTranscriptError> {
        Self::load_within(path, MAX_BYTES)
    }

    fn load_within(path: &Path, limit: u64) -> Result<Self, ReadTranscriptError> {
        let path = path.to_owned();
        match srf_base::files::read_at_most(&path, limit) {
            Ok(Some(bytes)) => Ok(Self { path, bytes }),
            Ok(None) => Err(ReadTranscriptError::TooLarge { path, limit }),
            Err(source) => Err(ReadTranscriptError::Open { path, source }),
        }
    }

    /// Checks that all of it is in `encoding`.
    pub fn check(&self, encoding: Encoding) -> Result<(), ReadTranscriptError> {
        match std::str::from_utf8(&self.bytes) {
            Err(error) if matches!(encoding, Encoding::Utf8(_)) => {
                let line = self.bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
                Err(ReadTranscriptError::NotUtf8 { path: self.path.clone(), line })
            }
            _ => Ok(()),
        }
    }

    fn all_lines(&self) -> impl Iterator<Item = Line<'_>> {
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

    fn too_few_fields(&self, line: usize, found: usize, fields: &'static str) -> ReadTranscriptError {
        ReadTranscriptError::TooFewFields { path: self.path.clone(), line, found, expected: 5, fields }
    }

    fn number(&self, line: usize, what: &'static str, field: &[u8]) -> Result<f64, ReadTranscriptError> {
        let (path, found) = (self.path.clone(), || String::from_utf8_lossy(field).into_owned());
        seconds(field).ok_or_else(|| ReadTranscriptError::NotANumber { path, line, what, found: found() })
    }
}

fn fold(text: &[u8], encoding: Encoding, is_case_sensitive: bool) -> Cow<'_, [u8]> {
    if is_case_sensitive { text.into() } else { encoding.lower(text).into() }
}

pub(crate) fn split_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).filter(|field| !field.is_empty())
}

/// A number of seconds as C's `atof` reads it, except that text and infinities are refused.
pub(crate) fn seconds(field: &[u8]) -> Option<f64> {
    leading_number(field).filter(|value| value.is_finite())
}

/// The number `field` begins with.
fn leading_number(field: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(field).ok()?;
    (1..=text.len()).rev().filter(|end| text.is_char_boundary(*end)).find_map(|end| text[..end].parse().ok())
}

/// How a `trn` file is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrnOptions {
    /// What the bytes mean.
    pub encoding: Encoding,
    /// Whether capitals matter.
    pub is_case_sensitive: bool,
    /// Whether a last line without a newline is ignored, as by NIST's scorer.
    pub drops_unfinished_line: bool,
}

/// One line of a `trn` file.
#[derive(Clone, Debug, PartialEq)]
pub struct TrnUtterance {
    /// The id with its brackets.
    pub id: Text,
    /// Words and alternatives as in the file.
    pub text: Text,
    /// The line number.
    pub line: usize,
}

/// Reads every utterance of a `trn` file.
pub fn parse_trn(source: &Source, options: TrnOptions) -> Result<Vec<TrnUtterance>, ReadTranscriptError> {
    source.check(options.encoding)?;
    let lines = source.lines().filter(|line| line.is_terminated || !options.drops_unfinished_line);
    let parse = |line: Line<'_>| {
        let find = |bracket| line.text.iter().rposition(|b| *b == bracket);
        let Some((open, close)) = find(b'(').zip(find(b')')).filter(|(open, close)| open + 1 < *close) else {
            return Err(ReadTranscriptError::NoId { path: source.path.clone(), line: line.number });
        };
        let fold = |text| Text::from(fold(text, options.encoding, options.is_case_sensitive));
        Ok(TrnUtterance { id: fold(&line.text[open..=close]), text: fold(&line.text[..open]), line: line.number })
    };
    lines.map(parse).collect()
}

/// Checks that no id occurs twice.
pub fn check_unique(source: &Source, utterances: &[TrnUtterance]) -> Result<(), ReadTranscriptError> {
    let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(utterances.len());
    for TrnUtterance { id, line, .. } in utterances {
        if let Some(first_line) = seen.insert(id, *line) {
            let (path, id) = (source.path.clone(), id_name(id).into_owned());
            return Err(ReadTranscriptError::DuplicateId { path, line: *line, id, first_line });
        }
    }
    Ok(())
}

/// An id of a `trn` file without its brackets; what [`srf_base::ids::encode`] encoded is decoded.
pub fn id_name(id: &[u8]) -> Cow<'_, str> {
    let inside = id.strip_prefix(b"(").and_then(|id| id.strip_suffix(b")")).unwrap_or(id);
    match String::from_utf8_lossy(inside) {
        Cow::Borrowed(name) => srf_base::ids::decode(name),
        Cow::Owned(name) => srf_base::ids::decode(&name).into_owned().into(),
    }
}

/// One line of an `stm` file.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub struct StmSegment {
    pub file: Text,
    pub channel: Text,
    pub speaker: Text,
    pub start_s: f64,
    pub end_s: f64,
    /// The groups it belongs to: `<O,F>`.
    pub labels: Option<Text>,
    /// Words and alternatives as in the file.
    pub text: Text,
    /// Whether its text excludes this time span from scoring.
    pub is_ignored: bool,
    pub line: usize,
}

const IGNORED: [&[u8]; 2] = [b"IGNORE_TIME_SEGMENT_IN_SCORING", b"IGNORETIMESEGMENTINSCORING"];

/// Reads every segment of an `stm` file.
pub fn parse_stm(
    source: &Source,
    encoding: Encoding,
    is_case_sensitive: bool,
) -> Result<Vec<StmSegment>, ReadTranscriptError> {
    source.check(encoding)?;
    let parse = |line: Line<'_>| {
        let folded = fold(line.text, encoding, is_case_sensitive);
        let mut rest = &folded[..];
        let mut fields = [&b""[..]; 5];
        for (found, field) in fields.iter_mut().enumerate() {
            (*field, rest) = next_field(rest);
            if field.is_empty() {
                return Err(source.too_few_fields(line.number, found, "file channel speaker start end"));
            }
        }
        let [file, channel, speaker, start, end] = fields;
        // NIST's scorer keeps single precision, which decides on which side of an end a word falls.
        let number = |what, field| source.number(line.number, what, field).map(|s| f64::from(s as f32));
        let (first, others) = next_field(rest);
        let (labels, text) = if first.starts_with(b"<") { (Some(first.into()), others) } else { (None, rest) };
        Ok(StmSegment {
            file: file.into(),
            channel: channel.into(),
            speaker: speaker.into(),
            start_s: number("the start", start)?,
            end_s: number("the end", end)?,
            labels,
            text: text.into(),
            is_ignored: is_ignored(text, encoding),
            line: line.number,
        })
    };
    source.lines().map(parse).collect()
}

fn next_field(text: &[u8]) -> (&[u8], &[u8]) {
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    let start = text.iter().position(|b| !is_blank(b)).unwrap_or(text.len());
    let len = text[start..].iter().position(is_blank).unwrap_or(text.len() - start);
    text[start..].split_at(len)
}

fn is_ignored(text: &[u8], encoding: Encoding) -> bool {
    // Both sides are folded, since not every language folds `I` to `i`.
    let text = encoding.lower(text);
    IGNORED.iter().any(|mark| {
        let mark = encoding.lower(mark);
        text.windows(mark.len()).any(|window| window == mark)
    })
}

/// Checks that segments end after they begin.
pub fn check_times(source: &Source, segments: &[StmSegment]) -> Result<(), ReadTranscriptError> {
    match segments.iter().find(|segment| segment.end_s < segment.start_s) {
        Some(StmSegment { line, start_s, end_s, .. }) => {
            let (path, line, start_s, end_s) = (source.path.clone(), *line, *start_s, *end_s);
            Err(ReadTranscriptError::EndBeforeStart { path, line, start_s, end_s })
        }
        None => Ok(()),
    }
}

/// One line of a `ctm` file.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub struct CtmWord {
    pub file: Text,
    pub channel: Text,
    pub start_s: f64,
    pub duration_s: f64,
    /// The spelling, or a mark of alternatives such as `<ALT>`.
    pub text: Text,
    /// 0 if there is none.
    pub confidence: f64,
    /// Whether it is part of alternatives.
    pub is_alternative: bool,
    pub(crate) mark: Option<Mark>,
    /// Whether it is outside of what is scored.
    pub(crate) is_ignored: bool,
    pub line: usize,
}

/// The marks `<ALT_BEGIN>`, `<ALT>`, `<ALT_END>`, and anything else that begins with `<ALT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Begin,
    Next,
    End,
    Other,
}

impl Mark {
    fn parse(text: &[u8], encoding: Encoding) -> Option<Self> {
        // Both sides are folded, since not every language folds `I` to `i`.
        let is = |mark: &[u8]| encoding.lower(text) == encoding.lower(mark);
        match () {
            () if !is_mark(text) => None,
            () if is(b"<ALT_BEGIN>") => Some(Self::Begin),
            () if is(b"<ALT>") => Some(Self::Next),
            () if is(b"<ALT_END>") => Some(Self::End),
            () => Some(Self::Other),
        }
    }
}

/// Whether `text` is a mark of alternatives.
pub(crate) fn is_mark(text: &[u8]) -> bool {
    text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"<ALT"))
}

/// All words of a `ctm` file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Ctm {
    /// The words.
    pub words: Vec<CtmWord>,
    /// Whether any of them has a confidence.
    pub has_confidences: bool,
}

/// Reads every word of a `ctm` file.
pub fn parse_ctm(source: &Source, encoding: Encoding, is_case_sensitive: bool) -> Result<Ctm, ReadTranscriptError> {
    source.check(encoding)?;
    let mut ctm = Ctm::default();
    let mut is_open = false;
    for line in source.all_lines().filter(|line| line.text.first() != Some(&b';')) {
        let folded = fold(line.text, encoding, is_case_sensitive);
        let fields: Vec<&[u8]> = split_fields(&folded).collect();
        let [file, channel, start, duration, text, optional @ ..] = &fields[..] else {
            return Err(source.too_few_fields(line.number, fields.len(), "file channel start duration word"));
        };
        let mark = Mark::parse(text, encoding);
        // Marks have `*` for their times.
        let number = |what, field: &[u8]| match mark {
            Some(_) => Ok(seconds(field).unwrap_or(0.0)),
            None => source.number(line.number, what, field),
        };
        let start = start.strip_prefix(b"&&").unwrap_or(start);
        let confidence = optional.first().filter(|c| !c.eq_ignore_ascii_case(b"na"));
        let word = CtmWord {
            file: (*file).into(),
            channel: (*channel).into(),
            start_s: number("the start", start)?,
            duration_s: number("the duration", duration)?,
            text: (*text).into(),
            // NIST's scorer keeps single precision, which shows in six printed digits.
            confidence: confidence.map_or(0.0, |c| f64::from(leading_number(c).unwrap_or(0.0) as f32)),
            is_alternative: is_open || mark.is_some(),
            mark,
            is_ignored: false,
            line: line.number,
        };
        is_open = word.is_alternative && mark != Some(Mark::End);
        ctm.has_confidences |= confidence.is_some();
        ctm.words.push(word);
    }
    Ok(ctm)
}

/// Checks that no word of a channel begins before the previous one.
pub fn check_order(source: &Source, ctm: &Ctm) -> Result<(), ReadTranscriptError> {
    for pair in ctm.words.windows(2) {
        let [before, after] = pair else { continue };
        let is_same = before.file == after.file && before.channel == after.channel;
        if is_same && !before.is_alternative && !after.is_alternative && after.start_s < before.start_s {
            let (path, line) = (source.path.clone(), after.line);
            let (start_s, previous_s) = (after.start_s, before.start_s);
            return Err(ReadTranscriptError::OutOfOrder { path, line, start_s, previous_s });
        }
    }
    Ok(())
}

impl Ctm {
    /// Word `index`, counted from 1 as in the alignment by times.
    pub(crate) fn get(&self, index: usize) -> Option<&CtmWord> {
        index.checked_sub(1).and_then(|index| self.words.get(index))
    }

    fn is_at(&self, index: usize, mark: Mark) -> bool {
        self.get(index).is_some_and(|word| word.mark == Some(mark))
    }

    fn word(&self, index: usize) -> Option<Item> {
        let word = self.get(index)?;
        Some(self.confident(Word::parse(&word.text).at(word.start_s, word.duration_s), index))
    }

    fn confident(&self, word: Word, index: usize) -> Item {
        let confidence = self.get(index).map_or(0.0, |word| word.confidence);
        Item::Word(word.with_confidence(if self.has_confidences { confidence } else { -1.0 }))
    }

    /// The words from `start` to `end`, both counted from 1 and included, with their alternatives.
    ///
    /// Follows NIST's scorer in how it steps over the marks, also if the marks are incomplete.
    pub(crate) fn items(&self, start: usize, end: usize) -> Vec<Item> {
        let end = end.min(self.words.len());
        let mut items = Vec::new();
        let mut index = start;
        while index <= end {
            let Some(word) = self.get(index) else { break };
            if !word.is_ignored && word.is_alternative {
                let (choices, next) = self.choices(index, end);
                items.push(Item::Choice(choices));
                index = next;
            } else if !word.is_ignored {
                items.extend(self.word(index));
            }
            index += 1;
        }
        items
    }

    /// The alternatives from `index` on, and the index of their last mark.
    fn choices(&self, mut index: usize, end: usize) -> (Vec<Vec<Item>>, usize) {
        let mut choices = Vec::new();
        while index <= end && self.is_at(index, Mark::Begin) {
            index += 1;
        }
        loop {
            let mut choice = Vec::new();
            while index <= end && self.get(index).is_some_and(|word| word.mark.is_none()) {
                choice.extend(self.word(index));
                index += 1;
            }
            if choice.is_empty() {
                choice.push(self.confident(Word::new(NOTHING), index));
                index += 1;
            }
            choices.push(choice);
            let is_empty_last = self.is_at(index, Mark::Next) && self.is_at(index + 1, Mark::End);
            if !is_empty_last && !self.is_at(index, Mark::End) {
                index += 1;
            }
            if index > end || self.is_at(index, Mark::End) {
                return (choices, index);
            }
        }
    }
}

/// What `;; LABEL "id" "title" "description"` says; `//` breaks the title.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub struct Label {
    pub id: Text,
    pub title: Text,
    pub description: Text,
}

/// All labels of utterances and categories of labels, in the order they were first defined.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub struct Labels {
    pub labels: Vec<Label>,
    pub categories: Vec<Label>,
}

impl Labels {
    /// Adds what the comments of `source` define.
    pub(crate) fn add(&mut self, source: &Source) {
        let kinds = [(&b";; LABEL "[..], &mut self.labels), (b";; CATEGORY ", &mut self.categories)];
        for (prefix, found) in kinds {
            for label in source.all_lines().filter_map(|line| parse_label(line.text.strip_prefix(prefix)?)) {
                if !found.contains(&label) {
                    found.push(label);
                }
            }
        }
    }
}

fn parse_label(text: &[u8]) -> Option<Label> {
    let parts: Vec<&[u8]> = text.split(|b| *b == b'"').collect();
    let [_, id, _, title, _, description, _, ..] = &parts[..] else { return None };
    Some(Label { id: (*id).into(), title: (*title).into(), description: (*description).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_any_transcript_has_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ref.trn");
        std::fs::write(&path, "a (s-1)\n").unwrap();
        assert!(Source::load_within(&path, 8).is_ok());
        let error = Source::load_within(&path, 7).err().unwrap().to_string();
        assert!(error.ends_with("ref.trn` has more than 7 bytes, the most that is read of a transcript"), "{error}");
    }

    #[test]
    fn encoded_ids_are_read_back() {
        for id in ["a b", "a\nb", "../x/y", "x(1)", "50%", ""] {
            let line = format!("words ({})\n", srf_base::ids::encode(id));
            let source = Source { path: "x".into(), bytes: line.into_bytes() };
            let utterances = parse_trn(&source, TrnOptions::default()).unwrap();
            assert_eq!(id_name(&utterances[0].id), id);
        }
    }
}
