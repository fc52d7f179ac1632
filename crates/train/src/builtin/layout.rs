//! Writes the built-in corpus to disk: as plain WAV files, or shaped like the discs of TIMIT or WSJ.

pub mod timit;
pub mod wsj;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::grammar::Sentence;
use super::speaker::Sex;
use super::voice::{RATE_HZ, Span, Voice};
use super::{EspeakError, Recording, Speakers, USUAL_LENGTH_S, Voices};
use crate::corpus::{AudioPart, Corpus, TRAIN, Timed, Utterance, Watcher};

/// Why the corpus was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum WriteCorpusError {
    #[error("could not write `{path}`")]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Espeak(#[from] EspeakError),
    #[error("{found} speakers are too few for a corpus shaped like {layout}, expected at least {expected}")]
    TooFewSpeakers { found: usize, expected: usize, layout: &'static str },
}

impl WriteCorpusError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Espeak(error) => error.hint(),
            Self::TooFewSpeakers { expected, .. } => Some(format!("add `--speakers {expected}` or more")),
            Self::Write { .. } => None,
        }
    }
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> WriteCorpusError {
    let path = path.to_owned();
    |source| WriteCorpusError::Write { path, source }
}

/// A recording to be made: by whom, and the how-manieth of this speaker.
#[derive(Clone, Copy)]
struct Slot {
    speaker: usize,
    index: usize,
}

/// Makes every recording in `jobs` on all threads and hands it to `save`; the results keep the order of the jobs.
fn make_all<J: Sync, T: Send>(
    speakers: &Speakers,
    jobs: &[J],
    watcher: &dyn Watcher,
    sentence: impl Fn(&J) -> (Slot, Option<Sentence>) + Sync,
    save: impl Fn(&J, Recording) -> Result<T, WriteCorpusError> + Sync,
) -> Result<Vec<T>, WriteCorpusError> {
    let made = jobs.par_iter().map_init(Voice::new, |voice, job| {
        let (Slot { speaker, index }, sentence) = sentence(job);
        let result = save(job, speakers.record(voice, speaker, index, sentence)?);
        watcher.advance();
        result
    });
    made.collect()
}

/// Speech is made on the scale of 16-bit integers.
fn samples_of(values: Vec<f32>) -> srf_audio::Samples {
    let values = values.into_iter().map(|value| value / srf_audio::I16_SCALE).collect();
    srf_audio::Samples { rate_hz: RATE_HZ, values }
}

/// The most recordings that are held in memory at once.
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

/// Writes the corpus as WAV files (`audio/<speaker>/<utterance>.wav`) below `out`, in one part.
pub fn write_plain(config: &PlainConfig, out: &Path, watcher: &dyn Watcher) -> Result<Corpus, WriteCorpusError> {
    let out = std::path::absolute(out).map_err(writing(out))?;
    let sexes = (0..config.n_speakers).map(sex);
    let speakers = Speakers::new(config.seed, sexes, config.voices);
    for speaker in 0..config.n_speakers {
        let dir = out.join("audio").join(name(speaker));
        fs::create_dir_all(&dir).map_err(writing(&dir))?;
    }
    let n_wanted = (config.hours * 3600.0 * f64::from(RATE_HZ)) as usize;
    watcher.begin("speaking", n_usual(n_wanted));
    let mut utterances = Vec::new();
    let (mut n_made, mut next) = (0, 0);
    while n_made < n_wanted {
        // Speakers take turns, and the corpus ends with the recording that fills it: the size of batches changes nothing.
        let n_batch = n_usual(n_wanted - n_made).clamp(1, MAX_BATCH);
        let batch =
            (next..next + n_batch).map(|k| Slot { speaker: k % config.n_speakers, index: k / config.n_speakers });
        next += n_batch;
        let slots: Vec<Slot> = batch.collect();
        let recordings =
            make_all(&speakers, &slots, watcher, |slot| (*slot, None), |slot, recording| Ok((*slot, recording)))?;
        let kept = recordings.into_iter().take_while(|(_, recording)| {
            let is_wanted = n_made < n_wanted;
            n_made += recording.speech.samples.len();
            is_wanted
        });
        let kept: Vec<(Slot, Recording)> = kept.collect();
        let saved: Result<Vec<Utterance>, _> =
            kept.into_par_iter().map(|(slot, recording)| save(&out, slot, recording)).collect();
        utterances.extend(saved?);
    }
    Ok(Corpus::of_one(TRAIN, utterances))
}

/// About how many recordings fill `n_samples`.
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

fn save(out: &Path, slot: Slot, recording: Recording) -> Result<Utterance, WriteCorpusError> {
    let speaker = name(slot.speaker);
    let id = format!("{speaker}-{:05}", slot.index + 1);
    let path = out.join("audio").join(&speaker).join(format!("{id}.wav"));
    let samples = samples_of(recording.speech.samples);
    srf_audio::wav::save(&path, &samples).map_err(writing(&path))?;
    Ok(Utterance {
        id,
        speaker,
        audio: AudioPart { path, duration_s: Some(samples.duration_s()), ..AudioPart::default() },
        sentence: recording.sentence.text(),
        phones: recording.speech.phones.into_iter().map(timed).collect(),
        words: recording.speech.words.into_iter().map(timed).collect(),
        ..Utterance::default()
    })
}

fn timed(span: Span) -> Timed {
    let seconds = |at: usize| at as f64 / f64::from(RATE_HZ);
    Timed { start_s: seconds(span.start), end_s: seconds(span.end), name: span.name }
}
