//! Transcripts, one utterance to a line: `words of the utterance (speaker_utterance)`.

use std::collections::HashMap;

use super::encoding::Encoding;
use super::read::{Line, ReadTranscriptError, Source};
use super::word::Text;

/// How a transcript is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrnOptions {
    /// What the bytes mean.
    pub encoding: Encoding,
    /// Whether capitals matter.
    pub is_case_sensitive: bool,
    /// Whether a last line without its end is overlooked, as NIST's scorer does.
    pub drops_unfinished_line: bool,
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct TrnUtterance {
    /// The id with its brackets.
    pub id: Text,
    /// Words and alternatives, as they stand.
    pub text: Text,
    /// Where it stands.
    pub line: usize,
}

/// Reads every utterance of a transcript.
pub fn parse(source: &Source, options: TrnOptions) -> Result<Vec<TrnUtterance>, ReadTranscriptError> {
    source.check(options.encoding)?;
    source
        .lines()
        .filter(|line| line.is_terminated || !options.drops_unfinished_line)
        .map(|line| parse_line(source, line, options))
        .collect()
}

fn parse_line(source: &Source, line: Line<'_>, options: TrnOptions) -> Result<TrnUtterance, ReadTranscriptError> {
    let open = line.text.iter().rposition(|b| *b == b'(');
    let close = line.text.iter().rposition(|b| *b == b')');
    let (Some(open), Some(close)) = (open, close) else {
        return Err(ReadTranscriptError::NoId { path: source.path.clone(), line: line.number });
    };
    if close <= open + 1 {
        return Err(ReadTranscriptError::NoId { path: source.path.clone(), line: line.number });
    }
    let fold = |text: &[u8]| -> Text {
        if options.is_case_sensitive { text.into() } else { options.encoding.lower(text).into() }
    };
    let (text, id) = (fold(&line.text[..open]), fold(&line.text[open..=close]));
    Ok(TrnUtterance { id, text, line: line.number })
}

/// Checks that no id comes twice.
pub fn check_unique(source: &Source, utterances: &[TrnUtterance]) -> Result<(), ReadTranscriptError> {
    let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(utterances.len());
    for utterance in utterances {
        if let Some(first_line) = seen.insert(&utterance.id, utterance.line) {
            let id = name(&utterance.id).to_string();
            return Err(ReadTranscriptError::DuplicateId {
                path: source.path.clone(),
                line: utterance.line,
                id,
                first_line,
            });
        }
    }
    Ok(())
}

/// An id without its brackets, for people.
pub fn name(id: &[u8]) -> std::borrow::Cow<'_, str> {
    let inside = id.strip_prefix(b"(").and_then(|id| id.strip_suffix(b")")).unwrap_or(id);
    String::from_utf8_lossy(inside)
}
