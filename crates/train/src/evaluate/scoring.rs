//! Scoring: error rates with intervals of recognized texts against their references.

use rayon::prelude::*;
use srf_score::compare::{Interval, Paired, bootstrap};
use srf_score::{
    Alignment, Cost, Heading, Network, Pair, ScoredUtterance, System, TooLongError, Traits, Verdict, Word, align,
};
use srf_text::calibration::{Bin, Judged, bins, expected_calibration_error, normalised_cross_entropy};
use srf_text::labels::Units;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::timit::Folded;

use crate::events::ErrorCounts;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Phones.
    Phones,
    /// Words.
    Words,
    /// Characters without spaces.
    Characters,
}

impl Measure {
    /// The name of the error rate.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phones => "PER",
            Self::Words => "WER",
            Self::Characters => "CER",
        }
    }

    /// What can be counted in texts of these units, the most important first.
    pub fn of(units: Units) -> &'static [Self] {
        match units {
            Units::Phones => &[Self::Phones],
            Units::Words | Units::Chars | Units::Pieces => &[Self::Words, Self::Characters],
        }
    }
}

/// A recognized label or word with its confidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recognized {
    /// The label or word.
    pub text: String,
    /// 0 to 1, where the recogniser gives it.
    pub confidence: Option<f64>,
}

/// An utterance and what was recognized.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The utterance.
    pub id: String,
    /// Its speaker.
    pub speaker: String,
    /// The reference; phones and words are separated by spaces.
    pub reference: String,
    /// What was recognized: phones, or words.
    pub recognized: Vec<Recognized>,
}

/// One error rate with its alignments.
#[derive(Clone, Debug)]
pub struct Rate {
    /// What was counted.
    pub measure: Measure,
    /// Every alignment, by speaker.
    pub system: System,
    /// The error rate with its 95 % bootstrap interval.
    pub interval: Interval,
    /// How well calibrated the confidences are, where there are any.
    pub confidences: Option<Confidences>,
}

/// The calibration of confidences.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidences {
    /// Normalised cross entropy: 1 is perfect, 0 is no better than the overall share of correct words, negative is
    /// misleading; `None` if all words are correct, or all wrong.
    pub nce: Option<f64>,
    /// Expected calibration error.
    pub ece: f64,
    /// Words by confidence, in equal parts of 0 to 1.
    pub bins: Vec<Bin>,
}

impl Confidences {
    /// Of all recognized words; `None` if some have no confidence, or there are none.
    fn of(system: &System) -> Option<Self> {
        if !system.utterances().all(|utterance| utterance.traits.hypothesis_confidences) {
            return None;
        }
        let judged = judged(system);
        let ece = expected_calibration_error(&judged)?;
        Some(Self { nce: normalised_cross_entropy(&judged), ece, bins: bins(&judged).to_vec() })
    }
}

/// The confidence of every recognized word, and whether it was right.
pub(super) fn judged(system: &System) -> Vec<Judged> {
    let pairs = system.utterances().flat_map(|utterance| &utterance.alignment.pairs);
    let judge = |pair: &Pair| Some((pair.hypothesis.as_ref()?.confidence as f32, pair.verdict == Verdict::Correct));
    pairs.filter_map(judge).collect()
}

impl Rate {
    /// The sums, as events carry them.
    pub fn errors(&self) -> ErrorCounts {
        let counts = self.system.counts();
        ErrorCounts {
            measure: self.measure.name().to_owned(),
            n_reference: counts.n_reference(),
            substitutions: counts.substitutions,
            deletions: counts.deletions,
            insertions: counts.insertions,
        }
    }
}

/// How answers are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scoring {
    /// The phone set that both sides are mapped to first.
    pub mapping: Option<PhoneMapping>,
    /// Bootstrap draws for the interval.
    pub n_replications: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Scores `answers`; the error of an utterance too long to align comes with its index.
pub fn score(
    answers: &[Answer],
    measure: Measure,
    title: &str,
    scoring: Scoring,
) -> Result<Rate, (usize, TooLongError)> {
    let align_one = |(at, answer): (usize, &Answer)| {
        let (reference, hypothesis) = words(answer, measure, scoring.mapping);
        align(&Network::linear(reference), &Network::linear(hypothesis), Cost::Spelling).map_err(|error| (at, error))
    };
    let alignments: Vec<Alignment> = answers.par_iter().enumerate().map(align_one).collect::<Result<_, _>>()?;
    let mut system = System::new(Heading { title: title.to_owned(), ..Heading::default() });
    for (sequence, (answer, alignment)) in answers.iter().zip(alignments).enumerate() {
        let id = format!("({})", answer.id).into_bytes().into();
        let hypothesis_confidences =
            measure != Measure::Characters && answer.recognized.iter().all(|word| word.confidence.is_some());
        let traits = Traits { hypothesis_confidences, characters: measure == Measure::Characters, ..Traits::default() };
        let speaker = answer.speaker.as_bytes().into();
        system.add(&speaker, ScoredUtterance { id, sequence, traits, alignment, ..ScoredUtterance::default() });
    }
    let interval = bootstrap(&Paired::new(&system, &system), scoring.n_replications, scoring.seed).first;
    let confidences = Confidences::of(&system);
    Ok(Rate { measure, system, interval, confidences })
}

/// The words of reference and hypothesis that are compared.
fn words(answer: &Answer, measure: Measure, mapping: Option<PhoneMapping>) -> (Vec<Word>, Vec<Word>) {
    let reference = answer.reference.split_whitespace().map(|text| (text, None));
    let result = answer.recognized.iter().map(|word| (word.text.as_str(), word.confidence));
    match measure {
        Measure::Phones => (phones(reference, mapping), phones(result, mapping)),
        Measure::Words => (reference.map(small_word).collect(), result.map(small_word).collect()),
        Measure::Characters => (reference.flat_map(characters).collect(), result.flat_map(characters).collect()),
    }
}

/// Phones in the set they are mapped to; case matters.
fn phones<'a>(words: impl Iterator<Item = (&'a str, Option<f64>)>, mapping: Option<PhoneMapping>) -> Vec<Word> {
    let mapped = |phone: &'a str| match mapping.map(|mapping| mapping.map(phone)) {
        None | Some(Folded::Unknown) => Some(phone),
        Some(Folded::To(phone)) => Some(phone),
        Some(Folded::Dropped) => None,
    };
    words.filter_map(|(phone, confidence)| Some(word(mapped(phone)?.as_bytes(), confidence))).collect()
}

/// A word as it is compared: case does not matter.
fn small_word((text, confidence): (&str, Option<f64>)) -> Word {
    word(text.to_lowercase().as_bytes(), confidence)
}

fn characters((text, _): (&str, Option<f64>)) -> Vec<Word> {
    text.to_lowercase().chars().map(|c| Word::new(c.to_string().as_bytes())).collect()
}

fn word(text: &[u8], confidence: Option<f64>) -> Word {
    Word::new(text).with_confidence(confidence.unwrap_or(0.0))
}

/// Aligns the words of two texts as they are.
pub fn align_words(reference: &str, hypothesis: &str) -> Result<Alignment, TooLongError> {
    let network = |text: &str| Network::linear(text.split_whitespace().map(|w| Word::new(w.as_bytes())).collect());
    align(&network(reference), &network(hypothesis), Cost::Spelling)
}

/// Reference and hypothesis as they were compared, each as a line of a transcript.
pub fn compared(answer: &Answer, measure: Measure, mapping: Option<PhoneMapping>) -> [String; 2] {
    let (reference, hypothesis) = words(answer, measure, mapping);
    [reference, hypothesis].map(|words| {
        let texts: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(&word.text).into_owned()).collect();
        texts.join(" ")
    })
}

#[cfg(test)]
mod tests;
