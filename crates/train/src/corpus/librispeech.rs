//! Reads LibriSpeech: `train-clean-100`, `dev-clean` and the like become `train`, `dev`, `test` and the `-other` parts.

use std::path::Path;

use super::files::for_each_line;
use super::files::{self, Siblings};
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, DEV, TEST, TRAIN, Utterance};

/// Reads every `*.trans.txt` below `root`; a folder without the name of a set is training data.
pub fn read(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let files = files::files(root, &mut problems);
    let siblings = Siblings::new(&files);
    let names = [TRAIN, DEV, TEST, "dev-other", "test-other"];
    let mut parts = names.map(|name| (name, Vec::new()));
    for transcripts in files.iter().filter(|path| path.to_string_lossy().ends_with(".trans.txt")) {
        let name = part_of(transcripts);
        let (_, part) = parts.iter_mut().find(|(part, _)| *part == name).expect("every name of a part is in the list");
        for_each_line(transcripts, &mut problems, |line, text, problems| {
            part.extend(parse(transcripts, line, text, &siblings, problems));
        });
    }
    if parts.iter().all(|(_, utterances)| utterances.is_empty()) {
        problems.add(
            root,
            None,
            Fault::Missing { what: "a transcript (`*.trans.txt`) with its recordings".to_owned() },
        );
    }
    (Corpus::of_parts(parts), problems.0)
}

fn part_of(path: &Path) -> &'static str {
    let set = path.ancestors().filter_map(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let known =
        [("dev-other", "dev-other"), ("test-other", "test-other"), ("dev-", DEV), ("test-", TEST), ("train-", TRAIN)];
    let mut parts =
        set.filter_map(|name| known.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, part)| *part));
    parts.next().unwrap_or(TRAIN)
}

fn parse(path: &Path, line: usize, text: &str, siblings: &Siblings, problems: &mut Problems) -> Option<Utterance> {
    let (id, sentence) = text.split_once(' ').unwrap_or((text, ""));
    if id.is_empty() {
        return None;
    }
    let Some(recording) = siblings.find(&path.with_file_name(format!("{id}.flac")), &["flac", "wav", "mp3", "ogg"])
    else {
        problems.add(path, Some(line), Fault::Missing { what: format!("the recording `{id}.flac`") });
        return None;
    };
    Some(Utterance {
        id: id.to_owned(),
        speaker: id.split('-').next().unwrap_or(id).to_owned(),
        audio: AudioPart { path: recording.to_owned(), ..AudioPart::default() },
        sentence: sentence.trim().to_owned(),
        ..Utterance::default()
    })
}
