//! When labels are really said: slices where a network writes them in, times of their sounds out.
//!
//! A network writes a label in the one or two slices where it is surest, somewhere inside the sound. How far the sound
//! reaches before and after is much the same each time, and is learned from utterances whose times are known.

use std::collections::BTreeMap;

use crate::decode::Token;
use crate::labels::LabelSet;
use crate::words::Clock;

/// Times that a label is learned from at least; rarer ones take what is usual for all.
const MIN_TIMES: usize = 3;
/// A longer reach is a mistake.
const MAX_REACH_S: f64 = 10.0;

/// What is added to the start and to the end of each label, in seconds, by class; nothing for classes beyond the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reach(Vec<[f64; 2]>);

/// A label where it was written and where it was said, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The label.
    pub class: usize,
    /// Start and end of the slices where it was written.
    pub written_s: [f64; 2],
    /// Start and end of its sound.
    pub said_s: [f64; 2],
}

impl Reach {
    /// The medians of what was observed, for `n_classes` labels; none if there is too little.
    pub fn learn(n_classes: usize, observed: &[Observed]) -> Option<Self> {
        let usual = median(observed.iter())?;
        let of_class = |class| median(observed.iter().filter(|seen| seen.class == class)).unwrap_or(usual);
        Some(Self((0..n_classes).map(of_class).collect()))
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Start and end of each token; where two would overlap, they meet in the middle.
    pub fn spans(&self, tokens: &[Token], clock: Clock) -> Vec<[f64; 2]> {
        let mut spans: Vec<[f64; 2]> = tokens.iter().map(|token| self.span(token, clock)).collect();
        for at in 1..spans.len() {
            let (end, start) = (spans[at - 1][1], spans[at][0]);
            if end > start {
                // Never before the start of the one nor behind the end of the other.
                let middle = f64::midpoint(end, start).clamp(spans[at - 1][0], spans[at][1].max(spans[at - 1][0]));
                spans[at - 1][1] = middle;
                spans[at] = [middle, spans[at][1].max(middle)];
            }
        }
        spans
    }

    /// Start and end of a token by itself.
    pub fn span(&self, token: &Token, clock: Clock) -> [f64; 2] {
        let [before_s, after_s] = self.0.get(token.class).copied().unwrap_or_default();
        let start_s = clock.time_s(token.start_slice) + before_s;
        [start_s, (clock.time_s(token.end_slice) + after_s).max(start_s)]
    }

    /// The labels with what is added to their start and end, as a JSON object.
    pub fn format(&self, labels: &LabelSet) -> String {
        let named = self.0.iter().enumerate().filter_map(|(class, reach)| Some((labels.symbol(class)?, reach)));
        let named: BTreeMap<&str, &[f64; 2]> = named.collect();
        serde_json::to_string_pretty(&named).expect("names and numbers have a JSON form") + "\n"
    }

    /// Reads it back; the message says what is wrong.
    pub fn parse(text: &str, labels: &LabelSet) -> Result<Self, String> {
        let named: BTreeMap<String, [f64; 2]> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut reach = vec![[0.0; 2]; labels.n_classes()];
        for (name, shifts) in named {
            let class =
                labels.class(&name).ok_or_else(|| format!("found label `{name}`, expected one of labels.txt"))?;
            if let Some(found) = shifts.iter().find(|shift| shift.is_nan() || shift.abs() > MAX_REACH_S) {
                return Err(format!("found {found} s for `{name}`, expected at most {MAX_REACH_S} s either way"));
            }
            reach[class] = shifts;
        }
        Ok(Self(reach))
    }
}

/// The median shift of starts and of ends; none of too few.
fn median<'a>(observed: impl Iterator<Item = &'a Observed>) -> Option<[f64; 2]> {
    let (mut starts, mut ends): (Vec<f64>, Vec<f64>) =
        observed.map(|seen| (seen.said_s[0] - seen.written_s[0], seen.said_s[1] - seen.written_s[1])).unzip();
    if starts.len() < MIN_TIMES {
        return None;
    }
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2].clamp(-MAX_REACH_S, MAX_REACH_S)
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
        Observed { class, written_s: [1.0, 1.5], said_s: [1.0 - shift_s, 1.5 + shift_s] }
    }

    #[test]
    fn common_labels_have_their_own_reach_and_rare_ones_the_usual() {
        let observed = [seen(1, 0.1), seen(1, 0.2), seen(1, 0.9), seen(2, 0.3), seen(2, 0.3)];
        let reach = Reach::learn(3, &observed).unwrap();
        let near = |found: [f64; 2], shift: f64| found.iter().all(|s| (s.abs() - shift).abs() < 1e-9);
        assert!(near(reach.0[1], 0.2) && near(reach.0[2], 0.3), "{reach:?}");
        assert_eq!(Reach::learn(3, &observed[..2]), None);
    }

    #[test]
    fn spans_widen_and_never_overlap() {
        let reach = Reach(vec![[0.0; 2], [-0.6, 0.1], [-0.6, 0.1]]);
        assert_eq!(reach.spans(&[token(1, 2), token(2, 8)], CLOCK), [[0.4, 1.6], [3.4, 4.6]]);
        let close = reach.spans(&[token(1, 2), token(2, 3), token(1, 4)], CLOCK);
        assert!(close.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{close:?}");
        assert!(close.iter().all(|[start, end]| start <= end), "{close:?}");
        assert_eq!(Reach::default().spans(&[token(1, 2)], CLOCK), [[1.0, 1.5]]);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_strange_files_are_refused() {
        let labels = LabelSet::new(Units::Words, ["one", "two"]).unwrap();
        let reach = Reach(vec![[0.0; 2], [-0.5, 0.25], [-0.125, 0.0], [0.0; 2]]);
        assert_eq!(Reach::parse(&reach.format(&labels), &labels), Ok(reach));
        for (text, part) in [("{\"three\": [0, 0]}", "`three`"), ("{\"one\": [0, 99]}", "99"), ("[]", "expected")] {
            let message = Reach::parse(text, &labels).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
