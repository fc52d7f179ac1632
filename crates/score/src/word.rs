//! Words of a transcript: spelling, marks, times and confidence.

use std::sync::Arc;

/// Bytes of a transcript, shared between the places that show them.
pub type Text = Arc<[u8]>;

/// The spelling of the empty alternative.
pub(crate) const NOTHING: &[u8] = b"@";

/// A word to be aligned.
///
/// ```
/// use srf_score::{Tags, Word};
///
/// let word = Word::parse(b"read;past;verb").at(0.5, 0.3).with_confidence(0.9);
/// let Tags { first, second } = word.tags.as_deref().expect("it has marks");
/// assert_eq!((word.spelling(), &**first, &**second), (&b"read"[..], &b"past"[..], &b"verb"[..]));
/// assert!(word.matches(&Word::new(*b"read")) && !word.is_optional());
/// assert!(Word::new(*b"@").is_nothing(), "the empty alternative");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The spelling, with the brackets of an optional word.
    pub text: Text,
    /// What stands between the brackets of an optional word.
    inner: Option<Text>,
    /// Whether a fragment (`th-`) matches the words it begins or ends.
    is_fragment: bool,
    /// The two marks that may follow the spelling (`word;first;second`).
    pub tags: Option<Box<Tags>>,
    /// When it begins, in seconds; 0 where no times are known.
    pub start_s: f64,
    /// When it ends, in seconds.
    pub end_s: f64,
    /// How long it lasts, in seconds, as the alignment by times counts it.
    pub(crate) duration_s: f64,
    /// How sure the recogniser is of it; below 0 where unknown.
    pub confidence: f64,
}

/// The marks after a word, each after a semicolon.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Tags {
    pub first: Text,
    pub second: Text,
}

impl Word {
    /// A word of this spelling.
    pub fn new(text: impl Into<Text>) -> Self {
        let (start_s, end_s, duration_s, confidence) = (0.0, 0.0, 0.0, 0.0);
        Self { text: text.into(), inner: None, is_fragment: false, tags: None, start_s, end_s, duration_s, confidence }
    }

    /// A token as it stands in a file: `word`, `word;first;second`, `word*`; a backslash keeps a semicolon.
    pub fn parse(token: &[u8]) -> Self {
        let (spelling, marks) = split_at_semicolon(token);
        let mut text = without_backslashes(spelling);
        if text.len() > 1 && text.last() == Some(&b'*') {
            text.pop();
        }
        let mut word = Self::new(text);
        word.tags = marks.map(|marks| Box::new(parse_tags(marks)));
        word
    }

    /// The same word from `start_s` for `duration_s`.
    #[must_use]
    pub fn at(mut self, start_s: f64, duration_s: f64) -> Self {
        self.start_s = start_s;
        self.end_s = start_s + duration_s;
        self.duration_s = self.end_s - start_s;
        self
    }

    /// The same word with a confidence.
    #[must_use]
    pub fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }

    /// Reads brackets as "may be left out": `(uh)`.
    pub(crate) fn mark_optional(&mut self) {
        if let [b'(', inside @ .., b')'] = &*self.text {
            self.inner = Some(inside.into());
        }
    }

    /// Reads a hyphen at either end as "the rest was not spoken": `th-`.
    pub(crate) fn mark_fragment(&mut self) {
        let inside = self.inner.as_deref();
        self.is_fragment = self.text.first() == Some(&b'-')
            || self.text.last() == Some(&b'-')
            || inside.is_some_and(|i| i.last() == Some(&b'-'));
    }

    /// Whether it counts as correct when left out.
    pub fn is_optional(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether it is the empty alternative.
    pub fn is_nothing(&self) -> bool {
        &*self.text == NOTHING
    }

    /// The spelling that is compared.
    pub fn spelling(&self) -> &[u8] {
        self.inner.as_ref().unwrap_or(&self.text)
    }

    /// Whether two words are the same to the scorer.
    pub fn matches(&self, other: &Self) -> bool {
        let (a, b) = (self.spelling(), other.spelling());
        if !self.is_fragment && !other.is_fragment {
            return a == b;
        }
        is_part(a, b).or_else(|| is_part(b, a)).unwrap_or(a == b)
    }
}

/// Whether `word` begins or ends with the fragment; `None` if it is no fragment.
fn is_part(fragment: &[u8], word: &[u8]) -> Option<bool> {
    match fragment {
        [b'-', part @ ..] if !part.is_empty() => Some(word.ends_with(part)),
        [part @ .., b'-'] if !part.is_empty() => Some(word.starts_with(part)),
        _ => None,
    }
}

/// Text with a backslash before every semicolon, as [`Word::parse`] reads it.
pub(crate) fn escape_semicolons(text: &[u8]) -> Vec<u8> {
    text.split(|byte| *byte == b';').collect::<Vec<_>>().join(&b"\\;"[..])
}

fn split_at_semicolon(token: &[u8]) -> (&[u8], Option<&[u8]>) {
    let found = (0..token.len()).find(|i| token[*i] == b';' && (*i == 0 || token[i - 1] != b'\\'));
    found.map_or((token, None), |i| (&token[..i], Some(&token[i + 1..])))
}

fn parse_tags(marks: &[u8]) -> Tags {
    let (first, rest) = split_at_semicolon(marks);
    let second = rest.map_or(&[][..], |rest| split_at_semicolon(rest).0);
    Tags { first: without_backslashes(first).into(), second: without_backslashes(second).into() }
}

fn without_backslashes(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|b| *b != b'\\').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(token: &str) -> Word {
        let mut word = Word::parse(token.as_bytes());
        word.mark_optional();
        word.mark_fragment();
        word
    }

    #[test]
    fn tokens_lose_their_marks() {
        let parsed = Word::parse(b"a\\;s;first;second");
        assert_eq!(&*parsed.text, b"a;s");
        let tags = parsed.tags.unwrap();
        assert_eq!((&*tags.first, &*tags.second), (&b"first"[..], &b"second"[..]));
        assert_eq!(&*Word::parse(b"word*").text, b"word");
        assert_eq!(&*Word::parse(b"*").text, b"*");
    }

    #[test]
    fn a_fragment_matches_the_words_it_begins_or_ends() {
        assert!(word("th-").matches(&word("that")));
        assert!(word("that").matches(&word("-at")));
        assert!(word("(th-)").matches(&word("this")));
        assert!(!word("th-").matches(&word("hat")));
        assert!(!word("-").matches(&word("hat")));
    }

    #[test]
    fn brackets_are_not_part_of_what_is_compared() {
        assert!(word("(uh)").is_optional());
        assert!(word("(uh)").matches(&word("uh")));
    }
}
