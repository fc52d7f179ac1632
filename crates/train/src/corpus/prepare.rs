//! Turns what a reader found into a folder to train on: `train.jsonl`, `dev.jsonl`, ..., `labels.txt`, `summary.json`,
//! and Kaldi data directories if asked for.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use srf_text::labels::pieces::PiecesError;

use super::problem::{Fault, Problem, Problems};
use super::split::{SplitConfig, SplitError};
use super::summary::{Check, Summary};
use super::targets::TargetConfig;
use super::{Corpus, Utterance, Watcher, files, kaldi, manifest};

/// A length in a list may differ by this much from that of the recording: lists are rounded.
pub(crate) const MAX_LENGTH_DIFFERENCE_S: f64 = 0.05;

/// What to do with a corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareConfig {
    /// How to split it, if it is to be split.
    pub split: SplitConfig,
    /// What a model is to write.
    pub targets: TargetConfig,
    /// Whether to write Kaldi data directories too, to `kaldi/<part>`.
    pub kaldi: bool,
}

/// Why nothing was prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum PrepareError {
    #[error("no utterance to prepare was found in `{src}`")]
    Nothing { src: PathBuf },
    #[error("`{path}` already holds {what}")]
    Exists { path: PathBuf, what: &'static str },
    #[error(transparent)]
    Split(#[from] SplitError),
    #[error(transparent)]
    Labels(#[from] PiecesError),
    #[error("could not write `{path}`")]
    Write { path: PathBuf, source: io::Error },
}

impl PrepareError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            PrepareError::Nothing { .. } => Some(
                "the problems above say what was looked for; is it the right kind of corpus (`srf prepare --help`)?"
                    .to_owned(),
            ),
            PrepareError::Exists { what: "a corpus", .. } => Some("`--force` replaces it".to_owned()),
            PrepareError::Exists { .. } => Some("give a new folder, or `--force` to write next to them".to_owned()),
            PrepareError::Labels(PiecesError::TooFew { needed, .. }) => {
                Some(format!("`--pieces {}` or more", 2 * needed))
            }
            PrepareError::Split(SplitError::TooFewSpeakers { .. }) => {
                Some("give one part a share of 0 (`--split 90/10/0`), or leave `--split` out".to_owned())
            }
            _ => None,
        }
    }
}

/// Where a corpus came from.
pub struct Found {
    /// What was read.
    pub src: PathBuf,
    /// What was found there.
    pub corpus: Corpus,
    /// What was wrong with it.
    pub problems: Vec<Problem>,
}

/// Refuses to write a corpus into a folder that holds something else, or that holds a corpus already.
///
/// With `force` a corpus that is there is removed first, all but its recordings; other files stay.
pub fn check_out(out: &Path, force: bool) -> Result<(), PrepareError> {
    let entries = fs::read_dir(out).map(|entries| entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
    let entries = entries.unwrap_or_default();
    if entries.is_empty() {
        return Ok(());
    }
    let is_ours = |path: &&PathBuf| {
        files::extension(path) == "jsonl" || OURS.iter().any(|name| path.file_name().is_some_and(|file| file == *name))
    };
    let is_corpus = out.join("summary.json").is_file() && out.join("labels.txt").is_file();
    if !force {
        return Err(PrepareError::Exists {
            path: out.to_owned(),
            what: if is_corpus { "a corpus" } else { "other files" },
        });
    }
    let removed = entries
        .iter()
        .filter(|_| is_corpus)
        .filter(is_ours)
        .try_for_each(|path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) });
    removed.map_err(|source| PrepareError::Write { path: out.to_owned(), source })
}

/// What a prepared corpus consists of, besides its manifests.
const OURS: [&str; 3] = ["summary.json", "labels.txt", "kaldi"];

/// Prepares `found` in the folder `out`; `checks` are counted on the corpus as read.
pub fn prepare(
    found: Found,
    config: &PrepareConfig,
    checks: &dyn Fn(&Corpus) -> Vec<Check>,
    out: &Path,
    watcher: &dyn Watcher,
) -> (Result<Summary, PrepareError>, Vec<Problem>) {
    let Found { src, corpus, problems } = found;
    let mut problems = Problems(problems);
    let summary = prepare_with(&src, corpus, config, checks, out, watcher, &mut problems);
    (summary, problems.0)
}

fn prepare_with(
    src: &Path,
    mut corpus: Corpus,
    config: &PrepareConfig,
    checks: &dyn Fn(&Corpus) -> Vec<Check>,
    out: &Path,
    watcher: &dyn Watcher,
    problems: &mut Problems,
) -> Result<Summary, PrepareError> {
    let checks = checks(&corpus);
    if let Some(speaker_from) = &config.split.speaker_from {
        speaker_from.apply(&mut corpus);
    }
    drop_duplicates(&mut corpus, problems);
    measure(&mut corpus, watcher, problems);
    if config.split.is_asked() && 0 < corpus.n_utterances() {
        corpus = config.split.split(corpus)?;
    }
    let applied = config.targets.apply(&mut corpus, problems);
    if corpus.n_utterances() == 0 {
        return Err(PrepareError::Nothing { src: src.to_owned() });
    }
    let applied = applied?;
    let labels = applied.labels.clone();
    let summary = Summary::new(&corpus, applied, checks, problems.0.len());
    let out = std::path::absolute(out).map_err(|source| PrepareError::Write { path: out.to_owned(), source })?;
    let save = |path: PathBuf, result: io::Result<()>| result.map_err(|source| PrepareError::Write { path, source });
    save(out.clone(), fs::create_dir_all(&out))?;
    save(out.join("labels.txt"), labels.save(&out.join("labels.txt")))?;
    for part in &corpus.parts {
        let path = out.join(format!("{}.jsonl", part.name));
        save(path.clone(), manifest::save(&path, &part.utterances))?;
        if config.kaldi {
            let dir = out.join("kaldi").join(&part.name);
            save(dir.clone(), kaldi::save(&dir, &part.utterances))?;
        }
    }
    let json = serde_json::to_string_pretty(&summary).expect("a summary is plain data") + "\n";
    save(out.join("summary.json"), srf_base::files::write_atomically(&out.join("summary.json"), json.as_bytes()))?;
    Ok(summary)
}

/// An id is used once in the whole corpus; the later ones are reported and left out.
fn drop_duplicates(corpus: &mut Corpus, problems: &mut Problems) {
    let mut first: HashMap<String, PathBuf> = HashMap::new();
    for part in &mut corpus.parts {
        part.utterances.retain(|utterance| match first.get(&utterance.id) {
            None => first.insert(utterance.id.clone(), utterance.audio.path.clone()).is_none(),
            Some(path) => {
                let fault = Fault::DuplicateId { id: utterance.id.clone(), first: format!("`{}`", path.display()) };
                problems.add(&utterance.audio.path, None, fault);
                false
            }
        });
    }
}

/// Reads the header of every recording: utterances get their length, those that cannot be read are reported and left out.
fn measure(corpus: &mut Corpus, watcher: &dyn Watcher, problems: &mut Problems) {
    let mut paths: Vec<PathBuf> = corpus.utterances().map(|utterance| utterance.audio.path.clone()).collect();
    paths.sort();
    paths.dedup();
    watcher.begin("measuring", paths.len());
    let lengths = paths.par_iter().map(|path| {
        let length = length_s(path);
        watcher.advance();
        length
    });
    let lengths: Vec<Result<f64, Fault>> = lengths.collect();
    let mut known: HashMap<PathBuf, f64> = HashMap::new();
    for (path, length) in paths.into_iter().zip(lengths) {
        match length {
            Ok(length_s) => drop(known.insert(path, length_s)),
            Err(fault) => problems.add(&path, None, fault),
        }
    }
    for part in &mut corpus.parts {
        part.utterances.retain_mut(|utterance| match known.get(&utterance.audio.path) {
            Some(length_s) => set_length(utterance, *length_s, problems),
            None => false,
        });
    }
    corpus.parts.retain(|part| !part.utterances.is_empty());
}

/// The length of a recording: what its header says, or, where it says nothing, what is in it.
pub(crate) fn length_s(path: &Path) -> Result<f64, Fault> {
    let recording = srf_audio::Recording::open(path)?;
    if let Some(cut_off) = recording.incomplete() {
        return Err(cut_off.into());
    }
    let length_s = match recording.info().duration_s() {
        Some(length_s) => length_s,
        None => counted_length_s(&recording)?,
    };
    if 0.0 < length_s { Ok(length_s) } else { Err(Fault::Missing { what: "any sample".to_owned() }) }
}

fn counted_length_s(recording: &srf_audio::Recording) -> Result<f64, Fault> {
    let mut blocks = recording.blocks(srf_audio::Selection::default())?;
    let mut n_samples = 0;
    while let Some(block) = blocks.next_block()? {
        n_samples += block.len();
    }
    Ok(n_samples as f64 / f64::from(blocks.rate_hz()))
}

/// Whether the utterance lies in its recording; its path becomes absolute and its length that of the recording.
fn set_length(utterance: &mut Utterance, found_s: f64, problems: &mut Problems) -> bool {
    let (id, audio) = (utterance.id.clone(), &mut utterance.audio);
    match (audio.offset_s, audio.duration_s) {
        (Some(offset_s), duration_s) => {
            let end_s = offset_s + duration_s.unwrap_or(found_s - offset_s);
            if offset_s < 0.0 || found_s + MAX_LENGTH_DIFFERENCE_S < end_s || end_s <= offset_s {
                problems.add(&audio.path, None, Fault::BeyondEnd { id, end_s, found_s });
                return false;
            }
            audio.duration_s = Some(end_s.min(found_s) - offset_s);
        }
        (None, Some(said_s)) if MAX_LENGTH_DIFFERENCE_S < (said_s - found_s).abs() => {
            problems.add(&audio.path, None, Fault::Length { id, said_s, found_s });
            audio.duration_s = Some(found_s);
        }
        (None, _) => audio.duration_s = Some(found_s),
    }
    if let Ok(path) = std::path::absolute(&audio.path) {
        audio.path = path;
    }
    if audio.path.to_str().is_none() {
        problems.add(&audio.path, None, Fault::NameNotUtf8);
    }
    audio.path.to_str().is_some()
}
