//! Checks a manifest against its recordings before hours are spent on it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::ops::Add;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use srf_text::labels::LabelSet;

use super::manifest::{self, Listed};
use super::prepare::{MAX_LENGTH_DIFFERENCE_S, length_s};
use super::problem::{Fault, Problem, Problems};
use super::{Utterance, Watcher};

/// The front end: windows of 25 ms every 10 ms, of which the network keeps every fourth.
const WINDOW_SAMPLES: usize = 400;
const SHIFT_SAMPLES: usize = 160;
const RATE_HZ: f64 = 16_000.0;
const SUBSAMPLING: usize = 4;

/// How much to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The headers of recordings.
    #[default]
    Headers,
    /// Every sample of them.
    Samples,
}

/// A manifest in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Validated {
    /// Utterances that could be read.
    pub n_utterances: usize,
    /// Their length.
    pub hours: f64,
}

/// Checks the manifest at `path`; without `labels`, labels and their number are not checked.
pub fn validate(
    path: &Path,
    labels: Option<&LabelSet>,
    depth: Depth,
    watcher: &dyn Watcher,
) -> (Validated, Vec<Problem>) {
    let (listed, problems) = manifest::load(path);
    let mut problems = Problems(problems);
    check_ids(path, &listed, &mut problems);
    let lengths = lengths(&listed, depth, watcher);
    for Listed { line, utterance } in &listed {
        let mut tell = |fault| problems.add(path, Some(*line), fault);
        let length = &lengths[&utterance.audio.path];
        match length {
            Ok(found_s) => check_length(utterance, *found_s).into_iter().for_each(&mut tell),
            Err(fault) => tell(Fault::AudioOf { id: utterance.id.clone(), reason: fault.to_string() }),
        }
        let duration_s = utterance.audio.duration_s.or(length.as_ref().ok().copied());
        check_text(utterance, labels, duration_s.unwrap_or(0.0)).into_iter().for_each(&mut tell);
    }
    problems.0.sort_by_key(|problem| problem.line);
    // The sum of no numbers is -0.
    let seconds = listed.iter().filter_map(|listed| listed.utterance.audio.duration_s).fold(0.0, Add::add);
    (Validated { n_utterances: listed.len(), hours: seconds / 3600.0 }, problems.0)
}

/// A checksum of a manifest and of every byte of its recordings, to tell two copies of a corpus apart.
pub fn checksum(path: &Path) -> io::Result<String> {
    let (listed, _) = manifest::load(path);
    let mut recordings: Vec<&PathBuf> = listed.iter().map(|listed| &listed.utterance.audio.path).collect();
    recordings.sort();
    recordings.dedup();
    let manifest = path.to_owned();
    let all: Vec<&PathBuf> = std::iter::once(&manifest).chain(recordings).collect();
    let sums = all.par_iter().map(|path| file_checksum(path)).collect::<io::Result<Vec<u32>>>()?;
    let mut sum = crc32fast::Hasher::new();
    sums.iter().for_each(|one| sum.update(&one.to_le_bytes()));
    Ok(format!("{:08x}", sum.finalize()))
}

fn file_checksum(path: &Path) -> io::Result<u32> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(named)?);
    let mut sum = crc32fast::Hasher::new();
    loop {
        let bytes = file.fill_buf().map_err(named)?;
        if bytes.is_empty() {
            return Ok(sum.finalize());
        }
        sum.update(bytes);
        let n_bytes = bytes.len();
        file.consume(n_bytes);
    }
}

fn check_ids(path: &Path, listed: &[Listed], problems: &mut Problems) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for Listed { line, utterance } in listed {
        let earlier = *first.entry(&utterance.id).or_insert(*line);
        if earlier != *line {
            let fault = Fault::DuplicateId { id: utterance.id.clone(), first: format!("line {earlier}") };
            problems.add(path, Some(*line), fault);
        }
    }
}

/// The length of each recording, read once however many utterances it has.
fn lengths(listed: &[Listed], depth: Depth, watcher: &dyn Watcher) -> HashMap<PathBuf, Result<f64, Fault>> {
    let mut paths: Vec<&PathBuf> = listed.iter().map(|listed| &listed.utterance.audio.path).collect();
    paths.sort();
    paths.dedup();
    watcher.begin("checking", paths.len());
    let lengths = paths.par_iter().map(|path| {
        let length = match depth {
            Depth::Headers => length_s(path),
            Depth::Samples => decoded_length_s(path),
        };
        watcher.advance();
        ((*path).clone(), length)
    });
    lengths.collect()
}

fn decoded_length_s(path: &Path) -> Result<f64, Fault> {
    let samples = srf_audio::Recording::open(path)?.read(srf_audio::Selection::default())?;
    if samples.values.is_empty() {
        Err(Fault::Missing { what: "any sample".to_owned() })
    } else {
        Ok(samples.duration_s())
    }
}

fn check_length(utterance: &Utterance, found_s: f64) -> Option<Fault> {
    let id = utterance.id.clone();
    let audio = &utterance.audio;
    let Some(said_s) = audio.duration_s else { return Some(Fault::NoDuration { id, found_s }) };
    match audio.offset_s {
        _ if !(said_s.is_finite() && 0.0 < said_s) => Some(Fault::Length { id, said_s, found_s }),
        Some(offset_s)
            if !(0.0..=found_s).contains(&offset_s) || found_s + MAX_LENGTH_DIFFERENCE_S < offset_s + said_s =>
        {
            Some(Fault::BeyondEnd { id, end_s: offset_s + said_s, found_s })
        }
        None if MAX_LENGTH_DIFFERENCE_S < (said_s - found_s).abs() => Some(Fault::Length { id, said_s, found_s }),
        _ => None,
    }
}

/// Every foreign label once, or that there are more labels than output frames.
fn check_text(utterance: &Utterance, labels: Option<&LabelSet>, duration_s: f64) -> Vec<Fault> {
    let id = || utterance.id.clone();
    if utterance.text.trim().is_empty() {
        return vec![Fault::EmptyText { id: id() }];
    }
    let Some(labels) = labels else { return Vec::new() };
    if let Ok(classes) = labels.encode(&utterance.text) {
        let (n_needed, n_frames) = (n_frames_needed(&classes), n_output_frames(duration_s));
        let fault = Fault::TooManyLabels { id: id(), n_labels: classes.len(), n_needed, n_frames, duration_s };
        return if n_frames < n_needed { vec![fault] } else { Vec::new() };
    }
    let mut seen = HashSet::new();
    let all = labels.split(&utterance.text).into_iter().enumerate();
    let foreign = all.filter(|(_, label)| labels.class(label).is_none() && seen.insert(label.clone()));
    foreign
        .map(|(index, label)| Fault::ForeignLabel { id: id(), position: index + 1, label: label.into_owned() })
        .collect()
}

/// Output frames of `duration_s` of sound: ceil(frames / 4).
pub fn n_output_frames(duration_s: f64) -> usize {
    let n_samples = if duration_s.is_finite() { (duration_s * RATE_HZ).round() as usize } else { 0 };
    let n_frames = n_samples.checked_sub(WINDOW_SAMPLES).map_or(0, |rest| 1 + rest / SHIFT_SAMPLES);
    n_frames.div_ceil(SUBSAMPLING)
}

/// Frames that CTC needs: one a label, and one for the blank between two labels that are the same.
pub fn n_frames_needed(classes: &[usize]) -> usize {
    classes.len() + classes.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

#[cfg(test)]
mod tests;
