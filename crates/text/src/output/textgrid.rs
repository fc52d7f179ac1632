//! Praat's TextGrid: intervals without gaps, words above labels.

use super::{Transcript, Word, plain};

/// Shorter intervals than this are not shown.
const MIN_S: f64 = 0.001;

pub(super) fn format(transcript: &Transcript) -> String {
    let words: Vec<Word> = transcript.segments.iter().flat_map(|segment| segment.words.clone()).collect();
    let bare = |segment: &super::Segment| plain::units(&super::Segment { words: Vec::new(), ..segment.clone() });
    let tokens: Vec<Word> = transcript.segments.iter().flat_map(bare).collect();
    let last = words.iter().chain(&tokens).map(|word| word.end_s).fold(0.0, f64::max);
    let end_s = transcript.duration_s.max(last + MIN_S);
    let tiers = [("words", words), ("tokens", tokens)];
    let head = "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n";
    let size = format!("xmin = 0\nxmax = {end_s:.3}\ntiers? <exists>\nsize = {}\nitem []:\n", tiers.len());
    let tiers = tiers.iter().enumerate();
    head.to_owned()
        + &size
        + &tiers.map(|(index, (name, words))| tier(index + 1, name, words, end_s)).collect::<String>()
}

fn tier(number: usize, name: &str, words: &[Word], end_s: f64) -> String {
    let intervals = intervals(words, end_s);
    let head = format!(
        "    item [{number}]:\n        class = \"IntervalTier\"\n        name = \"{name}\"\n        xmin = 0\n        \
         xmax = {end_s:.3}\n        intervals: size = {}\n",
        intervals.len()
    );
    let body = intervals.iter().enumerate().map(|(index, (start_s, end_s, text))| {
        let text = text.replace('"', "\"\"");
        format!(
            "        intervals [{}]:\n            xmin = {start_s:.3}\n            xmax = {end_s:.3}\n            \
             text = \"{text}\"\n",
            index + 1
        )
    });
    head + &body.collect::<String>()
}

/// Words in the order of time, none over another, with empty intervals between.
fn intervals(words: &[Word], end_s: f64) -> Vec<(f64, f64, String)> {
    let to_ms = |s: f64| (s * 1000.0).round() / 1000.0;
    let end_s = to_ms(end_s);
    let mut intervals = Vec::new();
    let mut now_s = 0.0;
    for word in words {
        let start_s = to_ms(word.start_s).max(now_s);
        let stop_s = to_ms(word.end_s).max(to_ms(start_s + MIN_S)).min(end_s);
        if stop_s <= start_s {
            continue;
        }
        if now_s < start_s {
            intervals.push((now_s, start_s, String::new()));
        }
        intervals.push((start_s, stop_s, word.text.clone()));
        now_s = stop_s;
    }
    if now_s < end_s {
        intervals.push((now_s, end_s, String::new()));
    }
    intervals
}
