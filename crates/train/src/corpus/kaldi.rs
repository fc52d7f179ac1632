//! Kaldi data directories: a directory in, utterances out, and the other way round.

mod scp;
mod write;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

pub use self::scp::{Commands, Source, parse_source};
pub use self::write::save;

use super::lines::for_each_line;
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, TRAIN, Utterance};

/// Reads the directory `root` as the training part, or, where it has none itself, the directories in it as parts.
pub fn read(root: &Path, commands: &Commands) -> (Corpus, Vec<Problem>) {
    let entries = fs::read_dir(root).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut dirs: Vec<PathBuf> = entries.unwrap_or_default();
    dirs.retain(|dir| dir.join("wav.scp").exists());
    dirs.sort();
    if root.join("wav.scp").exists() || dirs.is_empty() {
        return read_dir(root, TRAIN, commands);
    }
    let (mut corpus, mut problems) = (Corpus::default(), Vec::new());
    for dir in dirs {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (part, found) = read_dir(&dir, &name, commands);
        corpus.parts.extend(part.parts);
        problems.extend(found);
    }
    (corpus, problems)
}

/// Reads the directory `root` as the part `name`.
///
/// `wav.scp` and `text` must be there; `utt2spk`, `segments` and `reco2file_and_channel` may be. Without a speaker
/// an utterance is its own.
fn read_dir(root: &Path, name: &str, commands: &Commands) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let recordings = recordings(root, commands, &mut problems);
    let segments = segments(root, &recordings, &mut problems);
    let speakers: HashMap<String, String> =
        optional_table(root, "utt2spk", &mut problems).into_iter().map(Row::pair).collect();
    let texts: HashMap<String, String> = table(&root.join("text"), &mut problems).into_iter().map(Row::pair).collect();
    let mut utterances = Vec::with_capacity(segments.len());
    for Segment { id, audio, path, line } in segments {
        let Some(sentence) = texts.get(&id) else {
            problems.add(&path, Some(line), Fault::Missing { what: format!("the text of `{id}`") });
            continue;
        };
        let speaker = speakers.get(&id).unwrap_or(&id).clone();
        utterances.push(Utterance { speaker, audio, sentence: sentence.clone(), id, ..Utterance::default() });
    }
    (Corpus::of_one(name, utterances), problems.0)
}

/// A line of a table: a key and the rest.
struct Row {
    line: usize,
    key: String,
    value: String,
}

impl Row {
    fn pair(self) -> (String, String) {
        (self.key, self.value)
    }
}

fn table(path: &Path, problems: &mut Problems) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut keys = HashSet::new();
    for_each_line(path, problems, |line, text, problems| {
        let (key, value) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match keys.insert(key.to_owned()) {
            true if !key.is_empty() => rows.push(Row { line, key: key.to_owned(), value: value.trim().to_owned() }),
            true => {}
            false if key.is_empty() => {}
            false => {
                let first = "an earlier line".to_owned();
                problems.add(path, Some(line), Fault::DuplicateId { id: key.to_owned(), first });
            }
        }
    });
    rows
}

fn optional_table(root: &Path, name: &str, problems: &mut Problems) -> Vec<Row> {
    let path = root.join(name);
    if path.exists() { table(&path, problems) } else { Vec::new() }
}

fn recordings(root: &Path, commands: &Commands, problems: &mut Problems) -> HashMap<String, (usize, AudioPart)> {
    let scp = root.join("wav.scp");
    let channels = channels(root, problems);
    let mut recordings = HashMap::new();
    for Row { line, key, value } in table(&scp, problems) {
        match commands.file_of(&key, &parse_source(&value)) {
            Ok(path) => {
                let audio = AudioPart { path, channel: channels.get(&key).copied(), ..AudioPart::default() };
                recordings.insert(key, (line, audio));
            }
            Err(fault) => problems.add(&scp, Some(line), fault),
        }
    }
    recordings
}

fn channels(root: &Path, problems: &mut Problems) -> HashMap<String, usize> {
    let path = root.join("reco2file_and_channel");
    let mut channels = HashMap::new();
    for Row { line, key, value } in optional_table(root, "reco2file_and_channel", problems) {
        match value.split_whitespace().collect::<Vec<_>>()[..] {
            // A recording of one channel is called `A` too: its only channel, which is the mean of all.
            [_, "A"] => drop(channels.insert(key, 0)),
            [_, "B"] => drop(channels.insert(key, 1)),
            _ => problems.add(&path, Some(line), Fault::shape(&value, "`file channel`, the channel A or B")),
        }
    }
    channels
}

struct Segment {
    id: String,
    audio: AudioPart,
    path: PathBuf,
    line: usize,
}

/// The utterances in time: those of `segments`, or one a recording.
fn segments(root: &Path, recordings: &HashMap<String, (usize, AudioPart)>, problems: &mut Problems) -> Vec<Segment> {
    let path = root.join("segments");
    let mut segments = Vec::new();
    if !path.exists() {
        let path = root.join("wav.scp");
        let whole = recordings.iter().map(|(id, (line, audio))| Segment {
            id: id.clone(),
            audio: audio.clone(),
            path: path.clone(),
            line: *line,
        });
        segments.extend(whole);
        segments.sort_by_key(|segment: &Segment| segment.line);
        return segments;
    }
    for Row { line, key, value } in table(&path, problems) {
        match segment_audio(&value, recordings) {
            Ok(audio) => segments.push(Segment { id: key, audio, path: path.clone(), line }),
            Err(fault) => problems.add(&path, Some(line), fault),
        }
    }
    segments
}

fn segment_audio(value: &str, recordings: &HashMap<String, (usize, AudioPart)>) -> Result<AudioPart, Fault> {
    let expected = "`utterance recording begin end`, the times in seconds";
    let [recording, start, end] = value.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(Fault::shape(value, expected));
    };
    let (Ok(start), Ok(end)) = (start.parse::<f64>(), end.parse::<f64>()) else {
        return Err(Fault::shape(value, expected));
    };
    let Some((_, audio)) = recordings.get(recording) else {
        return Err(Fault::Missing { what: format!("the recording `{recording}` in wav.scp") });
    };
    if !(0.0 <= start && start < end && end.is_finite()) {
        return Err(Fault::Times { what: format!("a segment of `{recording}`"), start, end });
    }
    Ok(AudioPart { offset_s: Some(start), duration_s: Some(end - start), ..audio.clone() })
}

#[cfg(test)]
mod tests;
