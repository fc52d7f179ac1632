//! Gathers utterances from recordings, directories, Kaldi directories, manifests and `wav.scp` files.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use srf_audio::Selection;
use srf_audio::bulk::Utterance;
use srf_train::corpus::kaldi::{self, Commands};
use srf_train::corpus::{self, Problem, manifest};

use crate::commands::recordings;
use crate::printer::Printer;

/// Longer lines are not lines of a list.
const MAX_LINE_BYTES: u64 = 1 << 24;

/// All utterances, and how many lines or files could not become one (each was told).
pub(crate) struct Inputs {
    pub(crate) utterances: Vec<Utterance>,
    pub(crate) n_problems: usize,
}

pub(crate) fn gather(paths: &[PathBuf], out: &Printer) -> Inputs {
    let mut inputs = Inputs { utterances: Vec::new(), n_problems: 0 };
    for path in paths {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if path.join("wav.scp").is_file() {
            let (corpus, problems) = kaldi::read(path, &Commands::Refused);
            let utterances = corpus.parts.into_iter().flat_map(|part| part.utterances);
            inputs.add(utterances, problems, out);
        } else if path.is_dir() {
            let (found, problems) = recordings::below(path);
            inputs.n_problems += problems.len();
            for problem in problems {
                out.problem(problem);
            }
            inputs.utterances.extend(found.into_iter().map(whole));
        } else if extension == "jsonl" || extension == "json" {
            let (lines, problems) = manifest::load(path);
            inputs.add(lines.into_iter().map(|line| line.utterance), problems, out);
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
    fn add(&mut self, utterances: impl Iterator<Item = corpus::Utterance>, problems: Vec<Problem>, out: &Printer) {
        self.utterances.extend(utterances.map(|utterance| utterance.to_be_heard()));
        self.n_problems += problems.len();
        for problem in problems {
            out.problem(problem);
        }
    }

    /// Parses each line of the file; errors are reported with the line number.
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
pub(crate) fn whole(path: PathBuf) -> Utterance {
    let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Utterance { speaker: id.clone(), id, path, selection: Selection::default() }
}

/// `id path`; a command of sph2pipe stands for the file it decodes.
fn scp_line(line: &str, speakers: &HashMap<String, String>) -> Result<Utterance, String> {
    let (id, rest) = line.split_once(char::is_whitespace).ok_or("expected `id path`")?;
    let path = match kaldi::parse_source(rest) {
        kaldi::Source::File(path) => path,
        kaldi::Source::Command(command) => return Err(format!("the command `{command}` is not run")),
    };
    let speaker = speakers.get(id).map_or(id, String::as_str).to_owned();
    Ok(Utterance { id: id.to_owned(), speaker, path, selection: Selection::default() })
}

/// The speakers in the `utt2spk` next to a `wav.scp`.
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
    fn only_sph2pipe_is_understood_among_commands() {
        let parse = |line| scp_line(line, &HashMap::from([("u".to_owned(), "s".to_owned())]));
        assert_eq!(parse("u /x/a b.wav").unwrap().path, Path::new("/x/a b.wav"));
        assert_eq!(parse("u /x/a.wav").unwrap().speaker, "s");
        assert_eq!(parse("u /kaldi/tools/sph2pipe -f wav /x/a.wv1 |").unwrap().path, Path::new("/x/a.wv1"));
        assert_eq!(parse("u rm -rf / |").unwrap_err(), "the command `rm -rf /` is not run");
        assert!(parse("u sph2pipe -c 2 /x/a.wv1 |").is_err());
    }
}
