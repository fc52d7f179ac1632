//! Subtitles: cues that people can read in the time they are shown.
//!
//! A pause of more than a second and the end of a segment begin a new cue; [`SubtitleOptions`] limit its length.

use super::{Format, Segment, SubtitleOptions, Transcript, Word, plain};

const PAUSE_S: f64 = 1.0;
/// A cue stays this long where nothing follows, so that a short word can be read.
const MIN_CUE_S: f64 = 1.0;

struct Cue {
    start_s: f64,
    end_s: f64,
    lines: Vec<String>,
}

/// SubRip.
pub(super) fn srt(transcript: &Transcript, options: &SubtitleOptions) -> String {
    cues(transcript, options).iter().enumerate().map(|(index, cue)| cue.srt(index + 1)).collect()
}

/// WebVTT.
pub(super) fn vtt(transcript: &Transcript, options: &SubtitleOptions) -> String {
    VTT_HEADING.to_owned() + &cues(transcript, options).iter().map(Cue::vtt).collect::<String>()
}

const VTT_HEADING: &str = "WEBVTT\n\n";

impl Cue {
    fn srt(&self, number: usize) -> String {
        let (start, end) = (stamp(self.start_s, ','), stamp(self.end_s, ','));
        format!("{number}\n{start} --> {end}\n{}\n\n", self.lines.join("\n").replace("-->", "->"))
    }

    fn vtt(&self) -> String {
        let escape = |line: &String| line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let (start, end) = (stamp(self.start_s, '.'), stamp(self.end_s, '.'));
        format!("{start} --> {end}\n{}\n\n", self.lines.iter().map(escape).collect::<Vec<_>>().join("\n"))
    }

    /// Long enough to be read, but never over the next cue, and never of no length at all.
    fn fit(&mut self, next_s: f64, options: &SubtitleOptions) {
        let end_s = self.end_s.max(self.start_s + MIN_CUE_S).min(self.start_s + options.max_s);
        self.end_s = end_s.min(next_s).max(self.start_s + 0.001);
    }
}

/// Subtitles of a stream, cue by cue: together the cues are the file of the whole transcript.
///
/// ```
/// use srf_text::output::{Format, Segment, SubtitleOptions, SubtitleStream, Word};
///
/// let mut stream = SubtitleStream::new(Format::Srt, SubtitleOptions::default()).expect("SRT has cues");
/// let word = Word { text: "yes".into(), start_s: 0.5, end_s: 0.9, confidence: None };
/// let segment = Segment { text: "yes".into(), start_s: 0.0, end_s: 2.0, words: vec![word], ..Segment::default() };
/// assert_eq!(stream.push(&segment), "1\n00:00:00,500 --> 00:00:01,500\nyes\n\n");
/// assert_eq!(stream.finish(), "");
/// ```
pub struct SubtitleStream {
    is_vtt: bool,
    options: SubtitleOptions,
    n_written: usize,
    /// The last cue, as long as the next one may shorten it.
    pending: Option<Cue>,
    has_heading: bool,
}

impl SubtitleStream {
    /// `None` for formats that are not subtitles.
    pub fn new(format: Format, options: SubtitleOptions) -> Option<Self> {
        let is_vtt = match format {
            Format::Srt => false,
            Format::Vtt => true,
            _ => return None,
        };
        Some(Self { is_vtt, options, n_written: 0, pending: None, has_heading: false })
    }

    /// The cues that the next segment completes.
    ///
    /// A cue that would be shown beyond the end of the segment, because it is short, waits for the next segment.
    pub fn push(&mut self, segment: &Segment) -> String {
        let mut cues: Vec<Cue> = self.pending.take().into_iter().collect();
        cues.extend(segment_cues(&plain::units(segment), &self.options));
        if cues.last().is_some_and(|last| segment.end_s < last.end_s.max(last.start_s + MIN_CUE_S)) {
            self.pending = cues.pop();
        }
        self.write(cues)
    }

    /// The rest, at the end of the stream.
    pub fn finish(mut self) -> String {
        let last = self.pending.take();
        self.write(last.into_iter().collect())
    }

    fn write(&mut self, mut cues: Vec<Cue>) -> String {
        let after_s = self.pending.as_ref().map_or(f64::INFINITY, |cue| cue.start_s);
        fit_all(&mut cues, after_s, &self.options);
        let mut text = if self.is_vtt && !self.has_heading { VTT_HEADING.to_owned() } else { String::new() };
        self.has_heading = true;
        for cue in &cues {
            self.n_written += 1;
            text += &if self.is_vtt { cue.vtt() } else { cue.srt(self.n_written) };
        }
        text
    }
}

fn stamp(time_s: f64, point: char) -> String {
    let ms = (time_s.max(0.0) * 1000.0).round() as u64;
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{h:02}:{m:02}:{s:02}{point}{:03}", ms % 1000)
}

fn cues(transcript: &Transcript, options: &SubtitleOptions) -> Vec<Cue> {
    let mut cues: Vec<Cue> = transcript.segments.iter().flat_map(|s| segment_cues(&plain::units(s), options)).collect();
    fit_all(&mut cues, f64::INFINITY, options);
    cues
}

/// Fits each cue before the next one, the last before `after_s`.
fn fit_all(cues: &mut [Cue], after_s: f64, options: &SubtitleOptions) {
    let starts: Vec<f64> = cues.iter().skip(1).map(|cue| cue.start_s).chain([after_s]).collect();
    for (cue, next_s) in cues.iter_mut().zip(starts) {
        cue.fit(next_s, options);
    }
}

fn segment_cues(words: &[Word], options: &SubtitleOptions) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut previous_end_s = f64::NEG_INFINITY;
    for word in words {
        let pieces = pieces(&word.text, options.line_chars);
        if pieces.is_empty() {
            continue;
        }
        let longer: Vec<String> = texts.iter().chain(&pieces).cloned().collect();
        let is_joined = cues.last().is_some_and(|cue| {
            word.start_s - previous_end_s <= PAUSE_S
                && word.end_s - cue.start_s <= options.max_s
                && lines(&longer, options.line_chars).len() <= options.max_lines
        });
        previous_end_s = word.end_s;
        match cues.last_mut() {
            Some(cue) if is_joined => {
                texts = longer;
                (cue.end_s, cue.lines) = (word.end_s, lines(&texts, options.line_chars));
            }
            _ => {
                for part in pieces.chunks(options.max_lines.max(1)) {
                    texts = part.to_vec();
                    cues.push(Cue {
                        start_s: word.start_s,
                        end_s: word.end_s,
                        lines: lines(&texts, options.line_chars),
                    });
                }
            }
        }
    }
    share_time(&mut cues);
    cues
}

/// Cues of one word that is longer than a cue follow each other within its time.
fn share_time(cues: &mut [Cue]) {
    for part in cues.chunk_by_mut(|a, b| a.start_s == b.start_s) {
        let (start_s, length_s) = (part[0].start_s, part[part.len() - 1].end_s - part[0].start_s);
        let n_parts = part.len() as f64;
        for (index, cue) in part.iter_mut().enumerate().skip(1) {
            cue.start_s = start_s + length_s * index as f64 / n_parts;
        }
    }
}

/// A word, cut where it is longer than a line.
fn pieces(word: &str, line_chars: usize) -> Vec<String> {
    let chars: Vec<char> = word.chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }).collect();
    let pieces = chars.chunks(line_chars.max(1)).map(|piece| piece.iter().collect::<String>().trim().to_owned());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// Words in as few lines as possible, of about the same length where there are two.
fn lines(words: &[String], line_chars: usize) -> Vec<String> {
    let greedy = wrap(words, line_chars);
    if greedy.len() != 2 {
        return greedy;
    }
    let n_chars: usize = greedy.iter().map(|line| line.chars().count()).sum();
    let balanced = (n_chars / 2..=line_chars).map(|width| wrap(words, width)).find(|lines| lines.len() <= 2);
    balanced.unwrap_or(greedy)
}

fn wrap(words: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}
