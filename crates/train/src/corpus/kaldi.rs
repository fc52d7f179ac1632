//! Reads and writes Kaldi data directories.
//!
//! A value of `wav.scp` may be a command, which is somebody else's program. `sph2pipe ... file |` is understood and its
//! file decoded here; any other is refused, unless the user allows commands to run, and then its output is kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files::{self, for_each_line};
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, TRAIN, Utterance};
use crate::analyze::folder_name;

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
    let recordings = recordings(&root.join("wav.scp"), commands, &mut problems);
    let segments = segments(root, &recordings, &mut problems);
    let speakers = speakers(root, &mut problems);
    let texts: HashMap<String, String> =
        table(&root.join("text"), &mut problems).into_iter().map(TableRow::pair).collect();
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

/// Reads a `wav.scp` alone: an utterance per recording, without texts; its speaker is in the `utt2spk` next to it, or is
/// the utterance itself. Commands are refused.
pub fn read_scp(scp: &Path) -> (Vec<Utterance>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut recordings: Vec<_> = recordings(scp, &Commands::Refused, &mut problems).into_iter().collect();
    recordings.sort_by_key(|(_, (line, _))| *line);
    let speakers = speakers(folder_of(scp), &mut problems);
    let utterance = |(id, (_, audio)): (String, (usize, AudioPart))| {
        let speaker = speakers.get(&id).unwrap_or(&id).clone();
        Utterance { id, speaker, audio, ..Utterance::default() }
    };
    (recordings.into_iter().map(utterance).collect(), problems.0)
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn speakers(root: &Path, problems: &mut Problems) -> HashMap<String, String> {
    optional_table(root, "utt2spk", problems).into_iter().map(TableRow::pair).collect()
}

/// A line of a table: a key and the rest.
struct TableRow {
    line: usize,
    key: String,
    value: String,
}

impl TableRow {
    fn pair(self) -> (String, String) {
        (self.key, self.value)
    }
}

fn table(path: &Path, problems: &mut Problems) -> Vec<TableRow> {
    let mut rows = Vec::new();
    let mut keys = HashSet::new();
    for_each_line(path, problems, |line, text, problems| {
        let (key, value) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match keys.insert(key.to_owned()) {
            true if !key.is_empty() => {
                rows.push(TableRow { line, key: key.to_owned(), value: value.trim().to_owned() });
            }
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

fn optional_table(root: &Path, name: &str, problems: &mut Problems) -> Vec<TableRow> {
    let path = root.join(name);
    if path.exists() { table(&path, problems) } else { Vec::new() }
}

fn recordings(scp: &Path, commands: &Commands, problems: &mut Problems) -> HashMap<String, (usize, AudioPart)> {
    let channels = channels(folder_of(scp), problems);
    let mut recordings = HashMap::new();
    for TableRow { line, key, value } in table(scp, problems) {
        match commands.file_of(&key, &parse_source(&value)) {
            Ok(path) => {
                let audio = AudioPart { path, channel: channels.get(&key).copied(), ..AudioPart::default() };
                recordings.insert(key, (line, audio));
            }
            Err(fault) => problems.add(scp, Some(line), fault),
        }
    }
    recordings
}

fn channels(root: &Path, problems: &mut Problems) -> HashMap<String, usize> {
    let path = root.join("reco2file_and_channel");
    let mut channels = HashMap::new();
    for TableRow { line, key, value } in optional_table(root, "reco2file_and_channel", problems) {
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
    for TableRow { line, key, value } in table(&path, problems) {
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

/// What a value of `wav.scp` means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A file to be decoded.
    File(PathBuf),
    /// Something for a shell.
    Command(String),
}

/// Reads a value of `wav.scp`.
fn parse_source(value: &str) -> Source {
    let Some(command) = value.trim().strip_suffix('|') else {
        return Source::File(PathBuf::from(value.trim()));
    };
    match sph2pipe_file(command) {
        Some(file) => Source::File(file),
        None => Source::Command(command.trim().to_owned()),
    }
}

/// The file of `sph2pipe -f wav -p -c 1 FILE`, and of nothing more elaborate than that.
fn sph2pipe_file(command: &str) -> Option<PathBuf> {
    let mut words = command.split_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name()? != "sph2pipe" || command.contains(['|', ';', '&', '$', '`', '<', '>']) {
        return None;
    }
    let mut file = None;
    while let Some(word) = words.next() {
        match word {
            "-f" => {
                words.next()?;
            }
            // The samples are the same whatever form they are piped in.
            "-p" | "-wav" | "-rif" | "-raw" => {}
            _ if word.starts_with('-') || file.is_some() => return None,
            _ => file = Some(PathBuf::from(word.trim_matches(['"', '\'']))),
        }
    }
    file
}

/// Whether commands may run, and where their output is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// They may not.
    Refused,
    /// They may; a recording is kept as `<its id>.wav` in this folder.
    KeptIn(PathBuf),
}

impl Commands {
    fn file_of(&self, id: &str, source: &Source) -> Result<PathBuf, Fault> {
        match (source, self) {
            (Source::File(path), _) => Ok(path.clone()),
            (Source::Command(command), Commands::Refused) => Err(Fault::Command { command: command.clone() }),
            (Source::Command(command), Commands::KeptIn(dir)) => run(command, dir, id),
        }
    }
}

fn run(command: &str, dir: &Path, id: &str) -> Result<PathBuf, Fault> {
    fs::create_dir_all(dir)?;
    let path = dir.join(format!("{}.wav", folder_name(id)));
    let status =
        Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stdout(File::create(&path)?).status()?;
    if status.success() {
        Ok(path)
    } else {
        Err(Fault::CommandFailed { command: command.to_owned(), reason: status.to_string() })
    }
}

/// Writes `utterances` as the data directory `dir`.
///
/// Names are made valid: the speaker becomes a prefix of the utterance, joined by `-`, and characters that would
/// upset the order (or are blanks) become `_`; ids that are the same then are numbered. Rust compares strings byte by byte, which is the C locale.
pub fn save(dir: &Path, utterances: &[Utterance]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut rows: BTreeMap<String, UtteranceRow> = BTreeMap::new();
    for utterance in utterances {
        let name = utterance_name(utterance);
        let numbered = (2..).map(|number: usize| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !rows.contains_key(name));
        rows.insert(free.expect("there are more numbers than utterances"), UtteranceRow::of(utterance));
    }
    let table = |value: &dyn Fn(&UtteranceRow) -> String| -> String {
        rows.iter().map(|(id, row)| format!("{id} {}\n", value(row))).collect()
    };
    fs::write(dir.join("text"), table(&|row| row.text.to_owned()))?;
    fs::write(dir.join("utt2spk"), table(&|row| row.speaker.clone()))?;
    fs::write(dir.join("utt2dur"), table(&|row| row.utterance.audio.duration_s.unwrap_or(0.0).to_string()))?;
    fs::write(dir.join("spk2utt"), spk2utt(&rows))?;
    write_audio(dir, &rows)
}

struct UtteranceRow<'a> {
    utterance: &'a Utterance,
    speaker: String,
    text: &'a str,
}

impl<'a> UtteranceRow<'a> {
    fn of(utterance: &'a Utterance) -> Self {
        Self { utterance, speaker: name(&utterance.speaker), text: &utterance.text }
    }
}

/// A name without blanks and without characters that sort before the `-` that ends it.
fn name(name: &str) -> String {
    name.chars().map(|c| if c <= '-' || c.is_whitespace() { '_' } else { c }).collect()
}

fn utterance_name(utterance: &Utterance) -> String {
    let speaker = name(&utterance.speaker);
    let id = name(&utterance.id);
    let rest = id.strip_prefix(&speaker).filter(|rest| rest.starts_with('_')).map_or(id.as_str(), |rest| &rest[1..]);
    format!("{speaker}-{rest}")
}

fn spk2utt(rows: &BTreeMap<String, UtteranceRow>) -> String {
    let mut by_speaker: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, row) in rows {
        by_speaker.entry(&row.speaker).or_default().push(id);
    }
    by_speaker.iter().map(|(speaker, ids)| format!("{speaker} {}\n", ids.join(" "))).collect()
}

/// `wav.scp` with one line an utterance, or, where any is a part of its recording, one line a recording and `segments`.
fn write_audio(dir: &Path, rows: &BTreeMap<String, UtteranceRow>) -> io::Result<()> {
    if rows.values().all(|row| row.utterance.audio.offset_s.is_none()) {
        let scp: String =
            rows.iter().map(|(id, row)| format!("{id} {}\n", rxfilename(&row.utterance.audio.path))).collect();
        return fs::write(dir.join("wav.scp"), scp);
    }
    let names = recording_names(rows);
    let scp: BTreeMap<&str, &Path> = names.iter().map(|(path, name)| (name.as_str(), *path)).collect();
    let segment = |(id, row): (&String, &UtteranceRow)| {
        let audio = &row.utterance.audio;
        let start_s = audio.offset_s.unwrap_or(0.0);
        let end_s = start_s + audio.duration_s.unwrap_or(0.0);
        format!("{id} {} {start_s} {end_s}\n", names[audio.path.as_path()])
    };
    fs::write(dir.join("segments"), rows.iter().map(segment).collect::<String>())?;
    fs::write(
        dir.join("wav.scp"),
        scp.iter().map(|(name, path)| format!("{name} {}\n", rxfilename(path))).collect::<String>(),
    )
}

/// A name for each recording: that of its file, with a number where two files share it.
fn recording_names<'a>(rows: &BTreeMap<String, UtteranceRow<'a>>) -> HashMap<&'a Path, String> {
    let mut n_uses: HashMap<String, usize> = HashMap::new();
    let mut names = HashMap::new();
    for row in rows.values() {
        let path = row.utterance.audio.path.as_path();
        names.entry(path).or_insert_with(|| {
            let stem = name(&files::stem(path));
            let n = n_uses.entry(stem.clone()).or_insert(0);
            *n += 1;
            if *n == 1 { stem } else { format!("{stem}.{n}") }
        });
    }
    names
}

/// How Kaldi reads a recording: WAV as a file, the rest through the usual programs.
fn rxfilename(path: &Path) -> String {
    let shown = path.display();
    match srf_audio::probe(path).map(|info| info.container) {
        Ok(srf_audio::Container::Sphere) => format!("sph2pipe -f wav {shown} |"),
        Ok(srf_audio::Container::Flac) => format!("flac -c -d -s {shown} |"),
        Ok(srf_audio::Container::Wav) | Err(_) => shown.to_string(),
        Ok(_) => format!("ffmpeg -v error -i {shown} -ac 1 -ar 16000 -f wav - |"),
    }
}

#[cfg(test)]
mod tests;
