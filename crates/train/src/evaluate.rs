//! Evaluation: error rates and hypotheses of a recogniser on utterances with known texts.
//!
//! The recogniser is the one that users run, so the figures are what they get. An utterance that cannot be read is
//! reported and left out of every figure.

pub mod files;
pub mod pronunciation;
pub mod scoring;
pub mod summary;
pub mod tune;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use srf::{Recognizer, StreamOptions};
use srf_text::decode::DecoderConfig;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::timit::Folded;
use srf_text::labels::{LabelSet, Units};
use srf_text::output::{Segment, Transcript};

use crate::corpus::normalize::{Case, Dropped, normalize};
use crate::corpus::{Utterance, Watcher};
use scoring::{Answer, score};

pub use scoring::{Measure, Rate, Recognized, Scoring, align_words};

/// How utterances are recognized and scored.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct EvaluateOptions {
    pub decoder: DecoderConfig,
    pub scoring: Scoring,
}

/// Default number of bootstrap draws for the interval.
pub const DEFAULT_REPLICATIONS: usize = 10_000;

/// An utterance that was left out of all figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct LeftOut {
    pub id: String,
    pub reason: String,
}

/// The results of a recogniser on some utterances.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Evaluation {
    /// What was compared: the units of the model, or words if a lexicon made words of its phones.
    pub units: Units,
    /// Error rates, the most important one first.
    pub rates: Vec<Rate>,
    /// Every utterance that was recognized, in the order of the list.
    pub answers: Vec<Answer>,
    pub transcripts: Vec<Transcript>,
    pub left_out: Vec<LeftOut>,
    pub audio_s: f64,
    /// Wall time of recognition, with reading and features, on all threads.
    pub recognition_s: f64,
    /// Threads it ran on.
    pub n_threads: usize,
}

impl Evaluation {
    /// The most important error rate.
    pub fn rate(&self) -> &Rate {
        &self.rates[0]
    }

    /// Recognition time per second of audio; `None` without audio.
    pub fn real_time_factor(&self) -> Option<f64> {
        (self.audio_s > 0.0).then(|| self.recognition_s / self.audio_s)
    }
}

/// Recognises `utterances` on all threads and scores the result against their texts.
pub fn evaluate(
    recognizer: &Recognizer,
    utterances: &[Utterance],
    options: &EvaluateOptions,
    watcher: &dyn Watcher,
) -> Evaluation {
    let list: Vec<_> = utterances.iter().map(Utterance::to_be_heard).collect();
    let stream = StreamOptions { decoder: Some(options.decoder.clone()), endpoint: None, ..StreamOptions::default() };
    watcher.begin("recognising", list.len());
    let start = Instant::now();
    let results = recognizer.transcribe_all(&list, &stream, &|| watcher.advance());
    let recognition_s = start.elapsed().as_secs_f64();
    let units = units_of(recognizer, &options.decoder);
    let mut evaluation = Evaluation {
        units,
        rates: Vec::new(),
        answers: Vec::new(),
        transcripts: Vec::new(),
        left_out: Vec::new(),
        audio_s: 0.0,
        recognition_s,
        n_threads: rayon::current_num_threads(),
    };
    for (utterance, result) in utterances.iter().zip(results) {
        match result {
            Ok(transcript) => evaluation.add(utterance, transcript, units != recognizer.labels().units()),
            Err(error) => {
                evaluation.left_out.push(LeftOut { id: utterance.id.clone(), reason: error.to_string() });
            }
        }
    }
    evaluation.score(options.scoring);
    evaluation
}

impl Evaluation {
    /// `by_lexicon` says whether a lexicon made words of the labels.
    fn add(&mut self, utterance: &Utterance, transcript: Transcript, by_lexicon: bool) {
        let segments = transcript.segments.iter();
        let recognized = if by_lexicon {
            segments.flat_map(|segment| &segment.words).flat_map(|w| plain(&w.text, w.confidence)).collect()
        } else {
            segments.flat_map(|segment| recognized(segment, self.units)).collect()
        };
        self.answers.push(Answer {
            id: utterance.id.clone(),
            speaker: utterance.speaker.clone(),
            reference: if by_lexicon { word_reference(utterance) } else { reference(utterance, self.units) },
            recognized,
        });
        self.audio_s += transcript.duration_s;
        self.transcripts.push(transcript);
    }

    /// Scores all answers; one that is too long to be aligned is left out.
    fn score(&mut self, scoring: Scoring) {
        for measure in Measure::of(self.units) {
            let rate = loop {
                match score(&self.answers, *measure, "", scoring) {
                    Ok(rate) => break rate,
                    Err((at, error)) => self.leave_out(at, error.to_string()),
                }
            };
            self.rates.push(rate);
        }
    }

    fn leave_out(&mut self, at: usize, reason: String) {
        let id = self.answers.remove(at).id;
        self.audio_s -= self.transcripts.remove(at).duration_s;
        self.left_out.push(LeftOut { id, reason });
    }
}

/// What a decoder writes: the units of the model, or words if a lexicon makes words of its phones.
pub fn units_of(recognizer: &Recognizer, decoder: &DecoderConfig) -> Units {
    let has_lexicon = decoder.fusion.as_ref().is_some_and(|fusion| fusion.lexicon().is_some());
    match recognizer.labels().units() {
        Units::Phones | Units::Pieces if has_lexicon => Units::Words,
        units => units,
    }
}

/// Whether an utterance has a reference in words, for a model of these labels.
pub fn has_words(utterance: &Utterance, labels: &LabelSet) -> bool {
    labels.units() != Units::Phones
        || utterance.sentence != utterance.text
        || !labels.foreign(&utterance.text).is_empty()
}

/// Reference labels that a model cannot write.
pub struct UnknownLabels {
    /// Each with how often it occurs; the most frequent first.
    pub labels: Vec<(String, usize)>,
    /// How many labels the reference has in all.
    pub n_reference: usize,
}

impl UnknownLabels {
    /// How often unknown labels occur.
    pub fn n(&self) -> usize {
        self.labels.iter().map(|(_, n)| n).sum()
    }

    /// Whether an error rate would measure the label sets instead of the model.
    ///
    /// Phones and characters are closed sets, of which few can be missing; words that no recogniser knows are usual.
    pub fn are_another_set(&self, units: Units) -> bool {
        let max_percent = if units == Units::Words { 50 } else { 5 };
        100 * self.n() > max_percent * self.n_reference
    }
}

/// Compares the labels of the reference with those of a model; phones in the set that both sides are mapped to.
pub fn unknown_labels(labels: &LabelSet, utterances: &[Utterance], mapping: Option<PhoneMapping>) -> UnknownLabels {
    let known: HashSet<String> = labels.symbols().iter().filter_map(|label| mapped(label, mapping)).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut n_reference = 0;
    for utterance in utterances {
        let reference = reference(utterance, labels.units());
        for label in labels.split(&reference).into_iter().filter_map(|label| mapped(&label, mapping)) {
            n_reference += 1;
            if !known.contains(&label) {
                *counts.entry(label).or_default() += 1;
            }
        }
    }
    let mut unknown: Vec<(String, usize)> = counts.into_iter().collect();
    unknown.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    UnknownLabels { labels: unknown, n_reference }
}

/// A mapping under which a model of phones can write every reference label.
pub fn fitting_mapping(labels: &LabelSet, utterances: &[Utterance]) -> Option<PhoneMapping> {
    let all = [PhoneMapping::Timit48, PhoneMapping::Timit39, PhoneMapping::Shared37];
    all.into_iter().find(|mapping| {
        let is_known = |label: &String| mapping.map(label) != Folded::Unknown;
        labels.symbols().iter().all(is_known) && unknown_labels(labels, utterances, Some(*mapping)).labels.is_empty()
    })
}

fn mapped(label: &str, mapping: Option<PhoneMapping>) -> Option<String> {
    match mapping.map(|mapping| mapping.map(label)) {
        None | Some(Folded::Unknown) => Some(label.to_owned()),
        Some(Folded::To(label)) => Some(label.to_owned()),
        Some(Folded::Dropped) => None,
    }
}

/// The words of an utterance without punctuation and in lower case, as corpora are prepared.
pub(crate) fn word_reference(utterance: &Utterance) -> String {
    plain_words(&utterance.sentence)
}

/// The reference: the text, or the phones if the model writes phones and the text is words.
fn reference(utterance: &Utterance, units: Units) -> String {
    let is_words = utterance.text == utterance.sentence;
    if units == Units::Phones && is_words && !utterance.phones.is_empty() {
        let names: Vec<&str> = utterance.phones.iter().map(|phone| phone.name.as_str()).collect();
        return names.join(" ");
    }
    if units == Units::Phones && is_words && !utterance.phone_seq.is_empty() {
        return utterance.phone_seq.join(" ");
    }
    utterance.text.clone()
}

/// The phones or words of a segment with their confidences.
fn recognized(segment: &Segment, units: Units) -> Vec<Recognized> {
    let one = |text: &str, confidence: Option<f32>| Recognized {
        text: text.to_owned(),
        confidence: confidence.map(f64::from),
    };
    match units {
        Units::Phones => segment.tokens.iter().map(|token| one(&token.text, token.confidence)).collect(),
        Units::Words | Units::Chars | Units::Pieces => {
            segment.words.iter().map(|word| one(&word.text, word.confidence)).collect()
        }
    }
}

/// A word as it is compared with a reference; one with a hyphen is two.
pub(crate) fn plain(text: &str, confidence: Option<f32>) -> Vec<Recognized> {
    let confidence = confidence.map(f64::from);
    plain_words(text).split_whitespace().map(|word| Recognized { text: word.to_owned(), confidence }).collect()
}

fn plain_words(text: &str) -> String {
    normalize(text, Case::Lower, true, &mut Dropped::new())
}
