//! Normalised features of many utterances, written to one file.
//!
//! Utterances are decoded and computed on all cores, a batch of bounded length at a time, and written in the order of
//! the list, so that the file has the same bytes whatever the number of cores. Statistics over speakers or over
//! everything need a first pass; computing features twice is cheaper than keeping them.
//! What is wrong with one utterance is reported, and the others go on.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::ark::{self, Matrix};
use crate::error::ReadAudioError;
use crate::features::cmvn::{CmvnStats, Normalizer};
use crate::features::{Cmvn, Extractor, FeaturesConfig, FeaturesConfigError};
use crate::recording::{Recording, Selection};
use crate::resample::{ResampleError, Resampler};

mod tensors;

/// Utterances computed at once, at most.
const BATCH_UTTERANCES: usize = 64;
/// Audio computed at once, at most, unless one utterance alone is longer.
const BATCH_S: f64 = 1800.0;

/// The features of a longer utterance are not kept in memory: 6 hours are a gigabyte.
const MAX_UTTERANCE_S: f64 = 6.0 * 3600.0;

/// What is spoken in a recording or a part of it, and by whom.
///
/// ```
/// let utterance = srf_audio::bulk::Utterance::from("talks/monday.flac");
/// assert_eq!(utterance.id, "monday");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// Its key in files of features and transcripts.
    pub id: String,
    /// The speaker: utterances of one speaker share their statistics.
    pub speaker: String,
    /// The recording.
    pub path: PathBuf,
    /// Which part of it.
    pub selection: Selection,
}

impl From<PathBuf> for Utterance {
    /// All of a recording. Its id is the name of the file without extension; it is a speaker of its own.
    fn from(path: PathBuf) -> Self {
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { id, speaker: path.to_string_lossy().into_owned(), path, selection: Selection::default() }
    }
}

impl From<&Path> for Utterance {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&str> for Utterance {
    fn from(path: &str) -> Self {
        PathBuf::from(path).into()
    }
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A Kaldi archive, and a script file with the same name but the extension `scp`.
    Ark(ark::Form),
    /// One tensor an utterance, `[time, dimension]`.
    Safetensors,
}

/// What was written, and what could not be.
#[derive(Debug, Default)]
pub struct Summary {
    /// Utterances in the file.
    pub n_utterances: usize,
    /// Speakers among them.
    pub n_speakers: usize,
    /// Frames in the file.
    pub n_frames: u64,
    /// Length of the audio in seconds.
    pub audio_s: f64,
    /// Why utterances are not in the file: first those whose keys are unfit, then in the order of the list.
    pub problems: Vec<UtteranceError>,
    /// What is missing of recordings that were cut off; the rest of them is in the file.
    pub incomplete: Vec<ReadAudioError>,
}

/// Why an utterance is not in the file.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UtteranceError {
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    #[error("`{path}`: {cause}", path = path.display())]
    Resample { path: PathBuf, cause: ResampleError },
    #[error("`{path}`: utterance `{id}` is {duration_ms:.1} ms long, a frame is {window_ms} ms", path = path.display())]
    TooShort { path: PathBuf, id: String, duration_ms: f64, window_ms: f64 },
    #[error("`{path}`: utterance `{id}` is longer than {limit_s} s", path = path.display())]
    TooLong { path: PathBuf, id: String, limit_s: f64 },
    #[error("`{path}`: there is already an utterance `{id}`", path = path.display())]
    Duplicate { path: PathBuf, id: String },
    #[error("`{path}`: `{id}` cannot be the key of an utterance: it is empty or has white space", path = path.display())]
    Key { path: PathBuf, id: String },
}

/// Why there is no file at all.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteFeaturesError {
    #[error(transparent)]
    Config(#[from] FeaturesConfigError),
    #[error("could not write `{path}`: {cause}", path = path.display())]
    Write { path: PathBuf, cause: io::Error },
}

/// How often [`write_features`] goes through the list.
pub fn n_passes(config: &FeaturesConfig) -> usize {
    if matches!(config.cmvn, Cmvn::Speaker | Cmvn::Global) { 2 } else { 1 }
}

/// Computes the features of `utterances` and writes them to `path`; calls `on_done` after each utterance and pass.
///
/// ```
/// use srf_audio::bulk::{Format, Summary, Utterance, UtteranceError, WriteFeaturesError, n_passes, write_features};
/// use srf_audio::features::{Cmvn, FeaturesConfig};
/// use srf_audio::{Samples, wav};
///
/// # let dir = tempfile::tempdir()?;
/// # let wav_path = dir.path().join("a.wav");
/// wav::save(&wav_path, &Samples { rate_hz: 16_000, values: vec![0.1; 16_000] })?;
/// let list = [Utterance::from(wav_path), Utterance::from("missing.wav")];
/// let config = FeaturesConfig { cmvn: Cmvn::None, ..FeaturesConfig::default() };
/// assert_eq!(n_passes(&config), 1, "only CMVN by speaker or corpus reads everything twice");
/// let out = dir.path().join("feats.safetensors");
/// let summary: Summary = write_features(&list, &config, Format::Safetensors, &out, &|| ())?;
/// assert_eq!((summary.n_utterances, summary.n_frames), (1, 98));
/// assert!(matches!(summary.problems[..], [UtteranceError::Read(_)]));
///
/// let wrong = FeaturesConfig { mel_bins: 0, ..config };
/// let error = write_features(&list, &wrong, Format::Safetensors, &out, &|| ()).unwrap_err();
/// assert!(matches!(error, WriteFeaturesError::Config(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_features(
    utterances: &[Utterance],
    config: &FeaturesConfig,
    format: Format,
    path: &Path,
    on_done: &(dyn Fn() + Sync),
) -> Result<Summary, WriteFeaturesError> {
    let extractor = Extractor::new(config)?;
    let job = Job { config, extractor, on_done };
    let mut summary = Summary::default();
    let mut entries = checked(utterances, format, &mut summary.problems);
    let groups = if n_passes(config) == 2 { job.gather(&mut entries) } else { BTreeMap::new() };

    let write_error = |cause| WriteFeaturesError::Write { path: path.to_owned(), cause };
    let mut sink = Sink::create(path, format).map_err(write_error)?;
    let mut speakers = HashSet::new();
    for batch in batches(&mut entries) {
        for (entry, computed) in job.compute(batch, &|entry, frames| job.normalize(entry, frames, &groups)) {
            let Some((frames, audio_s)) = computed else { continue };
            let matrix = Matrix { n_cols: config.n_features(), values: frames };
            summary.n_utterances += 1;
            summary.n_frames += matrix.n_rows() as u64;
            summary.audio_s += audio_s;
            speakers.insert(&entry.speaker);
            sink.write(&entry.id, &matrix).map_err(write_error)?;
        }
    }
    sink.finish().map_err(write_error)?;
    summary.n_speakers = speakers.len();
    for entry in entries {
        summary.problems.extend(entry.problem);
        summary.incomplete.extend(entry.incomplete);
    }
    Ok(summary)
}

/// An utterance, and what was found wrong with it.
struct Entry<'a> {
    utterance: &'a Utterance,
    /// In seconds, as far as it is known before decoding.
    expected_s: f64,
    problem: Option<UtteranceError>,
    incomplete: Option<ReadAudioError>,
}

/// The utterances whose keys are fit for the file.
fn checked<'a>(utterances: &'a [Utterance], format: Format, problems: &mut Vec<UtteranceError>) -> Vec<Entry<'a>> {
    let mut ids = HashSet::new();
    let mut entries = Vec::new();
    for utterance in utterances {
        let Utterance { id, path, selection, .. } = utterance;
        let (id, path) = (id.clone(), path.clone());
        if matches!(format, Format::Ark(_)) && (id.is_empty() || id.contains(char::is_whitespace)) {
            problems.push(UtteranceError::Key { path, id });
        } else if ids.insert(&utterance.id) {
            // A minute is a guess for a whole recording; it only shapes the batches.
            let expected_s = selection.end_s.map_or(60.0, |end_s| end_s - selection.start_s);
            entries.push(Entry { utterance, expected_s, problem: None, incomplete: None });
        } else {
            problems.push(UtteranceError::Duplicate { path, id });
        }
    }
    entries
}

/// Cuts the list into parts that may be in memory at once.
fn batches<'e, 'a>(mut entries: &'e mut [Entry<'a>]) -> impl Iterator<Item = &'e mut [Entry<'a>]> {
    std::iter::from_fn(move || {
        let mut total_s = 0.0;
        let fits = |entry: &&Entry<'_>| {
            total_s += entry.expected_s;
            total_s <= BATCH_S
        };
        let n_fitting = entries.iter().take(BATCH_UTTERANCES).take_while(fits).count().max(1);
        let (batch, rest) = std::mem::take(&mut entries).split_at_mut_checked(n_fitting)?;
        entries = rest;
        Some(batch)
    })
}

struct Job<'a> {
    config: &'a FeaturesConfig,
    /// With its tables made; each worker has a copy.
    extractor: Extractor,
    on_done: &'a (dyn Fn() + Sync),
}

impl Job<'_> {
    /// The first pass: the statistics of each speaker, or of everything under one name.
    fn gather(&self, entries: &mut [Entry<'_>]) -> BTreeMap<String, CmvnStats> {
        let n_dims = self.config.n_features();
        let mut groups = BTreeMap::new();
        for batch in batches(entries) {
            let stats = self.compute(batch, &|_, frames| CmvnStats::of(n_dims, &frames));
            for (utterance, computed) in stats {
                if let Some((stats, _)) = computed {
                    let group = self.group(utterance).to_owned();
                    groups.entry(group).or_insert_with(|| CmvnStats::new(n_dims)).merge(&stats);
                }
            }
        }
        groups
    }

    fn group<'u>(&self, utterance: &'u Utterance) -> &'u str {
        if self.config.cmvn == Cmvn::Global { "global" } else { &utterance.speaker }
    }

    fn normalize(&self, utterance: &Utterance, mut frames: Vec<f32>, groups: &BTreeMap<String, CmvnStats>) -> Vec<f32> {
        let own = (self.config.cmvn == Cmvn::Utterance).then(|| CmvnStats::of(self.config.n_features(), &frames));
        let group = own.as_ref().or_else(|| groups.get(self.group(utterance)));
        Normalizer::new(self.config, group, group).apply(&mut frames);
        frames
    }

    /// What `f` makes of the features of each utterance, and its length in seconds, in the order of the batch.
    ///
    /// Those with a problem give `None`, now and in later passes.
    fn compute<'e, 'a, T: Send>(
        &self,
        batch: &'e mut [Entry<'a>],
        f: &(dyn Fn(&Utterance, Vec<f32>) -> T + Sync),
    ) -> Vec<(&'a Utterance, Option<(T, f64)>)> {
        let make = || self.extractor.clone();
        let results = batch.par_iter_mut().map_init(make, |extractor, entry| {
            let computed = match &entry.problem {
                Some(_) => None,
                None => match frames(entry.utterance, self.config, extractor) {
                    Ok((frames, audio_s, incomplete)) => {
                        entry.incomplete = incomplete;
                        Some((f(entry.utterance, frames), audio_s))
                    }
                    Err(problem) => {
                        entry.problem = Some(problem);
                        None
                    }
                },
            };
            (self.on_done)();
            (entry.utterance, computed)
        });
        results.collect()
    }
}

/// The features of one utterance before normalisation, its length in seconds, and what is missing of it.
fn frames(
    utterance: &Utterance,
    config: &FeaturesConfig,
    extractor: &mut Extractor,
) -> Result<(Vec<f32>, f64, Option<ReadAudioError>), UtteranceError> {
    extractor.reset();
    let recording = Recording::open(&utterance.path)?;
    let from_hz = recording.info().rate_hz;
    let resampler = Resampler::new(from_hz, config.sample_rate_hz);
    let mut resampler = resampler.map_err(|cause| UtteranceError::Resample { path: utterance.path.clone(), cause })?;
    let mut blocks = recording.blocks(utterance.selection)?;
    let (mut samples, mut frames, mut n_samples) = (Vec::new(), Vec::new(), 0);
    while let Some(block) = blocks.next_block()? {
        n_samples += block.len();
        if MAX_UTTERANCE_S * f64::from(from_hz) < n_samples as f64 {
            let (path, id) = (utterance.path.clone(), utterance.id.clone());
            return Err(UtteranceError::TooLong { path, id, limit_s: MAX_UTTERANCE_S });
        }
        samples.clear();
        resampler.accept(block, &mut samples);
        extractor.accept(&samples, &mut frames);
    }
    samples.clear();
    resampler.finish(&mut samples);
    extractor.accept(&samples, &mut frames);
    extractor.finish(&mut frames);
    let duration_s = n_samples as f64 / f64::from(from_hz);
    if frames.is_empty() {
        let (path, id) = (utterance.path.clone(), utterance.id.clone());
        return Err(UtteranceError::TooShort {
            path,
            id,
            duration_ms: 1000.0 * duration_s,
            window_ms: config.window_ms,
        });
    }
    Ok((frames, duration_s, blocks.incomplete()))
}

/// The file being written.
enum Sink {
    Ark(ark::Writer),
    Safetensors(tensors::Writer),
}

impl Sink {
    fn create(path: &Path, format: Format) -> io::Result<Self> {
        match format {
            Format::Ark(form) => Ok(Self::Ark(ark::Writer::create(path, Some(&path.with_extension("scp")), form)?)),
            Format::Safetensors => Ok(Self::Safetensors(tensors::Writer::create(path)?)),
        }
    }

    fn write(&mut self, id: &str, matrix: &Matrix) -> io::Result<()> {
        match self {
            Self::Ark(writer) => writer.write(id, matrix),
            Self::Safetensors(writer) => writer.write(id, matrix),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Ark(writer) => writer.finish(),
            Self::Safetensors(writer) => writer.finish(),
        }
    }
}
