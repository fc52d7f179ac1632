//! Transcripts as lines for people, for NIST's tools and for tables.

use super::{Segment, TokenResult, Transcript, Word};

/// The text, a line for each segment that has any.
pub(super) fn text(transcript: &Transcript) -> String {
    let texts = transcript.segments.iter().map(|segment| one_line(&segment.text));
    texts.filter(|text| !text.is_empty()).map(|text| text + "\n").collect()
}

/// `words (id)`, one line a recording.
pub(super) fn trn(transcript: &Transcript) -> String {
    let id = srf_base::ids::encode(&transcript.id);
    let text = one_line(&transcript.text());
    if text.is_empty() { format!("({id})\n") } else { format!("{text} ({id})\n") }
}

/// `file channel start duration word confidence`, one line a word.
pub(super) fn ctm(transcript: &Transcript) -> String {
    let file = srf_base::ids::encode(&transcript.id);
    let channel = if transcript.channel.is_empty() { "A".to_owned() } else { field(&transcript.channel) };
    let line = |word: Word| {
        let duration_s = (word.end_s - word.start_s).max(0.0);
        let confidence = word.confidence.map_or_else(|| "NA".to_owned(), |confidence| format!("{confidence:.4}"));
        format!("{file} {channel} {:.3} {duration_s:.3} {} {confidence}\n", word.start_s, field(&word.text))
    };
    transcript.segments.iter().flat_map(units).map(line).collect()
}

/// A table with a heading and a row for each word.
pub(super) fn csv(transcript: &Transcript) -> String {
    let mut text = "id,channel,segment,word,start_s,end_s,confidence\n".to_owned();
    for (index, segment) in transcript.segments.iter().enumerate() {
        for word in units(segment) {
            let confidence = word.confidence.map_or_else(String::new, |confidence| format!("{confidence:.4}"));
            let (id, channel) = (cell(&transcript.id), cell(&transcript.channel));
            let (word, start_s, end_s) = (cell(&word.text), word.start_s, word.end_s);
            text +=
                &[id, channel, index.to_string(), word, format!("{start_s:.3},{end_s:.3},{confidence}\n")].join(",");
        }
    }
    text
}

/// The words of a segment; its labels where it has no words.
pub(super) fn units(segment: &Segment) -> Vec<Word> {
    let as_word = |token: &TokenResult| Word {
        text: token.text.clone(),
        start_s: token.start_s,
        end_s: token.end_s,
        confidence: token.confidence,
    };
    let tokens = segment.tokens.iter().filter(|token| !token.text.trim().is_empty()).map(as_word);
    if segment.words.is_empty() { tokens.collect() } else { segment.words.clone() }
}

/// Without what would end a line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As one field between spaces.
fn field(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// As a cell of a table: in quotes where it has to be.
fn cell(text: &str) -> String {
    let needs_quotes = text.contains(['"', ',', '\n', '\r']);
    if needs_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
