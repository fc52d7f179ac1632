//! Builds words and texts with times from the hypotheses of a decoder.
//!
//! Characters are joined between spaces, labels that are words stand alone, and phones become words where a lexicon
//! told them; without one they have no words, and the text is the phones. The end of a sentence is never written.
//!
//! ```
//! use srf_text::decode::{Hypothesis, Token};
//! use srf_text::label_timing::LabelTiming;
//! use srf_text::labels::{LabelSet, Units};
//! use srf_text::words::{Clock, SpokenWord, confidence, segment, text, words};
//!
//! let labels = LabelSet::new(Units::Chars, [" ", "n", "o"])?;
//! let token = |class, slice| Token {
//!     class, start_slice: slice, end_slice: slice + 1, peak_slice: slice, confidence: 0.81,
//! };
//! let no = Hypothesis { tokens: vec![token(2, 5), token(3, 7)], ..Hypothesis::default() };
//! assert_eq!(text(&labels, None, &no), "no");
//! assert!(matches!(&words(&labels, None, &no)[..], [SpokenWord { first_token: 0, end_token: 2, .. }]));
//! assert_eq!(confidence(&no.tokens), Some(0.81));
//! let clock = Clock { start_s: 0.0, slice_s: 0.04 };
//! let found = segment(&labels, None, &[no], clock, &LabelTiming::default());
//! assert_eq!((found.text.as_str(), found.start_s), ("no", clock.time_s(5)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::decode::{Hypothesis, Token};
use crate::fusion::Lexicon;
use crate::label_timing::LabelTiming;
use crate::labels::pieces::WORD_START;
use crate::labels::{LabelSet, Units};
use crate::output::{Alternative, Segment, TokenResult, Word};

/// When slices are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Where slice 0 begins, in seconds from the start of the recording.
    pub start_s: f64,
    /// From one slice to the next.
    pub slice_s: f64,
}

impl Clock {
    /// Where a slice begins.
    pub fn time_s(&self, slice: usize) -> f64 {
        self.start_s + slice as f64 * self.slice_s
    }
}

/// A word and its tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenWord {
    /// Its spelling.
    pub text: String,
    /// Its first token.
    pub first_token: usize,
    /// The token behind its last one.
    pub end_token: usize,
}

/// The words of a hypothesis; none for phones without a lexicon.
pub fn words(labels: &LabelSet, lexicon: Option<&Lexicon>, hypothesis: &Hypothesis) -> Vec<SpokenWord> {
    match (lexicon, labels.units()) {
        (Some(lexicon), _) => {
            let name = |word| lexicon.word(word).unwrap_or_default().to_owned();
            let spans = hypothesis.words.iter();
            spans
                .map(|span| SpokenWord {
                    text: name(span.word),
                    first_token: span.first_token,
                    end_token: span.end_token,
                })
                .collect()
        }
        (None, Units::Phones) => Vec::new(),
        (None, Units::Words) => joined(labels, &hypothesis.tokens, |_, _| true),
        (None, Units::Chars) => joined(labels, &hypothesis.tokens, |before, symbol| before == " " || symbol == " "),
        (None, Units::Pieces) => {
            of_pieces(joined(labels, &hypothesis.tokens, |_, symbol| symbol.starts_with(WORD_START)))
        }
    }
}

/// Labels put together to words; `is_edge` says whether a word ends between two labels.
fn joined(labels: &LabelSet, tokens: &[Token], is_edge: impl Fn(&str, &str) -> bool) -> Vec<SpokenWord> {
    let mut words: Vec<SpokenWord> = Vec::new();
    let mut before = None;
    for (index, token) in tokens.iter().enumerate() {
        let symbol = written(labels, token.class);
        match (before, symbol) {
            (_, None | Some(" ")) => {}
            (Some(last), Some(symbol)) if !is_edge(last, symbol) => {
                let word = words.last_mut().expect("a label that was written began a word");
                word.text.push_str(symbol);
                word.end_token = index + 1;
            }
            (_, Some(symbol)) => {
                words.push(SpokenWord { text: symbol.to_owned(), first_token: index, end_token: index + 1 });
            }
        }
        before = symbol;
    }
    words
}

/// Words without the sign that began them; one that is nothing else is no word.
fn of_pieces(mut words: Vec<SpokenWord>) -> Vec<SpokenWord> {
    words.iter_mut().for_each(|word| word.text.retain(|c| c != WORD_START));
    words.retain(|word| !word.text.is_empty());
    words
}

/// The label of a class; none for what is never written.
fn written(labels: &LabelSet, class: usize) -> Option<&str> {
    if Some(class) == labels.end_of_sentence() { None } else { labels.symbol(class) }
}

/// The text of a hypothesis as it is read.
pub fn text(labels: &LabelSet, lexicon: Option<&Lexicon>, hypothesis: &Hypothesis) -> String {
    if lexicon.is_some() {
        let words = words(labels, lexicon, hypothesis);
        return words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    }
    let text = labels.decode(&hypothesis.classes());
    // Characters and pieces may come with more than one space between words.
    if matches!(labels.units(), Units::Chars | Units::Pieces) {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text
    }
}

/// How sure a decoder is of some tokens together: the geometric mean of their confidences.
pub fn confidence(tokens: &[Token]) -> Option<f32> {
    let sum: f64 = tokens.iter().map(|token| f64::from(token.confidence.max(f32::MIN_POSITIVE)).ln()).sum();
    (!tokens.is_empty()).then(|| (sum / tokens.len() as f64).exp() as f32)
}

/// The result of one utterance: the first of `hypotheses` with its words and tokens, the others as alternatives.
///
/// Hypotheses that read the same (they differ in silence, or in how words are said) are one reading, whose share is
/// the sum of theirs. The times of the segment are those of its first and last token.
pub fn segment(
    labels: &LabelSet,
    lexicon: Option<&Lexicon>,
    hypotheses: &[Hypothesis],
    clock: Clock,
    label_timing: &LabelTiming,
) -> Segment {
    let Some(best) = hypotheses.first() else { return Segment::default() };
    let mut readings = readings(labels, lexicon, hypotheses);
    let first = readings.remove(0);
    let spans = label_timing.spans(&best.tokens, clock);
    let tokens = best.tokens.iter().zip(&spans);
    Segment {
        text: first.text,
        start_s: spans.first().map_or(clock.start_s, |span| span[0]),
        end_s: spans.last().map_or(clock.start_s, |span| span[1]),
        words: words(labels, lexicon, best).into_iter().map(|word| timed(word, best, &spans)).collect(),
        tokens: tokens.filter_map(|(token, span)| token_result(labels, token, *span)).collect(),
        confidence: confidence(&best.tokens),
        alternatives: readings,
        classes: best.classes(),
        score: best.score,
        ended_by: None,
    }
}

/// Distinct readings in the order of the hypotheses, with their shares.
fn readings(labels: &LabelSet, lexicon: Option<&Lexicon>, hypotheses: &[Hypothesis]) -> Vec<Alternative> {
    let largest = hypotheses.iter().map(|h| h.score).fold(f64::NEG_INFINITY, f64::max);
    let weight = |h: &Hypothesis| if largest.is_finite() { (h.score - largest).exp() } else { 1.0 };
    let total: f64 = hypotheses.iter().map(weight).sum();
    let mut readings: Vec<Alternative> = Vec::new();
    for hypothesis in hypotheses {
        let text = text(labels, lexicon, hypothesis);
        let share = (weight(hypothesis) / total) as f32;
        match readings.iter_mut().find(|reading| reading.text == text) {
            Some(reading) => reading.confidence += share,
            None => readings.push(Alternative { text, confidence: share, score: hypothesis.score }),
        }
    }
    readings
}

fn timed(word: SpokenWord, hypothesis: &Hypothesis, spans: &[[f64; 2]]) -> Word {
    let range = word.first_token..word.end_token;
    let start_s = spans[range.clone()].first().map_or(0.0, |span| span[0]);
    let end_s = spans[range.clone()].last().map_or(0.0, |span| span[1]);
    Word { text: word.text, start_s, end_s, confidence: confidence(&hypothesis.tokens[range]) }
}

fn token_result(labels: &LabelSet, token: &Token, [start_s, end_s]: [f64; 2]) -> Option<TokenResult> {
    Some(TokenResult {
        text: written(labels, token.class)?.to_owned(),
        start_s,
        end_s,
        confidence: Some(token.confidence),
        evidence: None,
        delay: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::WordSpan;

    fn hypothesis(classes: &[usize], score: f64) -> Hypothesis {
        let token = |(at, class): (usize, &usize)| Token {
            class: *class,
            start_slice: 2 * at,
            end_slice: 2 * at + 1,
            peak_slice: 2 * at,
            confidence: 0.5,
        };
        let tokens = classes.iter().enumerate().map(token).collect();
        Hypothesis { tokens, words: Vec::new(), score, log_prob: score }
    }

    const CLOCK: Clock = Clock { start_s: 1.0, slice_s: 0.5 };

    #[test]
    fn characters_are_joined_between_spaces() {
        let set = LabelSet::new(Units::Chars, [" ", "A", "B", "<eos>"]).unwrap();
        let found = segment(&set, None, &[hypothesis(&[1, 2, 3, 1, 1, 3, 4], -1.0)], CLOCK, &LabelTiming::default());
        assert_eq!(found.text, "AB B");
        let words: Vec<(&str, f64, f64)> = found.words.iter().map(|w| (w.text.as_str(), w.start_s, w.end_s)).collect();
        assert_eq!(words, [("AB", 2.0, 3.5), ("B", 6.0, 6.5)]);
        assert!(found.words.iter().all(|word| (word.confidence.unwrap() - 0.5).abs() < 1e-6));
        assert_eq!(found.tokens.len(), 6, "the end of the sentence is not written");
    }

    #[test]
    fn phones_are_words_only_with_a_lexicon() {
        let set = LabelSet::new(Units::Phones, ["sil", "b", "iy"]).unwrap();
        let mut said = hypothesis(&[1, 2, 3], -1.0);
        let found = segment(&set, None, std::slice::from_ref(&said), CLOCK, &LabelTiming::default());
        assert_eq!((found.text.as_str(), found.words.len()), ("sil b iy", 0));
        let lexicon = Lexicon::parse("bee b iy\n", &set).unwrap();
        said.words = vec![WordSpan { word: 0, first_token: 1, end_token: 3 }];
        let found = segment(&set, Some(&lexicon), &[said], CLOCK, &LabelTiming::default());
        assert_eq!((found.text.as_str(), found.words[0].start_s, found.words[0].end_s), ("bee", 2.0, 3.5));
    }

    #[test]
    fn labels_that_are_words_stand_alone() {
        let set = LabelSet::new(Units::Words, ["one", "two"]).unwrap();
        let found = words(&set, None, &hypothesis(&[1, 1, 2], 0.0));
        assert_eq!(found.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), ["one", "one", "two"]);
    }

    #[test]
    fn what_reads_the_same_is_one_alternative() {
        let set = LabelSet::new(Units::Chars, [" ", "A", "B"]).unwrap();
        let list =
            [hypothesis(&[2], 0.0), hypothesis(&[3], -1.0), hypothesis(&[2, 1], -2.0), hypothesis(&[1, 3], -3.0)];
        let found = segment(&set, None, &list, CLOCK, &LabelTiming::default());
        assert_eq!((found.text.as_str(), found.alternatives.len()), ("A", 1));
        let total = 1.0 + (-1f64).exp() + (-2f64).exp() + (-3f64).exp();
        let expected = ((-1f64).exp() + (-3f64).exp()) / total;
        assert!((f64::from(found.alternatives[0].confidence) - expected).abs() < 1e-6);
    }
}
