//! Endpoint rules: when an utterance ends by itself.
//!
//! Three rules with the usual names, each of the form "this much silence, after this much utterance, with or without
//! speech", and the end-of-sentence label where the model has one.
//! A slice is silent when its most probable class is the blank, a silence, the space or the end of the sentence.
//! Only a silent slice ends an utterance, so that no label is cut in two; an utterance that is never silent ends all
//! the same at twice the length of a rule that names one.

use srf_base::silence::is_silence;
use srf_text::labels::{LabelSet, PADDING};
use srf_text::output::EndReason;

/// When a rule ends an utterance: all three must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Whether something must have been said.
    pub must_contain_nonsilence: bool,
    /// So much silence at the end.
    pub min_trailing_silence_s: f64,
    /// So long an utterance, silence included.
    pub min_utterance_length_s: f64,
}

/// The rules of a stream; any of them that holds ends the utterance.
///
/// ```
/// use srf::{EndpointRules, Rule};
///
/// let rules = EndpointRules {
///     // Dictation: half a second of silence after a word ends the utterance.
///     rule2: Rule { must_contain_nonsilence: true, min_trailing_silence_s: 0.5, min_utterance_length_s: 0.0 },
///     ..EndpointRules::default()
/// };
/// # assert!(rules.rule1.min_trailing_silence_s > rules.rule2.min_trailing_silence_s);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointRules {
    /// Long silence, whether or not anything was said.
    pub rule1: Rule,
    /// Shorter silence after something was said.
    pub rule2: Rule,
    /// A long utterance.
    pub rule3: Rule,
    /// Whether the end-of-sentence label ends an utterance, where the model has it.
    pub end_of_sentence: bool,
}

impl Default for EndpointRules {
    fn default() -> Self {
        let rule = |must_contain_nonsilence, min_trailing_silence_s, min_utterance_length_s| Rule {
            must_contain_nonsilence,
            min_trailing_silence_s,
            min_utterance_length_s,
        };
        Self {
            rule1: rule(false, 2.4, 0.0),
            rule2: rule(true, 1.2, 0.0),
            rule3: rule(false, 0.0, 20.0),
            end_of_sentence: true,
        }
    }
}

/// What a class is to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Silence,
    EndOfSentence,
    Speech,
}

/// What the classes of a label set are to the rules.
#[derive(Clone, Debug)]
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(crate) fn new(labels: &LabelSet) -> Self {
        let kind = |class: usize| match labels.symbol(class) {
            None | Some(" ") => Kind::Silence,
            Some(_) if Some(class) == labels.end_of_sentence() => Kind::EndOfSentence,
            Some(symbol) if is_silence(symbol) => Kind::Silence,
            Some(_) => Kind::Speech,
        };
        Self((0..labels.n_classes()).map(kind).collect())
    }
}

/// The utterance so far, as the rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Endpointer {
    rules: EndpointRules,
    slice_s: f64,
    n_slices: usize,
    n_silent: usize,
    has_speech: bool,
}

impl Endpointer {
    pub(crate) fn new(rules: EndpointRules, slice_s: f64) -> Self {
        Self { rules, slice_s, n_slices: 0, n_silent: 0, has_speech: false }
    }

    /// A new utterance begins.
    pub(crate) fn reset(&mut self) {
        (self.n_slices, self.n_silent, self.has_speech) = (0, 0, false);
    }

    /// Takes the next slice; the reason if the utterance ends with it.
    pub(crate) fn accept(&mut self, log_probs: &[f32], kinds: &Kinds) -> Option<EndReason> {
        let kind = kinds.0[most_probable(log_probs)];
        self.n_slices += 1;
        self.n_silent = if kind == Kind::Speech { 0 } else { self.n_silent + 1 };
        self.has_speech |= kind == Kind::Speech;
        let EndpointRules { rule1, rule2, rule3, end_of_sentence } = self.rules;
        if end_of_sentence && kind == Kind::EndOfSentence && self.has_speech {
            return Some(EndReason::EndOfSentence);
        }
        let rules = [(rule1, EndReason::Rule1), (rule2, EndReason::Rule2), (rule3, EndReason::Rule3)];
        rules.into_iter().find(|(rule, _)| self.holds(rule)).map(|(_, reason)| reason)
    }

    fn holds(&self, rule: &Rule) -> bool {
        let seconds = |n_slices: usize| n_slices as f64 * self.slice_s;
        let is_said = self.has_speech || !rule.must_contain_nonsilence;
        let is_silent = 0 < self.n_silent && rule.min_trailing_silence_s <= seconds(self.n_silent);
        let is_long = rule.min_utterance_length_s <= seconds(self.n_slices);
        let is_endless =
            0.0 < rule.min_utterance_length_s && 2.0 * rule.min_utterance_length_s <= seconds(self.n_slices);
        is_said && is_long && (is_silent || is_endless)
    }
}

/// The class with the largest value, padding never; the first of equals.
pub(crate) fn most_probable(log_probs: &[f32]) -> usize {
    let mut best = PADDING + 1;
    for class in PADDING + 1..log_probs.len() {
        if log_probs[class] > log_probs[best] {
            best = class;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use srf_text::labels::Units;

    use super::*;

    /// a, b, space, end of sentence; a slice of 0.1 s.
    fn labels() -> LabelSet {
        LabelSet::new(Units::Chars, ["a", "b", " ", "<eos>"]).unwrap()
    }

    /// What ends an utterance of these labels (`.` is the blank), and after how many slices; utterances one by one.
    fn ends(rules: EndpointRules, spoken: &str) -> Vec<(EndReason, usize)> {
        let kinds = Kinds::new(&labels());
        let mut endpointer = Endpointer::new(rules, 0.1);
        let mut ends = Vec::new();
        for (index, c) in spoken.chars().enumerate() {
            let class = match c {
                'a' => 1,
                'b' => 2,
                ' ' => 3,
                '$' => 4,
                _ => 5,
            };
            // Padding is loud and never counts.
            let mut log_probs = [-5.0_f32; 6];
            log_probs[0] = 0.0;
            log_probs[class] = -0.1;
            if let Some(reason) = endpointer.accept(&log_probs, &kinds) {
                endpointer.reset();
                ends.push((reason, index + 1));
            }
        }
        ends
    }

    fn silence(n_slices: usize) -> String {
        ".".repeat(n_slices)
    }

    #[test]
    fn nothing_said_ends_by_rule_1_and_something_said_by_rule_2() {
        let rules = EndpointRules::default();
        assert_eq!(ends(rules, &silence(30)), [(EndReason::Rule1, 24)]);
        assert_eq!(ends(rules, &format!("a{}", silence(30))), [(EndReason::Rule2, 13)]);
        assert_eq!(ends(rules, &format!("a{}b{}", silence(11), silence(12))), [(EndReason::Rule2, 25)]);
    }

    #[test]
    fn a_long_utterance_ends_at_the_next_silence_or_at_twice_its_length() {
        let rules = EndpointRules::default();
        assert_eq!(ends(rules, &("ab".repeat(102) + ".ab")), [(EndReason::Rule3, 205)]);
        assert_eq!(ends(rules, &"a".repeat(450)), [(EndReason::Rule3, 400)]);
    }

    #[test]
    fn spaces_are_silence_and_the_end_of_a_sentence_ends_what_was_said() {
        let rules = EndpointRules::default();
        assert_eq!(ends(rules, &format!("a{} {}", silence(5), silence(6))), [(EndReason::Rule2, 13)]);
        assert_eq!(ends(rules, "..$$..ab.$$$..b$"), [(EndReason::EndOfSentence, 10), (EndReason::EndOfSentence, 16)]);
        let deaf = EndpointRules { end_of_sentence: false, ..rules };
        assert_eq!(ends(deaf, "..$$..ab.$$$..b$"), []);
    }

    #[test]
    fn every_number_of_a_rule_counts() {
        let never = Rule { must_contain_nonsilence: true, min_trailing_silence_s: 1e9, min_utterance_length_s: 0.0 };
        let quiet = EndpointRules { rule1: never, rule2: never, rule3: never, end_of_sentence: false };
        assert_eq!(ends(quiet, &format!("a{}", silence(1000))), []);
        let rule1 = Rule { must_contain_nonsilence: false, min_trailing_silence_s: 0.3, min_utterance_length_s: 1.0 };
        assert_eq!(ends(EndpointRules { rule1, ..quiet }, "aaaa....b....."), [(EndReason::Rule1, 12)]);
        let rule1 = Rule { must_contain_nonsilence: true, ..rule1 };
        assert_eq!(ends(EndpointRules { rule1, ..quiet }, &silence(15)), []);
    }

    #[test]
    fn silences_of_timit_are_silence() {
        let labels = LabelSet::new(Units::Phones, ["aa", "h#", "pau", "epi", "q"]).unwrap();
        let kinds = Kinds::new(&labels).0;
        let is_speech: Vec<bool> = kinds.iter().map(|kind| *kind == Kind::Speech).collect();
        assert_eq!(is_speech, [false, true, false, false, false, true, false]);
    }
}
