//! Segments with times: `file channel speaker start end [<label,label>] words`, one to a line.

use super::ctm::{not_a_number, seconds};
use super::encoding::Encoding;
use super::read::{Line, ReadTranscriptError, Source};
use super::word::Text;

/// One line of a segmented reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The recording.
    pub file: Text,
    /// Its channel.
    pub channel: Text,
    /// Who speaks.
    pub speaker: Text,
    /// When the segment begins, in seconds.
    pub start_s: f64,
    /// When it ends, in seconds.
    pub end_s: f64,
    /// The groups it belongs to: `<O,F>`.
    pub labels: Option<Text>,
    /// Words and alternatives, as they stand.
    pub text: Text,
    /// Whether its text says that this stretch of time is not to be scored.
    pub is_ignored: bool,
    /// Where it stands.
    pub line: usize,
}

const FIELDS: &str = "file channel speaker start end";
const IGNORED: [&[u8]; 2] = [b"IGNORE_TIME_SEGMENT_IN_SCORING", b"IGNORETIMESEGMENTINSCORING"];

/// Reads every segment.
pub fn parse(
    source: &Source,
    encoding: Encoding,
    is_case_sensitive: bool,
) -> Result<Vec<Segment>, ReadTranscriptError> {
    source.check(encoding)?;
    source.lines().map(|line| parse_line(source, line, encoding, is_case_sensitive)).collect()
}

fn parse_line(
    source: &Source,
    line: Line<'_>,
    encoding: Encoding,
    is_case_sensitive: bool,
) -> Result<Segment, ReadTranscriptError> {
    let folded = if is_case_sensitive { line.text.to_vec() } else { encoding.lower(line.text) };
    let mut rest = &folded[..];
    let mut fields = [&b""[..]; 5];
    for (found, field) in fields.iter_mut().enumerate() {
        (*field, rest) = next_field(rest);
        if field.is_empty() {
            let path = source.path.clone();
            return Err(ReadTranscriptError::TooFewFields {
                path,
                line: line.number,
                found,
                expected: 5,
                fields: FIELDS,
            });
        }
    }
    let [file, channel, speaker, start, end] = fields;
    // Kept in single precision by NIST's scorer, which decides on which side of an end a word falls.
    let number = |what, field: &[u8]| {
        seconds(field).map(|s| f64::from(s as f32)).ok_or_else(|| not_a_number(source, line.number, what, field))
    };
    let (first, behind) = next_field(rest);
    let (labels, text) = if first.starts_with(b"<") { (Some(first.into()), behind) } else { (None, rest) };
    Ok(Segment {
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
}

fn next_field(text: &[u8]) -> (&[u8], &[u8]) {
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    let start = text.iter().position(|b| !is_blank(b)).unwrap_or(text.len());
    let len = text[start..].iter().position(is_blank).unwrap_or(text.len() - start);
    text[start..].split_at(len)
}

/// Checks that segments end after they begin.
pub fn check_times(source: &Source, segments: &[Segment]) -> Result<(), ReadTranscriptError> {
    match segments.iter().find(|segment| segment.end_s < segment.start_s) {
        Some(segment) => Err(ReadTranscriptError::EndBeforeStart {
            path: source.path.clone(),
            line: segment.line,
            start_s: segment.start_s,
            end_s: segment.end_s,
        }),
        None => Ok(()),
    }
}

/// Whether `text` says that this stretch of time is not to be scored.
fn is_ignored(text: &[u8], encoding: Encoding) -> bool {
    // Both sides are folded, since not every language folds `I` to `i`.
    let text = encoding.lower(text);
    IGNORED.iter().any(|mark| {
        let mark = encoding.lower(mark);
        text.windows(mark.len()).any(|window| window == mark)
    })
}
