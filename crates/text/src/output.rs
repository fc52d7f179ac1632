//! Results of recognition, and the formats they are written in.
//!
//! Every format is a pure function from the transcript to a text, so that a server and a command write the same bytes.
//!
//! ```
//! use srf_text::output::{
//!     Alternative, Delay, EndReason, Evidence, Format, Segment, TokenResult, Transcript, UnknownFormat, Word,
//! };
//!
//! let word = Word { text: "yes".into(), start_s: 0.5, end_s: 0.9, confidence: Some(0.98) };
//! let evidence = Evidence { posterior: 0.98, coupling_mass: 0.6, runner_up: "no".into(), agrees: true };
//! let delay = Delay { algorithmic_ms: 190.0, buffering_ms: 20.0, compute_ms: 2.0 };
//! let token = TokenResult {
//!     text: "yes".into(), start_s: 0.5, end_s: 0.9, confidence: Some(0.98), evidence: Some(evidence), delay: Some(delay),
//! };
//! let segment = Segment {
//!     text: "yes".into(),
//!     start_s: 0.5,
//!     end_s: 0.9,
//!     words: vec![word],
//!     tokens: vec![token],
//!     alternatives: vec![Alternative { text: "yet".into(), confidence: 0.02, score: -4.0 }],
//!     ended_by: Some(EndReason::Rule2),
//!     ..Segment::default()
//! };
//! println!("{}", segment.to_json());
//! let transcript = Transcript { id: "talk".into(), duration_s: 1.0, segments: vec![segment], ..Transcript::default() };
//! for format in Format::ALL {
//!     std::fs::write(std::env::temp_dir().join(format!("talk.{}", format.extension())), transcript.format(format))?;
//! }
//! assert_eq!("docx".parse::<Format>(), Err(UnknownFormat { found: "docx".to_owned() }));
//! # Ok::<(), std::io::Error>(())
//! ```

mod json;
mod plain;
mod subtitles;
mod textgrid;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use self::subtitles::SubtitleStream;

/// The result of one recording (or one channel of it): what was said and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The utterance id, or the name of the file without its extension.
    pub id: String,
    /// The recording; `None` if it did not come from a file.
    pub path: Option<PathBuf>,
    /// The channel, as CTM files name it; `A` where there is one.
    pub channel: String,
    /// Length of the recording in seconds.
    pub duration_s: f64,
    /// What is missing if the recording was cut off; the segments are those of what is there.
    pub incomplete: Option<String>,
    /// What was said, in order; an endpoint or the end of the recording ends each one.
    pub segments: Vec<Segment>,
}

/// What was said between two endpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// The text as it is read.
    pub text: String,
    /// Where its audio begins, in seconds from the start of the recording.
    pub start_s: f64,
    /// Where its audio ends.
    pub end_s: f64,
    /// The words; empty for phone models without a lexicon.
    pub words: Vec<Word>,
    /// The labels of the network.
    pub tokens: Vec<TokenResult>,
    /// How sure the recogniser is of the whole, 0 to 1.
    pub confidence: Option<f32>,
    /// Other readings, the most probable first, without this one.
    pub alternatives: Vec<Alternative>,
    /// The labels as classes of the model, the end of the sentence included where the model wrote it.
    pub classes: Vec<usize>,
    /// Natural logarithm of the score that hypotheses are ranked by.
    pub score: f64,
    /// Why the segment ended; `None` while it goes on.
    pub ended_by: Option<EndReason>,
}

/// Why a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The first endpoint rule: a long silence.
    Rule1,
    /// The second endpoint rule: a shorter silence after speech.
    Rule2,
    /// The third endpoint rule: a long utterance.
    Rule3,
    /// The label that ends a sentence.
    EndOfSentence,
    /// Silence, as voice activity detection found it.
    Vad,
    /// The stream was flushed or finished.
    Flush,
}

impl EndReason {
    /// As it is written in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule1 => "rule1",
            Self::Rule2 => "rule2",
            Self::Rule3 => "rule3",
            Self::EndOfSentence => "end_of_sentence",
            Self::Vad => "vad",
            Self::Flush => "flush",
        }
    }
}

/// A word and when it was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// Its spelling.
    pub text: String,
    /// Where it begins, in seconds from the start of the recording.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// How sure the recogniser is, 0 to 1.
    pub confidence: Option<f32>,
}

/// A label of the network, when it was said and why the network wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenResult {
    /// The label.
    pub text: String,
    /// Where it begins, in seconds from the start of the recording.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// How sure the recogniser is, 0 to 1.
    pub confidence: Option<f32>,
    /// What the routing says, for models with capsules.
    pub evidence: Option<Evidence>,
    /// Where the time between the sound and the token went.
    pub delay: Option<Delay>,
}

/// What the routing of the last layer says about a token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The softmax of the token where it peaks.
    pub posterior: f32,
    /// The share of all coupling that went to its capsule.
    pub coupling_mass: f32,
    /// The label with the next largest posterior.
    pub runner_up: String,
    /// Whether the capsule with the largest coupling is the one with the largest posterior.
    pub agrees: bool,
}

/// Where the time between a sound and its token went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Look-ahead of features and network: no machine can be faster.
    pub algorithmic_ms: f64,
    /// Waiting for the rest of a chunk.
    pub buffering_ms: f64,
    /// Computing.
    pub compute_ms: f64,
}

/// Another reading of a segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alternative {
    /// The text as it is read.
    pub text: String,
    /// Its share among the readings that were kept, 0 to 1.
    pub confidence: f32,
    /// Natural logarithm of what readings are ranked by.
    pub score: f64,
}

/// A format that transcripts are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// The words, a line for each segment.
    #[default]
    Text,
    /// Everything, one object a recording.
    Json,
    /// `file channel start duration word confidence`, as NIST's tools read it.
    Ctm,
    /// `words (id)`, as NIST's tools read it.
    Trn,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// Praat's tiers of words and tokens.
    TextGrid,
    /// A table with a row for each word.
    Csv,
}

/// How long a subtitle may be.
///
/// ```
/// use srf_text::output::{Format, SubtitleOptions, Transcript};
///
/// let options = SubtitleOptions { max_s: 4.0, ..SubtitleOptions::default() };
/// assert_eq!(Transcript::default().format_with(Format::Vtt, &options), "WEBVTT\n\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubtitleOptions {
    /// Characters per line.
    pub line_chars: usize,
    /// Lines of a cue.
    pub max_lines: usize,
    /// Seconds that a cue is shown.
    pub max_s: f64,
}

impl Default for SubtitleOptions {
    fn default() -> Self {
        Self { line_chars: 42, max_lines: 2, max_s: 7.0 }
    }
}

/// A name of a format that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown format `{found}`, expected one of {}", Format::ALL.map(|format| format.to_string()).join(", "))]
pub struct UnknownFormat {
    /// What was written.
    pub found: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 8] =
        [Format::Text, Format::Json, Format::Ctm, Format::Trn, Format::Srt, Format::Vtt, Format::TextGrid, Format::Csv];

    /// The ending of files in this format, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Json => "json",
            Format::Ctm => "ctm",
            Format::Trn => "trn",
            Format::Srt => "srt",
            Format::Vtt => "vtt",
            Format::TextGrid => "TextGrid",
            Format::Csv => "csv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            other => other.extension(),
        })
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let is_named = |format: &Format| {
            name.eq_ignore_ascii_case(format.extension()) || name.eq_ignore_ascii_case(&format.to_string())
        };
        Format::ALL.into_iter().find(is_named).ok_or_else(|| UnknownFormat { found: name.to_owned() })
    }
}

impl Transcript {
    /// The text of all segments, joined by spaces.
    pub fn text(&self) -> String {
        let texts = self.segments.iter().map(|segment| segment.text.as_str()).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join(" ")
    }

    /// This transcript alone as a whole file of `format`.
    ///
    /// A file of many recordings is the concatenation for text, CTM and trn, and for JSON with one object a line;
    /// for CSV drop the heading line of all but the first.
    pub fn format(&self, format: Format) -> String {
        self.format_with(format, &SubtitleOptions::default())
    }

    /// The event that ends a stream: everything but the segments, with `type` `end`.
    ///
    /// ```
    /// let transcript = srf_text::output::Transcript { id: "talk".into(), duration_s: 1.0, ..Default::default() };
    /// assert!(transcript.end_event().contains("\"type\":\"end\""));
    /// ```
    pub fn end_event(&self) -> String {
        json::end_event(self).to_string()
    }

    /// Like [`format`](Self::format), with other limits of subtitles.
    pub fn format_with(&self, format: Format, subtitles: &SubtitleOptions) -> String {
        match format {
            Format::Text => plain::text(self),
            Format::Json => json::format(self),
            Format::Ctm => plain::ctm(self),
            Format::Trn => plain::trn(self),
            Format::Srt => self::subtitles::srt(self, subtitles),
            Format::Vtt => self::subtitles::vtt(self, subtitles),
            Format::TextGrid => textgrid::format(self),
            Format::Csv => plain::csv(self),
        }
    }
}

impl Segment {
    /// The segment by itself as a JSON object on one line, as it stands in the list of a whole transcript.
    pub fn to_json(&self) -> String {
        json::segment(self).to_string()
    }

    /// The segment as an event of the stream `id`: [`to_json`](Self::to_json) with `id` and `type`, which is `partial`
    /// while the segment goes on and `final` once it has ended.
    ///
    /// ```
    /// let segment = srf_text::output::Segment { text: "yes".into(), ..Default::default() };
    /// assert!(segment.to_event("talk").contains("\"type\":\"partial\""));
    /// ```
    pub fn to_event(&self, id: &str) -> String {
        json::segment_event(self, id).to_string()
    }
}

#[cfg(test)]
mod tests;
