//! The voice of the built-in corpus: speaks a sentence and gives the times of its words and phones.
//!
//! The phones of the synthesiser are written as TIMIT's transcribers would write them, in the 61: stops get their
//! closure, silences become `h#` and `pau`, and vowels and liquids take their reduced forms. What the voice does not
//! do (the taps `dx` and `nx`, the glottal stop `q`) is not written.

use flite_rs::Engine;

use super::grammar::Sentence;

/// Samples per second of the voice and of the corpus.
pub const RATE_HZ: u32 = 16_000;

/// How a sentence is spoken, relative to the voice as recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// 1 is the natural duration, more is slower.
    pub stretch: f32,
    /// Mean pitch.
    pub pitch_hz: f32,
    /// How far the melody moves around it (a standard deviation).
    pub pitch_range_hz: f32,
}

/// A stretch of an utterance, in samples from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first sample.
    pub start: usize,
    /// One past its last.
    pub end: usize,
    /// The phone or word.
    pub name: String,
}

/// What was said, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech {
    /// At [`RATE_HZ`], on the scale of 16-bit integers.
    pub samples: Vec<f32>,
    /// TIMIT's phones, from the first sample to the last without a gap.
    pub phones: Vec<Span>,
    /// The words of the sentence, in order.
    pub words: Vec<Span>,
}

/// A synthesiser, to be made once a thread.
pub struct Voice {
    engine: Engine,
}

/// A phone as the synthesiser timed it.
struct Segment {
    phone: String,
    end_s: f32,
    /// Which word of the sentence it belongs to; none for pauses.
    word: Option<usize>,
    is_stressed: bool,
}

impl Voice {
    /// The one built-in voice, a man's at 16 kHz.
    pub fn new() -> Self {
        let mut engine = Engine::new();
        assert!(engine.select_voice("kal16"), "the 16 kHz voice is compiled in");
        Self { engine }
    }

    /// Says `sentence`.
    pub fn speak(&mut self, sentence: &Sentence, manner: Manner) -> Speech {
        self.engine.set_duration_stretch(manner.stretch);
        let params = self.engine.params_mut();
        params.int_f0_target_mean = manner.pitch_hz;
        params.int_f0_target_stddev = manner.pitch_range_hz;
        let (segments, words) = self.analyse(&sentence.spoken);
        let samples: Vec<f32> = self.engine.synthesize(&sentence.spoken).samples.into_iter().map(f32::from).collect();
        let spans = to_samples(&segments, samples.len());
        Speech { words: word_spans(&segments, &spans, words), phones: to_timit(&segments, &spans), samples }
    }

    /// The timed phones of a sentence and the words they belong to.
    fn analyse(&self, spoken: &str) -> (Vec<Segment>, Vec<String>) {
        let analysis = self.engine.analyse(spoken);
        let words: Vec<_> = analysis.iter_relation("Word").collect();
        let segments = analysis.iter_relation("Segment").map(|segment| {
            let syllable = analysis.item_as(segment, "SylStructure").and_then(|item| analysis.parent(item));
            let word = syllable.and_then(|syllable| analysis.parent(syllable));
            Segment {
                phone: analysis.name(segment).to_owned(),
                end_s: analysis.feature_f32(segment, "end"),
                word: word.and_then(|word| words.iter().position(|other| analysis.same_item(*other, word))),
                is_stressed: syllable.is_some_and(|syllable| analysis.feature_str(syllable, "stress") == "1"),
            }
        });
        (segments.collect(), spoken.split_whitespace().map(|word| word.replace([',', '.', '?'], "")).collect())
    }
}

impl Default for Voice {
    fn default() -> Self {
        Self::new()
    }
}

/// Where each segment starts and ends. The synthesiser stops in the middle of the last pause, so the last ones are cut.
fn to_samples(segments: &[Segment], n_samples: usize) -> Vec<(usize, usize)> {
    let mut start = 0;
    let mut spans = Vec::with_capacity(segments.len());
    for segment in segments {
        let end = ((segment.end_s * RATE_HZ as f32) as usize).clamp(start, n_samples);
        spans.push((start, end));
        start = end;
    }
    if let Some(last) = spans.last_mut() {
        last.1 = n_samples;
    }
    spans
}

fn word_spans(segments: &[Segment], spans: &[(usize, usize)], words: Vec<String>) -> Vec<Span> {
    let timed = words.into_iter().enumerate().filter_map(|(index, name)| {
        let mut of_word =
            segments.iter().zip(spans).filter(|(segment, _)| segment.word == Some(index)).map(|(_, span)| span);
        let first = of_word.next()?;
        Some(Span { start: first.0, end: of_word.next_back().unwrap_or(first).1, name })
    });
    timed.collect()
}

/// How much of a stop is closure.
const CLOSURE_SHARE: f32 = 0.55;

/// A burst is not longer than this; what remains is closure.
const MAX_BURST_SAMPLES: usize = (RATE_HZ as usize * 60) / 1000;

/// The phones of `segments`, which lie at `spans`; empty segments (cut off at the end) are left out.
fn to_timit(segments: &[Segment], spans: &[(usize, usize)]) -> Vec<Span> {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use fastrand::Rng;
    use srf_text::labels::timit::{PHONES_61, PhoneSet};

    use super::*;

    const PLAIN: Manner = Manner { stretch: 1.0, pitch_hz: 110.0, pitch_range_hz: 15.0 };

    fn speeches(n: usize) -> Vec<(Sentence, Speech)> {
        let mut rng = Rng::with_seed(7);
        let mut voice = Voice::new();
        let sentences = (0..n).map(|_| Sentence::random(&mut rng));
        sentences.map(|sentence| (sentence.clone(), voice.speak(&sentence, PLAIN))).collect()
    }

    #[test]
    fn every_word_is_timed_and_in_order() {
        for (sentence, speech) in speeches(300) {
            let words: Vec<&str> = speech.words.iter().map(|word| word.name.as_str()).collect();
            assert_eq!(words.join(" "), sentence.text());
            assert!(speech.words.is_sorted_by(|a, b| a.end <= b.start), "{sentence:?}");
            assert!(speech.words.iter().all(|word| word.start < word.end && word.end <= speech.samples.len()));
        }
    }

    #[test]
    fn phones_cover_every_sample_once() {
        for (sentence, speech) in speeches(300) {
            assert_eq!(speech.phones.first().unwrap().start, 0);
            assert_eq!(speech.phones.last().unwrap().end, speech.samples.len());
            assert!(speech.phones.windows(2).all(|pair| pair[0].end == pair[1].start), "{sentence:?}");
            assert!(speech.phones.iter().all(|phone| phone.start < phone.end), "{sentence:?} {:?}", speech.phones);
        }
    }

    #[test]
    fn phones_are_timits_and_all_39_classes_occur_but_the_tap() {
        let speeches = speeches(600);
        let names: HashSet<&str> =
            speeches.iter().flat_map(|(_, s)| &s.phones).map(|phone| phone.name.as_str()).collect();
        assert!(names.iter().all(|name| PHONES_61.contains(name)), "{names:?}");
        let folded: HashSet<&str> = names.iter().filter_map(|name| PhoneSet::Score39.fold(name).written()).collect();
        let missing: Vec<_> = PhoneSet::Score39.labels().symbols().to_vec();
        let missing: Vec<_> = missing.into_iter().filter(|phone| !folded.contains(phone.as_str())).collect();
        assert_eq!(missing, ["dx"], "the voice says every `t` as a `t`");
        assert!(50 <= names.len(), "{} of 61: {names:?}", names.len());
    }

    #[test]
    fn slower_is_longer_in_proportion() {
        let sentence = Sentence::shared(0);
        let mut voice = Voice::new();
        let n_plain = voice.speak(&sentence, PLAIN).samples.len() as f32;
        let n_slow = voice.speak(&sentence, Manner { stretch: 1.5, ..PLAIN }).samples.len() as f32;
        assert!((n_slow / n_plain - 1.5).abs() < 0.03, "{}", n_slow / n_plain);
    }

    #[test]
    fn the_pauses_around_are_quieter_than_the_speech() {
        for (_, speech) in speeches(20) {
            let energy = |from: usize, to: usize| {
                speech.samples[from..to].iter().map(|v| v * v).sum::<f32>() / (to - from) as f32
            };
            let first = &speech.phones[0];
            let (from, to) = (speech.words[0].start, speech.words.last().unwrap().end);
            assert!(energy(first.start, first.end) * 30.0 < energy(from, to));
        }
    }
}
