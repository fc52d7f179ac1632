//! Tuning: the weights of the language model and of words that give the fewest errors on some utterances.
//!
//! The network runs once; its log-probabilities stay in memory while the weights change.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use rayon::prelude::*;
use serde_json::json;
use srf::words::WordSettings;
use srf::{DecoderConfig, Recognizer, TranscribeError};
use srf_score::Counts;
use srf_text::calibration::Calibration;
use srf_text::decode::Decoder;
use srf_text::fusion::FusionError;
use srf_text::words::{self, SpokenWord};

use super::scoring::{Answer, Measure, Rate, Scoring, judged, score};
use super::{LeftOut, plain, word_reference};
use crate::corpus::{Utterance, Watcher};

/// The most log-probabilities that are kept: 4 GiB, 200 hours of speech for 40 phones.
const MAX_VALUES: usize = 1 << 30;

/// Why weights could not be tuned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TuneError {
    #[error("the model has no words (words.bin), so that there is nothing to tune")]
    NoWords,
    #[error("none of the utterances could be read")]
    NoUtterances,
    #[error("the log-probabilities need more than {} GiB; give fewer utterances", MAX_VALUES >> 28)]
    TooLarge,
    #[error(transparent)]
    Fusion(#[from] FusionError),
}

impl TuneError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        matches!(self, Self::NoWords).then(|| "`srf words build` makes them".to_owned())
    }
}

/// Utterances with the log-probabilities of a model, ready to be decoded many times.
pub struct Tuner<'a> {
    recognizer: &'a Recognizer,
    heard: Vec<(&'a Utterance, Vec<f32>)>,
    /// Utterances that could not be read.
    pub left_out: Vec<LeftOut>,
}

impl<'a> Tuner<'a> {
    /// Runs the network over all utterances, on all threads.
    pub fn new(
        recognizer: &'a Recognizer,
        utterances: &'a [Utterance],
        watcher: &dyn Watcher,
    ) -> Result<Self, TuneError> {
        if recognizer.words().is_none() {
            return Err(TuneError::NoWords);
        }
        let list: Vec<_> = utterances.iter().map(Utterance::to_be_heard).collect();
        let by_speaker =
            if recognizer.is_by_speaker() { recognizer.speaker_statistics(&list) } else { HashMap::default() };
        watcher.begin("computing log-probabilities", list.len());
        let log_probs = |utterance: &srf_audio::bulk::Utterance| -> Result<Vec<f32>, TranscribeError> {
            let statistics = by_speaker.get(utterance.speaker.as_str()).cloned();
            let log_probs = recognizer.log_probs(utterance, statistics);
            watcher.advance();
            log_probs
        };
        let mut tuner = Self { recognizer, heard: Vec::new(), left_out: Vec::new() };
        let mut n_values = 0;
        // In pieces, so that too much is noticed before it is computed.
        for (utterances, list) in utterances.chunks(256).zip(list.chunks(256)) {
            let found: Vec<_> = list.par_iter().map(log_probs).collect();
            for (utterance, found) in utterances.iter().zip(found) {
                match found {
                    Ok(values) => {
                        n_values += values.len();
                        tuner.heard.push((utterance, values));
                    }
                    Err(error) => {
                        tuner.left_out.push(LeftOut { id: utterance.id.clone(), reason: error.to_string() });
                    }
                }
            }
            if MAX_VALUES < n_values {
                return Err(TuneError::TooLarge);
            }
        }
        if tuner.heard.is_empty() { Err(TuneError::NoUtterances) } else { Ok(tuner) }
    }

    /// Number of utterances.
    pub fn n_utterances(&self) -> usize {
        self.heard.len()
    }

    /// Number of slices of all utterances.
    pub fn n_slices(&self) -> usize {
        self.heard.iter().map(|(_, values)| values.len()).sum::<usize>() / self.recognizer.labels().n_classes()
    }

    /// Writes what other decoders need to decode the same into a folder: `log_probs.f32` (all slices of all utterances,
    /// little endian), `utterances.jsonl` (`id`, `n_slices`, `words`), `lexicon.txt` and `labels.txt`.
    pub fn export(&self, dir: &Path) -> io::Result<()> {
        let labels = self.recognizer.labels();
        fs::create_dir_all(dir)?;
        labels.save(&dir.join("labels.txt"))?;
        let mut values_out = BufWriter::new(fs::File::create(dir.join("log_probs.f32"))?);
        let mut lines = BufWriter::new(fs::File::create(dir.join("utterances.jsonl"))?);
        for (utterance, values) in &self.heard {
            values.iter().try_for_each(|value| values_out.write_all(&value.to_le_bytes()))?;
            let n_slices = values.len() / labels.n_classes();
            let words = word_reference(utterance);
            writeln!(lines, "{}", json!({ "id": utterance.id, "n_slices": n_slices, "words": words }))?;
        }
        values_out.flush()?;
        lines.flush()?;
        let lexicon = self.recognizer.words().map(|words| words.model().lexicon.format(labels)).unwrap_or_default();
        fs::write(dir.join("lexicon.txt"), lexicon)
    }

    /// The errors in words with these settings.
    pub fn errors(&self, settings: &WordSettings) -> Result<Counts, TuneError> {
        Ok(self.rate(settings)?.system.counts())
    }

    /// The correction that makes the confidences of words with these settings most probable.
    pub fn calibration(&self, settings: &WordSettings) -> Result<Calibration, TuneError> {
        Ok(Calibration::fit(&judged(&self.rate(settings)?.system)))
    }

    fn rate(&self, settings: &WordSettings) -> Result<Rate, TuneError> {
        let decoder = self.recognizer.decoder_of(settings).ok_or(TuneError::NoWords)??;
        let mut answers: Vec<Answer> =
            self.heard.par_iter().map(|(utterance, log_probs)| self.answer(utterance, log_probs, &decoder)).collect();
        let scoring = Scoring::default();
        loop {
            match score(&answers, Measure::Words, "", scoring) {
                Ok(rate) => return Ok(rate),
                // Too long to be aligned.
                Err((at, _)) => drop(answers.remove(at)),
            }
        }
    }

    fn answer(&self, utterance: &Utterance, log_probs: &[f32], config: &DecoderConfig) -> Answer {
        let labels = self.recognizer.labels();
        let mut decoder = Decoder::new(labels.n_classes(), config);
        decoder.merge_pasts(false);
        decoder.accept(log_probs);
        let best = decoder.finish(1).pop().unwrap_or_default();
        let lexicon = config.fusion.as_ref().and_then(|fusion| fusion.lexicon());
        let words = words::words(labels, lexicon, &best);
        let confident =
            |word: &SpokenWord| plain(&word.text, words::confidence(&best.tokens[word.first_token..word.end_token]));
        Answer {
            id: utterance.id.clone(),
            speaker: utterance.speaker.clone(),
            reference: word_reference(utterance),
            recognized: words.iter().flat_map(confident).collect(),
        }
    }

    /// Searches the grid for the weights with the fewest errors: from `start`, the best value of one weight after the
    /// other, until none improves. `found` is called with every point that was tried.
    pub fn search(
        &self,
        grid: &Grid,
        start: WordSettings,
        found: &mut dyn FnMut(&WordSettings, &Counts),
    ) -> Result<(WordSettings, Counts), TuneError> {
        let mut tried: Vec<(WordSettings, Counts)> = Vec::new();
        let mut errors = |settings: WordSettings| -> Result<Counts, TuneError> {
            if let Some((_, counts)) = tried.iter().find(|(known, _)| *known == settings) {
                return Ok(*counts);
            }
            let counts = self.errors(&settings)?;
            found(&settings, &counts);
            tried.push((settings, counts));
            Ok(counts)
        };
        let mut best = (start, errors(start)?);
        loop {
            let before = best.0;
            for alpha in &grid.alphas {
                best = better(best, WordSettings { alpha: *alpha, ..best.0 }, &mut errors)?;
            }
            for beta in &grid.betas {
                best = better(best, WordSettings { beta: *beta, ..best.0 }, &mut errors)?;
            }
            if best.0 == before {
                return Ok(best);
            }
        }
    }
}

/// The better of two points; of equal ones the one known before.
fn better(
    best: (WordSettings, Counts),
    other: WordSettings,
    errors: &mut impl FnMut(WordSettings) -> Result<Counts, TuneError>,
) -> Result<(WordSettings, Counts), TuneError> {
    let counts = errors(other)?;
    Ok(if counts.n_errors() < best.1.n_errors() { (other, counts) } else { best })
}

/// The values that weights may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Of the language model.
    pub alphas: Vec<f64>,
    /// What a word adds.
    pub betas: Vec<f64>,
}
