//! Counts of a prepared corpus, for `summary.json` and the table that `srf prepare` prints.

use std::collections::{BTreeMap, HashSet};
use std::ops::Add;

use serde::Serialize;
use srf_text::labels::LabelSet;

use super::pronounce::Coverage;
use super::targets::{Applied, Dropped, Foreign};
use super::{Corpus, Part};

/// A number that is known for the complete corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Of which part.
    pub part: String,
    /// What is counted.
    pub what: &'static str,
    /// In this copy.
    pub found: usize,
    /// In the complete corpus.
    pub expected: usize,
}

impl Check {
    /// A check of one part.
    pub fn new(part: &str, what: &'static str, found: usize, expected: usize) -> Self {
        Self { part: part.to_owned(), what, found, expected }
    }

    /// Whether both numbers are the same.
    pub fn is_met(&self) -> bool {
        self.found == self.expected
    }
}

/// A part in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartSummary {
    /// Its name.
    pub name: String,
    /// How many utterances.
    pub n_utterances: usize,
    /// How many speakers.
    pub n_speakers: usize,
    /// How long in all.
    pub hours: f64,
    /// How many labels in all texts.
    pub n_labels: usize,
    /// How many words in all sentences.
    pub n_words: usize,
}

/// A corpus in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Its parts.
    pub parts: Vec<PartSummary>,
    /// Phones, characters or words.
    pub units: String,
    /// Classes of a network for it: padding, the labels, blank.
    pub n_classes: usize,
    /// How often each label of the set occurs.
    pub label_counts: BTreeMap<String, usize>,
    /// How often labels outside the set occur, or occurred before they were deleted.
    pub out_of_set: Foreign,
    /// How often characters were dropped from transcripts, such as punctuation.
    pub dropped: Dropped,
    /// Words that were not in the lexicon, where one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexicon: Option<Coverage>,
    /// Utterances that count as speakers of their own, because nothing says who speaks.
    pub n_without_speaker: usize,
    /// Numbers known for the complete corpus.
    pub checks: Vec<Check>,
    /// How many problems were reported.
    pub n_problems: usize,
}

impl Summary {
    pub(crate) fn new(corpus: &Corpus, applied: Applied, checks: Vec<Check>, n_problems: usize) -> Self {
        let Applied { labels, out_of_set, dropped, coverage } = applied;
        let mut label_counts: BTreeMap<String, usize> =
            labels.symbols().iter().map(|label| (label.clone(), 0)).collect();
        for utterance in corpus.utterances() {
            for label in labels.split(&utterance.text) {
                if let Some(count) = label_counts.get_mut(label.as_ref()) {
                    *count += 1;
                }
            }
        }
        Self {
            parts: corpus.parts.iter().map(|part| PartSummary::of(part, &labels)).collect(),
            units: labels.units().to_string(),
            n_classes: labels.n_classes(),
            label_counts,
            out_of_set,
            dropped,
            lexicon: coverage,
            n_without_speaker: corpus.utterances().filter(|utterance| utterance.speaker == utterance.id).count(),
            checks,
            n_problems,
        }
    }

    /// The length of all parts together.
    pub fn hours(&self) -> f64 {
        self.parts.iter().map(|part| part.hours).sum()
    }
}

impl PartSummary {
    fn of(part: &Part, labels: &LabelSet) -> Self {
        let speakers: HashSet<&str> = part.utterances.iter().map(|utterance| utterance.speaker.as_str()).collect();
        // The sum of no numbers is -0.
        let seconds = part.utterances.iter().filter_map(|utterance| utterance.audio.duration_s).fold(0.0, Add::add);
        Self {
            name: part.name.clone(),
            n_utterances: part.utterances.len(),
            n_speakers: speakers.len(),
            hours: seconds / 3600.0,
            n_labels: part.utterances.iter().map(|utterance| labels.split(&utterance.text).len()).sum(),
            n_words: part.utterances.iter().map(|utterance| utterance.sentence.split_whitespace().count()).sum(),
        }
    }
}
