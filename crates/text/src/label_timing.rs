//! Corrects the times of labels from the slices where the network emits them to the sounds themselves.
//!
//! A CTC network emits a label in the one or two slices where it is most certain, somewhere inside the sound. How far
//! the sound extends before and after is nearly constant for a label, so it is estimated from utterances with known times.
//!
//! ```
//! use srf_text::decode::Token;
//! use srf_text::label_timing::{LabelTiming, Observed};
//! use srf_text::words::Clock;
//!
//! // Class 1 is emitted in 40 ms in the middle of a sound of 100 ms.
//! let observed = vec![Observed { class: 1, emitted_s: [0.23, 0.27], reference_s: [0.2, 0.3] }; 100];
//! let timing = LabelTiming::learn(3, &observed).expect("100 observations are enough");
//! let clock = Clock { start_s: 0.0, slice_s: 0.04 };
//! let token = Token { class: 1, start_slice: 10, end_slice: 11, peak_slice: 10, confidence: 1.0 };
//! let [start_s, end_s] = timing.span(&token, clock);
//! assert!((start_s - 0.37).abs() < 1e-9 && (end_s - 0.47).abs() < 1e-9);
//! assert_eq!(timing.spans(&[token], clock), [[start_s, end_s]]);
//! assert!(LabelTiming::default().is_empty());
//! ```

use std::collections::BTreeMap;

use crate::decode::Token;
use crate::labels::LabelSet;
use crate::words::Clock;

/// Labels with fewer observations use the median over all labels.
const MIN_TIMES: usize = 3;
/// Larger corrections are mistakes.
const MAX_SHIFT_S: f64 = 10.0;

/// Corrections of the start and end of each label, in seconds, by class; zero for classes beyond the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelTiming(Vec<[f64; 2]>);

/// A label with the slices that emitted it and its reference times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Its class.
    pub class: usize,
    /// Start and end of the slices that emitted it.
    pub emitted_s: [f64; 2],
    /// Start and end in the reference.
    pub reference_s: [f64; 2],
}

impl LabelTiming {
    /// Estimates the corrections of `n_classes` labels as medians; `None` if there are too few observations.
    pub fn learn(n_classes: usize, observed: &[Observed]) -> Option<Self> {
        let usual = median(observed.iter())?;
        let of_class = |class| median(observed.iter().filter(|seen| seen.class == class)).unwrap_or(usual);
        Some(Self((0..n_classes).map(of_class).collect()))
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Start and end of each token in seconds; overlapping neighbours meet in the middle.
    pub fn spans(&self, tokens: &[Token], clock: Clock) -> Vec<[f64; 2]> {
        let mut spans: Vec<[f64; 2]> = tokens.iter().map(|token| self.span(token, clock)).collect();
        for at in 1..spans.len() {
            let (end, start) = (spans[at - 1][1], spans[at][0]);
            if end > start {
                // Never before the start of the first nor after the end of the second.
                let middle = f64::midpoint(end, start).clamp(spans[at - 1][0], spans[at][1].max(spans[at - 1][0]));
                spans[at - 1][1] = middle;
                spans[at] = [middle, spans[at][1].max(middle)];
            }
        }
        spans
    }

    /// Start and end of one token, ignoring its neighbours.
    pub fn span(&self, token: &Token, clock: Clock) -> [f64; 2] {
        let [before_s, after_s] = self.0.get(token.class).copied().unwrap_or_default();
        let start_s = clock.time_s(token.start_slice) + before_s;
        [start_s, (clock.time_s(token.end_slice) + after_s).max(start_s)]
    }

    /// The corrections as a JSON object from label to `[start, end]`.
    pub fn format(&self, labels: &LabelSet) -> String {
        let named = self.0.iter().enumerate().filter_map(|(class, shifts)| Some((labels.symbol(class)?, shifts)));
        let named: BTreeMap<&str, &[f64; 2]> = named.collect();
        serde_json::to_string_pretty(&named).expect("names and numbers have a JSON form") + "\n"
    }

    /// Reads what [`Self::format`] wrote; the error is a message.
    pub fn parse(text: &str, labels: &LabelSet) -> Result<Self, String> {
        let named: BTreeMap<String, [f64; 2]> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut timing = vec![[0.0; 2]; labels.n_classes()];
        for (name, shifts) in named {
            let class =
                labels.class(&name).ok_or_else(|| format!("found label `{name}`, expected one of labels.txt"))?;
            if let Some(found) = shifts.iter().find(|shift| shift.is_nan() || shift.abs() > MAX_SHIFT_S) {
                return Err(format!("found {found} s for `{name}`, expected at most {MAX_SHIFT_S} s either way"));
            }
            timing[class] = shifts;
        }
        Ok(Self(timing))
    }
}

/// The median shifts of starts and ends; `None` if there are too few.
fn median<'a>(observed: impl Iterator<Item = &'a Observed>) -> Option<[f64; 2]> {
    let (mut starts, mut ends): (Vec<f64>, Vec<f64>) =
        observed.map(|seen| (seen.reference_s[0] - seen.emitted_s[0], seen.reference_s[1] - seen.emitted_s[1])).unzip();
    if starts.len() < MIN_TIMES {
        return None;
    }
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2].clamp(-MAX_SHIFT_S, MAX_SHIFT_S)
    };
    Some([middle(&mut starts), middle(&mut ends)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Units;

    const CLOCK: Clock = Clock { start_s: 0.0, slice_s: 0.5 };

    fn token(class: usize, slice: usize) -> Token {
        Token { class, start_slice: slice, end_slice: slice + 1, peak_slice: slice, confidence: 1.0 }
    }

    fn seen(class: usize, shift_s: f64) -> Observed {
        Observed { class, emitted_s: [1.0, 1.5], reference_s: [1.0 - shift_s, 1.5 + shift_s] }
    }

    #[test]
    fn common_labels_have_their_own_timing_and_rare_ones_the_usual() {
        let observed = [seen(1, 0.1), seen(1, 0.2), seen(1, 0.9), seen(2, 0.3), seen(2, 0.3)];
        let timing = LabelTiming::learn(3, &observed).unwrap();
        let near = |found: [f64; 2], shift: f64| found.iter().all(|s| (s.abs() - shift).abs() < 1e-9);
        assert!(near(timing.0[1], 0.2) && near(timing.0[2], 0.3), "{timing:?}");
        assert_eq!(LabelTiming::learn(3, &observed[..2]), None);
    }

    #[test]
    fn spans_widen_and_never_overlap() {
        let timing = LabelTiming(vec![[0.0; 2], [-0.6, 0.1], [-0.6, 0.1]]);
        assert_eq!(timing.spans(&[token(1, 2), token(2, 8)], CLOCK), [[0.4, 1.6], [3.4, 4.6]]);
        let close = timing.spans(&[token(1, 2), token(2, 3), token(1, 4)], CLOCK);
        assert!(close.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{close:?}");
        assert!(close.iter().all(|[start, end]| start <= end), "{close:?}");
        assert_eq!(LabelTiming::default().spans(&[token(1, 2)], CLOCK), [[1.0, 1.5]]);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_strange_files_are_refused() {
        let labels = LabelSet::new(Units::Words, ["one", "two"]).unwrap();
        let timing = LabelTiming(vec![[0.0; 2], [-0.5, 0.25], [-0.125, 0.0], [0.0; 2]]);
        assert_eq!(LabelTiming::parse(&timing.format(&labels), &labels), Ok(timing));
        for (text, part) in [("{\"three\": [0, 0]}", "`three`"), ("{\"one\": [0, 99]}", "99"), ("[]", "expected")] {
            let message = LabelTiming::parse(text, &labels).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
