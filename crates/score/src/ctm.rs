//! Words with times: `file channel start duration word [confidence]`, one to a line.

use super::encoding::Encoding;
use super::network::Item;
use super::read::{ReadTranscriptError, Source};
use super::word::{NOTHING, Text, Word};

/// One line of a file of words with times.
#[derive(Clone, Debug, PartialEq)]
pub struct CtmWord {
    /// The recording.
    pub file: Text,
    /// Its channel.
    pub channel: Text,
    /// When the word begins, in seconds.
    pub start_s: f64,
    /// How long it lasts, in seconds.
    pub duration_s: f64,
    /// Its spelling, or a mark of alternatives such as `<ALT>`.
    pub text: Text,
    /// How sure the recogniser is; 0 where it does not say.
    pub confidence: f64,
    /// Whether it is part of alternatives.
    pub is_alternative: bool,
    /// Which mark of alternatives it is, where it is one.
    pub mark: Option<Mark>,
    /// Whether it lies outside of what is scored.
    pub(crate) is_ignored: bool,
    /// Where it stands.
    pub line: usize,
}

/// What stands between alternatives instead of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `<ALT_BEGIN>`.
    Begin,
    /// `<ALT>`.
    Next,
    /// `<ALT_END>`.
    End,
    /// Anything else that begins with `<ALT`.
    Other,
}

impl Mark {
    /// The mark `text` is, with or without capitals.
    fn parse(text: &[u8], encoding: Encoding) -> Option<Self> {
        if !is_mark(text) {
            return None;
        }
        // Both sides are folded, since not every language folds `I` to `i`.
        let is = |mark: &[u8]| encoding.lower(text) == encoding.lower(mark);
        Some(match () {
            () if is(b"<ALT_BEGIN>") => Self::Begin,
            () if is(b"<ALT>") => Self::Next,
            () if is(b"<ALT_END>") => Self::End,
            () => Self::Other,
        })
    }
}

/// All words of a file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Ctm {
    /// The words.
    pub words: Vec<CtmWord>,
    /// Whether any of them has a confidence.
    pub has_confidences: bool,
}

const FIELDS: &str = "file channel start duration word";

/// Reads every word with its times.
pub fn parse(source: &Source, encoding: Encoding, is_case_sensitive: bool) -> Result<Ctm, ReadTranscriptError> {
    source.check(encoding)?;
    let mut ctm = Ctm::default();
    let mut is_open = false;
    for line in source.all_lines().filter(|line| line.text.first() != Some(&b';')) {
        let folded = if is_case_sensitive { line.text.to_vec() } else { encoding.lower(line.text) };
        let fields: Vec<&[u8]> = split_fields(&folded).collect();
        let [file, channel, start, duration, text, optional @ ..] = &fields[..] else {
            let (path, found) = (source.path.clone(), fields.len());
            return Err(ReadTranscriptError::TooFewFields {
                path,
                line: line.number,
                found,
                expected: 5,
                fields: FIELDS,
            });
        };
        let mark = Mark::parse(text, encoding);
        let number = |what, field: &[u8]| match seconds(field) {
            // Marks have `*` for their times.
            None if mark.is_some() => Ok(0.0),
            found => found.ok_or_else(|| not_a_number(source, line.number, what, field)),
        };
        let start = start.strip_prefix(b"&&").unwrap_or(start);
        let confidence = optional.first().filter(|c| !c.eq_ignore_ascii_case(b"na"));
        let word = CtmWord {
            file: (*file).into(),
            channel: (*channel).into(),
            start_s: number("the start", start)?,
            duration_s: number("the duration", duration)?,
            text: (*text).into(),
            // Kept in single precision by NIST's scorer, which shows in six printed digits.
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

/// Checks that words of a channel do not begin before the word before them.
pub fn check_order(source: &Source, ctm: &Ctm) -> Result<(), ReadTranscriptError> {
    for pair in ctm.words.windows(2) {
        let [before, after] = pair else { continue };
        let is_same = before.file == after.file && before.channel == after.channel;
        if is_same && !before.is_alternative && !after.is_alternative && after.start_s < before.start_s {
            return Err(ReadTranscriptError::OutOfOrder {
                path: source.path.clone(),
                line: after.line,
                start_s: after.start_s,
                previous_s: before.start_s,
            });
        }
    }
    Ok(())
}

pub(crate) fn split_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).filter(|field| !field.is_empty())
}

pub(crate) fn not_a_number(source: &Source, line: usize, what: &'static str, field: &[u8]) -> ReadTranscriptError {
    let found = String::from_utf8_lossy(field).into_owned();
    ReadTranscriptError::NotANumber { path: source.path.clone(), line, what, found }
}

/// A number of seconds as C's `atof` reads it, except that nonsense is refused.
pub(crate) fn seconds(field: &[u8]) -> Option<f64> {
    leading_number(field).filter(|value| value.is_finite())
}

/// The number `field` begins with.
fn leading_number(field: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(field).ok()?;
    (1..=text.len()).rev().filter(|end| text.is_char_boundary(*end)).find_map(|end| text[..end].parse().ok())
}

/// Whether `text` is one of the marks `<ALT_BEGIN>`, `<ALT>`, `<ALT_END>`.
pub(crate) fn is_mark(text: &[u8]) -> bool {
    text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"<ALT"))
}

impl Ctm {
    /// Word `index`, counted from 1 as the alignment by times does; none outside of the file.
    pub(crate) fn get(&self, index: usize) -> Option<&CtmWord> {
        index.checked_sub(1).and_then(|index| self.words.get(index))
    }

    fn is_at(&self, index: usize, mark: Mark) -> bool {
        self.get(index).is_some_and(|word| word.mark == Some(mark))
    }

    fn word(&self, index: usize) -> Option<Word> {
        let word = self.get(index)?;
        Some(self.confident(Word::parse(&word.text).at(word.start_s, word.duration_s), index))
    }

    fn confident(&self, word: Word, index: usize) -> Word {
        let confidence = self.get(index).map_or(0.0, |word| word.confidence);
        word.with_confidence(if self.has_confidences { confidence } else { -1.0 })
    }

    /// The words from `start` to `end`, both counted from 1 and included, with their alternatives.
    ///
    /// Follows NIST's scorer in how it steps over the marks, also where the marks are incomplete.
    pub(crate) fn items(&self, start: usize, end: usize) -> Vec<Item> {
        let end = end.min(self.words.len());
        let mut items = Vec::new();
        let mut index = start;
        while index <= end {
            let Some(word) = self.get(index) else { break };
            if word.is_ignored {
                index += 1;
            } else if word.is_alternative {
                let (choices, next) = self.choices(index, end);
                items.push(Item::Choice(choices));
                index = next + 1;
            } else {
                items.extend(self.word(index).map(Item::Word));
                index += 1;
            }
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
                choice.extend(self.word(index).map(Item::Word));
                index += 1;
            }
            if choice.is_empty() {
                choice.push(Item::Word(self.confident(Word::new(NOTHING), index)));
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
