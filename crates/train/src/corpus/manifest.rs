//! Manifests: one utterance a line as a JSON object with NeMo's keys, and ours for what NeMo does not know.
//!
//! | key | meaning |
//! |---|---|
//! | `audio_filepath` (`audio`) | the recording; a relative path starts at the manifest |
//! | `duration` (`dur`), `offset` | seconds; without `offset` the utterance is the whole recording |
//! | `text` | what a model is to write |
//! | `id`, `speaker`, `channel` | `id` defaults to the name of the file, with folders where names collide; `speaker` to the `id` |
//! | `sentence` | the words, where `text` is not them |
//! | `phones`, `words` | `[[start_s, end_s, name], ...]` |
//! | `phone_seq` | phones without times |
//!
//! Other keys are allowed and not read.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, for_each_line, for_each_line_of};
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, TRAIN, Timed, Utterance};

/// Folders that an id can have in front of it.
const MAX_FOLDERS: usize = 20;

/// A line as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(alias = "audio")]
    audio_filepath: String,
    #[serde(alias = "dur", skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sentence: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phone_seq: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phones: Vec<(f64, f64, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    words: Vec<(f64, f64, String)>,
}

/// An utterance and the line it stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Counted from 1.
    pub line: usize,
    /// The utterance, its audio path made absolute or relative to the working directory.
    pub utterance: Utterance,
}

/// Reads the manifest at `path`; lines that cannot be read are reported and left out.
pub fn load(path: &Path) -> (Vec<Listed>, Vec<Problem>) {
    let (mut listed, problems) = load_lines(path);
    name_after_paths(&mut listed.iter_mut().collect::<Vec<_>>());
    (without_flags(listed), problems)
}

fn load_lines(path: &Path) -> (Vec<Line>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut listed = Vec::new();
    for_each_line(path, &mut problems, |line, text, problems| listed.extend(parse(path, line, text, problems)));
    (listed, problems.0)
}

/// A line, and whether its id is only the name of its recording.
struct Line {
    listed: Listed,
    is_unnamed: bool,
}

fn without_flags(lines: Vec<Line>) -> Vec<Listed> {
    lines.into_iter().map(|line| line.listed).collect()
}

/// Ids that are names of recordings get as many folders in front as it takes to tell them apart.
fn name_after_paths(lines: &mut [&mut Line]) {
    for n_folders in 1..MAX_FOLDERS {
        let mut recordings: HashMap<String, HashSet<PathBuf>> = HashMap::new();
        for Utterance { id, audio, .. } in lines.iter().map(|line| &line.listed.utterance) {
            recordings.entry(id.clone()).or_default().insert(audio.path.clone());
        }
        let repeated =
            lines.iter_mut().filter(|line| line.is_unnamed && 1 < recordings[&line.listed.utterance.id].len());
        let mut n_changed = 0;
        for line in repeated {
            let Utterance { id, speaker, audio, .. } = &mut line.listed.utterance;
            let folder = files::ancestor_name(&audio.path, n_folders);
            if !folder.is_empty() {
                let named = format!("{folder}-{id}");
                if speaker == id {
                    speaker.clone_from(&named);
                }
                *id = named;
                n_changed += 1;
            }
        }
        if n_changed == 0 {
            return;
        }
    }
}

/// Reads a manifest as the training part, or every manifest (`*.jsonl`) of a folder as the part of its name.
pub fn read_corpus(path: &Path) -> (Corpus, Vec<Problem>) {
    let utterances = |listed: Vec<Listed>| listed.into_iter().map(|listed| listed.utterance).collect();
    if !path.is_dir() {
        let (listed, problems) = load(path);
        return (Corpus::of_one(TRAIN, utterances(listed)), problems);
    }
    let entries = fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut manifests: Vec<PathBuf> = entries.unwrap_or_default();
    manifests.retain(|path| files::extension(path) == "jsonl");
    manifests.sort();
    let (mut parts, mut problems) = (Vec::new(), Vec::new());
    for manifest in manifests {
        let (lines, found) = load_lines(&manifest);
        parts.push((files::stem(&manifest), lines));
        problems.extend(found);
    }
    name_after_paths(&mut parts.iter_mut().flat_map(|(_, lines)| lines).collect::<Vec<_>>());
    let named = parts.iter_mut().map(|(name, lines)| (name.as_str(), utterances(without_flags(std::mem::take(lines)))));
    (Corpus::of_parts(named), problems)
}

/// The same of anything that can be read; `path` is what it is called and where relative paths start.
pub fn read(reader: impl BufRead, path: &Path) -> (Vec<Listed>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut listed = Vec::new();
    for_each_line_of(reader, path, &mut problems, |line, text, problems| {
        listed.extend(parse(path, line, text, problems));
    });
    name_after_paths(&mut listed.iter_mut().collect::<Vec<_>>());
    (without_flags(listed), problems.0)
}

fn parse(path: &Path, line: usize, text: &str, problems: &mut Problems) -> Option<Line> {
    if text.trim().is_empty() {
        return None;
    }
    match serde_json::from_str::<Entry>(text) {
        Ok(entry) => {
            let is_unnamed = entry.id.is_none();
            let utterance = entry.into_utterance(path.parent().unwrap_or(Path::new("")));
            check_times(&utterance, path, line, problems);
            Some(Line { listed: Listed { line, utterance }, is_unnamed })
        }
        Err(error) => {
            // The parser counts lines inside our line; only the column means something to the reader of the file.
            let reason = error.to_string().replace(" at line 1 column", " at column");
            problems.add(path, Some(line), Fault::Json { reason });
            None
        }
    }
}

fn check_times(utterance: &Utterance, path: &Path, line: usize, problems: &mut Problems) {
    for (kind, timed) in [("phone", &utterance.phones), ("word", &utterance.words)] {
        let mut last_start = 0.0;
        for Timed { start_s, end_s, name } in timed {
            let is_span = start_s.is_finite() && end_s.is_finite() && last_start <= *start_s && start_s <= end_s;
            if !is_span {
                let what = format!("utterance `{}`: {kind} `{name}`", utterance.id);
                problems.add(path, Some(line), Fault::Times { what, start: *start_s, end: *end_s });
                break;
            }
            last_start = *start_s;
        }
    }
}

impl Entry {
    fn into_utterance(self, dir: &Path) -> Utterance {
        let path = dir.join(&self.audio_filepath);
        let id = self.id.unwrap_or_else(|| default_id(&path, self.offset));
        Utterance {
            speaker: self.speaker.unwrap_or_else(|| id.clone()),
            id,
            audio: AudioPart { path, offset_s: self.offset, duration_s: self.duration, channel: self.channel },
            sentence: self.sentence.unwrap_or_else(|| self.text.clone()),
            text: self.text,
            phone_seq: self.phone_seq,
            phones: from_wire(self.phones),
            words: from_wire(self.words),
        }
    }

    fn of(utterance: &Utterance, dir: &Path) -> Self {
        let Utterance { id, speaker, audio, text, sentence, phone_seq, phones, words } = utterance;
        let AudioPart { path, offset_s, duration_s, channel } = audio;
        Self {
            id: Some(id.clone()),
            audio_filepath: path.strip_prefix(dir).unwrap_or(path).display().to_string(),
            duration: *duration_s,
            offset: *offset_s,
            channel: *channel,
            speaker: Some(speaker.clone()),
            text: text.clone(),
            sentence: (sentence != text && !sentence.is_empty()).then(|| sentence.clone()),
            phone_seq: phone_seq.clone(),
            phones: to_wire(phones),
            words: to_wire(words),
        }
    }
}

fn default_id(path: &Path, offset: Option<f64>) -> String {
    let stem = files::stem(path);
    offset.map_or(stem.clone(), |offset| format!("{stem}-{offset:.2}"))
}

fn from_wire(timed: Vec<(f64, f64, String)>) -> Vec<Timed> {
    timed.into_iter().map(|(start_s, end_s, name)| Timed { start_s, end_s, name }).collect()
}

fn to_wire(timed: &[Timed]) -> Vec<(f64, f64, String)> {
    timed.iter().map(|Timed { start_s, end_s, name }| (*start_s, *end_s, name.clone())).collect()
}

/// Writes a manifest to `path`; recordings below its folder are named relative to it.
pub fn save<'a>(path: &Path, utterances: impl IntoIterator<Item = &'a Utterance>) -> io::Result<()> {
    let dir = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let mut out = BufWriter::new(File::create(path)?);
    for utterance in utterances {
        serde_json::to_writer(&mut out, &Entry::of(utterance, &dir))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests;
