//! Subtitles: cues that people can read in the time they are shown.
//!
//! A pause of more than a second and the end of a segment begin a new cue; [`SubtitleOptions`] limit its length.

use super::{SubtitleOptions, Transcript, Word, plain};

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
    let cue = |(index, cue): (usize, &Cue)| {
        let (start, end) = (stamp(cue.start_s, ','), stamp(cue.end_s, ','));
        format!("{}\n{start} --> {end}\n{}\n\n", index + 1, cue.lines.join("\n").replace("-->", "->"))
    };
    cues(transcript, options).iter().enumerate().map(cue).collect()
}

/// WebVTT.
pub(super) fn vtt(transcript: &Transcript, options: &SubtitleOptions) -> String {
    let escape = |line: &String| line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let cue = |cue: &Cue| {
        let (start, end) = (stamp(cue.start_s, '.'), stamp(cue.end_s, '.'));
        format!("{start} --> {end}\n{}\n\n", cue.lines.iter().map(escape).collect::<Vec<_>>().join("\n"))
    };
    "WEBVTT\n\n".to_owned() + &cues(transcript, options).iter().map(cue).collect::<String>()
}

fn stamp(time_s: f64, point: char) -> String {
    let ms = (time_s.max(0.0) * 1000.0).round() as u64;
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{h:02}:{m:02}:{s:02}{point}{:03}", ms % 1000)
}

fn cues(transcript: &Transcript, options: &SubtitleOptions) -> Vec<Cue> {
    let mut cues: Vec<Cue> = transcript.segments.iter().flat_map(|s| segment_cues(&plain::units(s), options)).collect();
    let starts: Vec<f64> = cues.iter().skip(1).map(|cue| cue.start_s).chain([f64::INFINITY]).collect();
    for (cue, next_s) in cues.iter_mut().zip(starts) {
        let end_s = cue.end_s.max(cue.start_s + MIN_CUE_S).min(cue.start_s + options.max_s);
        // Never over the next one, and never of no length at all.
        cue.end_s = end_s.min(next_s).max(cue.start_s + 0.001);
    }
    cues
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
