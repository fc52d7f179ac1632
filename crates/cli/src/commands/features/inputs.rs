//! What `srf features` is given: recordings, directories, manifests and wav.scp files in, a list of utterances out.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use audio::bulk::Utterance;
use audio::{Channel, Selection};
use serde::Deserialize;

use crate::commands::recordings;
use crate::printer::Printer;

/// Longer lines are not lines of a list.
const MAX_LINE_BYTES: u64 = 1 << 24;

/// All utterances, and how many lines or files could not become one (each was told).
pub(super) struct Inputs {
    pub(super) utterances: Vec<Utterance>,
    pub(super) n_problems: usize,
}

pub(super) fn gather(paths: &[PathBuf], out: &Printer) -> Inputs {
    let mut inputs = Inputs { utterances: Vec::new(), n_problems: 0 };
    for path in paths {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if path.is_dir() {
            let (found, problems) = recordings::below(path);
            inputs.n_problems += problems.len();
            for problem in problems {
                out.problem(problem);
            }
            inputs.utterances.extend(found.into_iter().map(whole));
        } else if extension == "jsonl" || extension == "json" {
            inputs.read_lines(path, out, |line| manifest_line(path, line));
        } else if extension == "scp" {
            let speakers = speakers_beside(path);
            inputs.read_lines(path, out, |line| scp_line(line, &speakers));
        } else {
            inputs.utterances.push(whole(path.clone()));
        }
    }
    inputs
}

impl Inputs {
    /// Adds what `parse` makes of each line of the file; what is wrong with one is told with its number.
    fn read_lines(&mut self, path: &Path, out: &Printer, parse: impl Fn(&str) -> Result<Utterance, String>) {
        let mut tell = |at: Option<usize>, message: String| {
            let at = at.map_or(String::new(), |line| format!(":{line}"));
            out.problem(format!("{}{at}: {message}", path.display()));
            self.n_problems += 1;
        };
        let mut reader = match std::fs::File::open(path) {
            Ok(file) => BufReader::new(file),
            Err(error) => return tell(None, error.to_string()),
        };
        for number in 1.. {
            let mut line = Vec::new();
            match reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Err(error) => return tell(Some(number), error.to_string()),
                Ok(n) if n as u64 == MAX_LINE_BYTES => return tell(Some(number), "the line has no end".to_owned()),
                Ok(_) => {}
            }
            match std::str::from_utf8(&line) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => match parse(line.trim()) {
                    Ok(utterance) => self.utterances.push(utterance),
                    Err(message) => tell(Some(number), message),
                },
                Err(error) => tell(Some(number), format!("not UTF-8 after byte {}", error.valid_up_to())),
            }
        }
    }
}

/// A whole recording, whose name is its key; nobody knows the speaker.
fn whole(path: PathBuf) -> Utterance {
    let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Utterance { speaker: id.clone(), id, path, selection: Selection::default() }
}

/// The keys of NeMo manifests that matter here.
#[derive(Deserialize)]
struct ManifestLine {
    #[serde(alias = "audio")]
    audio_filepath: PathBuf,
    #[serde(alias = "dur")]
    duration: Option<f64>,
    offset: Option<f64>,
    id: Option<String>,
    speaker: Option<String>,
    channel: Option<usize>,
}

fn manifest_line(manifest: &Path, line: &str) -> Result<Utterance, String> {
    let parsed = serde_json::from_str::<ManifestLine>(line);
    let line = parsed.map_err(|error| error.to_string().replace(" at line 1 column", " at column"))?;
    let start_s = line.offset.unwrap_or(0.0);
    let mut utterance = whole(manifest.parent().unwrap_or(Path::new("")).join(line.audio_filepath));
    if let Some(offset_s) = line.offset {
        utterance.id = format!("{}-{:06}", utterance.id, (100.0 * offset_s).round());
    }
    utterance.id = line.id.unwrap_or(utterance.id);
    utterance.speaker = line.speaker.unwrap_or_else(|| utterance.id.clone());
    utterance.selection = Selection {
        channel: line.channel.map_or(Channel::Mix, Channel::Only),
        start_s,
        // Without an offset the utterance is the whole recording, whatever its length was rounded to.
        end_s: line.offset.and(line.duration).map(|duration_s| start_s + duration_s),
    };
    Ok(utterance)
}

/// `id path`; a command of sph2pipe stands for the file it decodes.
fn scp_line(line: &str, speakers: &HashMap<String, String>) -> Result<Utterance, String> {
    let (id, rest) = line.split_once(char::is_whitespace).ok_or("expected `id path`")?;
    let rest = rest.trim();
    let path = match rest.strip_suffix('|') {
        None => rest,
        Some(command) => sph2pipe_file(command).ok_or_else(|| format!("the command `{rest}` is not run"))?,
    };
    let speaker = speakers.get(id).map_or(id, String::as_str).to_owned();
    Ok(Utterance { id: id.to_owned(), speaker, path: PathBuf::from(path), selection: Selection::default() })
}

/// The file that `sph2pipe -f wav FILE` decodes, which we decode ourselves; other options change what comes out.
fn sph2pipe_file(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    let is_sph2pipe = Path::new(words.next()?).file_name()? == "sph2pipe";
    let rest: Vec<&str> = words.collect();
    match rest.as_slice() {
        ["-f", "wav" | "rif", file] | ["-f", "wav" | "rif", "-p", file] | [file] if is_sph2pipe => Some(file),
        _ => None,
    }
}

/// Who speaks, from the `utt2spk` that Kaldi keeps beside `wav.scp`.
fn speakers_beside(scp: &Path) -> HashMap<String, String> {
    let text = std::fs::read_to_string(scp.with_file_name("utt2spk")).unwrap_or_default();
    let pair = |line: &str| {
        line.split_once(char::is_whitespace).map(|(id, speaker)| (id.to_owned(), speaker.trim().to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_line_is_the_whole_recording_unless_it_has_an_offset() {
        let parse = |line| manifest_line(Path::new("dir/m.jsonl"), line);
        let utterance = parse(r#"{"audio_filepath": "a.wav", "duration": 2.5, "text": "x", "speaker": "s"}"#).unwrap();
        assert_eq!((utterance.path.as_path(), utterance.id.as_str()), (Path::new("dir/a.wav"), "a"));
        assert_eq!((utterance.speaker.as_str(), utterance.selection), ("s", Selection::default()));
        let utterance = parse(r#"{"audio_filepath": "/a.wav", "duration": 2.5, "offset": 1.25}"#).unwrap();
        assert_eq!(utterance.path, Path::new("/a.wav"));
        assert_eq!((utterance.id.as_str(), utterance.speaker.as_str()), ("a-000125", "a-000125"));
        assert_eq!((utterance.selection.start_s, utterance.selection.end_s), (1.25, Some(3.75)));
        assert_eq!(parse("{\"audio_filepath\": ").unwrap_err(), "EOF while parsing a value at column 19");
    }

    #[test]
    fn only_sph2pipe_is_understood_among_commands() {
        let parse = |line| scp_line(line, &HashMap::from([("u".to_owned(), "s".to_owned())]));
        assert_eq!(parse("u /x/a b.wav").unwrap().path, Path::new("/x/a b.wav"));
        assert_eq!(parse("u /x/a.wav").unwrap().speaker, "s");
        assert_eq!(parse("u /kaldi/tools/sph2pipe -f wav /x/a.wv1 |").unwrap().path, Path::new("/x/a.wv1"));
        assert_eq!(parse("u rm -rf / |").unwrap_err(), "the command `rm -rf / |` is not run");
        assert!(parse("u sph2pipe -c 2 /x/a.wv1 |").is_err());
    }
}
