//! How good a model is: a recogniser and utterances with their texts in, error rates and hypotheses out.
//!
//! The recogniser is the one that users have, so the figures are what they get. An utterance that cannot be heard is
//! told, left out of every figure, and the others go on.

pub mod files;
pub mod scoring;
pub mod summary;

use std::time::Instant;

use srf::{Recognizer, StreamOptions};
use srf_text::decode::DecoderConfig;
use srf_text::labels::Units;
use srf_text::output::{Segment, Transcript};

use crate::corpus::{Utterance, Watcher};
use scoring::{Answer, score};

pub use scoring::{Measure, Rate, Recognised, Scoring, align_words};

/// How utterances are recognised and scored.
#[derive(Clone, Debug, Default)]
pub struct EvaluateOptions {
    /// How hypotheses are searched for.
    pub decoder: DecoderConfig,
    /// How they are scored.
    pub scoring: Scoring,
}

/// Draws for the interval, where nobody asks for another number.
pub const DEFAULT_REPLICATIONS: usize = 10_000;

/// An utterance that is in no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its id.
    pub id: String,
    /// Why, in one line.
    pub reason: String,
}

/// What a recogniser is worth on some utterances.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// What the model writes.
    pub units: Units,
    /// Error rates, the one that matters most first.
    pub rates: Vec<Rate>,
    /// Every utterance that was recognised, in the order of the list.
    pub answers: Vec<Answer>,
    /// What was recognised, with times; one for each answer.
    pub transcripts: Vec<Transcript>,
    /// Utterances that were not.
    pub left_out: Vec<LeftOut>,
    /// Length of the audio.
    pub audio_s: f64,
    /// How long recognition took, with reading and features, on all threads.
    pub recognition_s: f64,
    /// Threads it ran on.
    pub n_threads: usize,
}

impl Evaluation {
    /// The error rate that matters most.
    pub fn rate(&self) -> &Rate {
        &self.rates[0]
    }

    /// Time of recognition for each second of audio; absent without audio.
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
    let stream = StreamOptions { decoder: options.decoder.clone(), endpoint: None, ..StreamOptions::default() };
    watcher.begin("recognising", list.len());
    let start = Instant::now();
    let results = recognizer.transcribe_all(&list, &stream, &|| watcher.advance());
    let recognition_s = start.elapsed().as_secs_f64();
    let units = recognizer.labels().units();
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
            Ok(transcript) => evaluation.add(utterance, transcript),
            Err(error) => {
                evaluation.left_out.push(LeftOut { id: utterance.id.clone(), reason: error.to_string() });
            }
        }
    }
    evaluation.score(options.scoring);
    evaluation
}

impl Evaluation {
    fn add(&mut self, utterance: &Utterance, transcript: Transcript) {
        let recognised = transcript.segments.iter().flat_map(|segment| recognised(segment, self.units)).collect();
        self.answers.push(Answer {
            id: utterance.id.clone(),
            speaker: utterance.speaker.clone(),
            reference: reference(utterance, self.units),
            recognised,
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

/// What should be written: the text; but phones, where the model writes phones and the text is words.
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
fn recognised(segment: &Segment, units: Units) -> Vec<Recognised> {
    let one = |text: &str, confidence: Option<f32>| Recognised {
        text: text.to_owned(),
        confidence: confidence.map(f64::from),
    };
    match units {
        Units::Phones => segment.tokens.iter().map(|token| one(&token.text, token.confidence)).collect(),
        Units::Words | Units::Chars => segment.words.iter().map(|word| one(&word.text, word.confidence)).collect(),
    }
}
