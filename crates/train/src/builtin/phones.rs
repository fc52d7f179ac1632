//! The synthesiser's phones as TIMIT's transcribers would write them: timed segments in, phones of the 61 out.
//!
//! Stops get their closure, silences become `h#` and `pau`, and vowels and liquids their reduced form where the
//! place asks for it. What the voice does not do (taps `dx` and `nx`, the glottal stop `q`) is not written.

use super::voice::{RATE_HZ, Segment, Span};

/// How much of a stop is closure.
const CLOSURE_SHARE: f32 = 0.55;

/// A burst is not longer than this; what remains is closure.
const MAX_BURST_SAMPLES: usize = (RATE_HZ as usize * 60) / 1000;

/// The phones of `segments`, which lie at `spans`; empty segments (cut off at the end) are left out.
pub(super) fn to_timit(segments: &[Segment], spans: &[(usize, usize)]) -> Vec<Span> {
    let mut phones: Vec<Span> = Vec::with_capacity(segments.len() * 3 / 2);
    let mut index = 0;
    while index < segments.len() {
        if let Some(name) = syllabic(segments, index) {
            push(&mut phones, spans[index].0, spans[index + 1].1, name);
            index += 2;
        } else {
            write_one(&mut phones, segments, spans, index);
            index += 1;
        }
    }
    phones
}

fn push(phones: &mut Vec<Span>, start: usize, end: usize, name: &str) {
    if start < end {
        phones.push(Span { start, end, name: name.to_owned() });
    }
}

fn write_one(phones: &mut Vec<Span>, segments: &[Segment], spans: &[(usize, usize)], index: usize) {
    let (start, end) = spans[index];
    let phone = segments[index].phone.as_str();
    if phone == "pau" {
        let is_edge = start == 0 || index + 1 == segments.len();
        push(phones, start, end, if is_edge { "h#" } else { "pau" });
        return;
    }
    let Some(closure) = closure(phone) else {
        push(phones, start, end, allophone(segments, index));
        return;
    };
    if is_unreleased(segments, index) {
        push(phones, start, end, closure);
        return;
    }
    let n_samples = end - start;
    let n_burst = (n_samples - (n_samples as f32 * CLOSURE_SHARE) as usize).min(burst_limit(phone));
    push(phones, start, end - n_burst, closure);
    push(phones, end - n_burst, end, phone);
}

fn closure(phone: &str) -> Option<&'static str> {
    Some(match phone {
        "b" => "bcl",
        "d" | "jh" => "dcl",
        "g" => "gcl",
        "p" => "pcl",
        "t" | "ch" => "tcl",
        "k" => "kcl",
        _ => return None,
    })
}

/// An affricate's release is a fricative, as long as it happens to be.
fn burst_limit(phone: &str) -> usize {
    if matches!(phone, "ch" | "jh") { usize::MAX } else { MAX_BURST_SAMPLES }
}

/// A stop runs into another stop of the next word without being released.
fn is_unreleased(segments: &[Segment], index: usize) -> bool {
    let is_stop = |segment: &Segment| closure(&segment.phone).is_some();
    let this = &segments[index];
    segments.get(index + 1).is_some_and(|next| is_stop(next) && is_stop(this) && next.word != this.word)
        && !matches!(this.phone.as_str(), "ch" | "jh")
}

/// `ax` before a final liquid or nasal of the same word is written with it, as one syllabic consonant.
fn syllabic(segments: &[Segment], index: usize) -> Option<&'static str> {
    let (this, next) = (&segments[index], segments.get(index + 1)?);
    let previous = index.checked_sub(1).map_or("pau", |before| segments[before].phone.as_str());
    let is_final = segments.get(index + 2).is_none_or(|after| after.word != next.word);
    if this.phone != "ax" || this.word != next.word || this.word.is_none() || !is_final {
        return None;
    }
    match (previous, next.phone.as_str()) {
        ("t" | "d" | "s" | "z" | "sh" | "zh" | "v" | "k" | "g" | "p" | "b", "l") => Some("el"),
        ("t" | "d" | "s" | "z" | "sh" | "zh", "n") => Some("en"),
        ("p" | "b" | "z" | "dh", "m") => Some("em"),
        ("k" | "g", "ng") => Some("eng"),
        _ => None,
    }
}

/// The form a phone takes in its place.
fn allophone(segments: &[Segment], index: usize) -> &str {
    let this = &segments[index];
    let previous = index.checked_sub(1).map_or("pau", |before| segments[before].phone.as_str());
    let next = segments.get(index + 1).map_or("pau", |after| after.phone.as_str());
    match this.phone.as_str() {
        "hh" if is_voiced(previous) => "hv",
        "ih" if !this.is_stressed => "ix",
        "er" if !this.is_stressed => "axr",
        "ax" if is_voiceless(previous) && is_voiceless(next) => "ax-h",
        "uw" if matches!(previous, "t" | "d" | "n" | "s" | "z" | "y" | "l" | "ch" | "jh") => "ux",
        phone => phone,
    }
}

fn is_voiceless(phone: &str) -> bool {
    matches!(phone, "p" | "t" | "k" | "ch" | "f" | "th" | "s" | "sh" | "hh")
}

fn is_voiced(phone: &str) -> bool {
    phone != "pau" && !is_voiceless(phone)
}
