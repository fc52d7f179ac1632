//! The built-in corpus as WAV files: hours and speakers in, `audio/<speaker>/<utterance>.wav` and a corpus out.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::{Slot, WriteCorpusError, make_all, samples_of, writing};
use crate::builtin::voice::{RATE_HZ, Span};
use crate::builtin::{Cast, Sex, Take, USUAL_LENGTH_S, Voices};
use crate::corpus::{AudioPart, Corpus, TRAIN, Timed, Utterance, Watcher};

/// The most takes that are held in memory at once.
const MAX_BATCH: usize = 512;

/// How much speech to make.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainConfig {
    /// Everything follows from it.
    pub seed: u64,
    /// How many speakers, half of them women.
    pub n_speakers: usize,
    /// At least this much speech; speakers take turns.
    pub hours: f64,
    /// Who speaks.
    pub voices: Voices,
}

/// Writes the corpus below `out`, in one part.
pub fn write(config: &PlainConfig, out: &Path, watcher: &dyn Watcher) -> Result<Corpus, WriteCorpusError> {
    let out = std::path::absolute(out).map_err(writing(out))?;
    let sexes = (0..config.n_speakers).map(sex);
    let cast = Cast::new(config.seed, sexes, config.voices);
    for speaker in 0..config.n_speakers {
        let dir = out.join("audio").join(name(speaker));
        fs::create_dir_all(&dir).map_err(writing(&dir))?;
    }
    let n_wanted = (config.hours * 3600.0 * f64::from(RATE_HZ)) as usize;
    watcher.begin("speaking", n_usual(n_wanted));
    let mut utterances = Vec::new();
    let (mut n_made, mut next) = (0, 0);
    while n_made < n_wanted {
        // Speakers take turns, and the corpus ends with the take that fills it: the size of batches changes nothing.
        let n_batch = n_usual(n_wanted - n_made).clamp(1, MAX_BATCH);
        let batch =
            (next..next + n_batch).map(|k| Slot { speaker: k % config.n_speakers, index: k / config.n_speakers });
        next += n_batch;
        let slots: Vec<Slot> = batch.collect();
        let takes = make_all(&cast, &slots, watcher, |slot| (*slot, None), |slot, take| Ok((*slot, take)))?;
        let kept = takes.into_iter().take_while(|(_, take)| {
            let is_wanted = n_made < n_wanted;
            n_made += take.speech.samples.len();
            is_wanted
        });
        let kept: Vec<(Slot, Take)> = kept.collect();
        let saved: Result<Vec<Utterance>, _> =
            kept.into_par_iter().map(|(slot, take)| save(&out, slot, take)).collect();
        utterances.extend(saved?);
    }
    Ok(Corpus::of_one(TRAIN, utterances))
}

/// About how many takes fill `n_samples`.
fn n_usual(n_samples: usize) -> usize {
    (n_samples as f64 / f64::from(RATE_HZ) / USUAL_LENGTH_S).ceil() as usize
}

fn sex(speaker: usize) -> Sex {
    // Pairs, so that with two kinds of voices both have women and men.
    if (speaker / 2).is_multiple_of(2) { Sex::Female } else { Sex::Male }
}

fn name(speaker: usize) -> String {
    let letter = if sex(speaker) == Sex::Female { 'f' } else { 'm' };
    format!("{letter}{:04}", speaker + 1)
}

fn save(out: &Path, slot: Slot, take: Take) -> Result<Utterance, WriteCorpusError> {
    let speaker = name(slot.speaker);
    let id = format!("{speaker}-{:05}", slot.index + 1);
    let path = out.join("audio").join(&speaker).join(format!("{id}.wav"));
    let samples = samples_of(take.speech.samples);
    srf_audio::wav::save(&path, &samples).map_err(writing(&path))?;
    Ok(Utterance {
        id,
        speaker,
        audio: AudioPart { path, duration_s: Some(samples.duration_s()), ..AudioPart::default() },
        sentence: take.sentence.text(),
        phones: take.speech.phones.into_iter().map(timed).collect(),
        words: take.speech.words.into_iter().map(timed).collect(),
        ..Utterance::default()
    })
}

fn timed(span: Span) -> Timed {
    let seconds = |at: usize| at as f64 / f64::from(RATE_HZ);
    Timed { start_s: seconds(span.start), end_s: seconds(span.end), name: span.name }
}
