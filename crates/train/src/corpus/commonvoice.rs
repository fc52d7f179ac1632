//! Reads Common Voice: the folder of a language with `train.tsv`, `dev.tsv`, `test.tsv` and `clips/`, or all validated
//! clips of it, for a split of the user's own.

use std::path::{Path, PathBuf};

use super::files::{self, for_each_line};
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, DEV, TEST, TRAIN, Utterance};

/// Reads the tables of the parts in `root`; those that are not there give no part.
pub fn read(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let parts = [TRAIN, DEV, TEST].map(|name| {
        let table = root.join(format!("{name}.tsv"));
        let utterances = if table.exists() { read_table(root, &table, &mut problems) } else { Vec::new() };
        (name, utterances)
    });
    if parts.iter().all(|(_, utterances)| utterances.is_empty()) {
        problems.add(root, None, Fault::Missing { what: "`train.tsv`, `dev.tsv` or `test.tsv`".to_owned() });
    }
    (Corpus::of_parts(parts), problems.0)
}

/// Reads `validated.tsv`: all clips that listeners accepted, many more than the published parts have.
pub fn read_validated(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let utterances = read_table(root, &root.join("validated.tsv"), &mut problems);
    (Corpus::of_one(TRAIN, utterances), problems.0)
}

/// Where the columns we read stand.
struct Columns {
    client_id: usize,
    path: usize,
    sentence: usize,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        let at = |name: &str| header.split('\t').position(|column| column == name);
        Some(Self { client_id: at("client_id")?, path: at("path")?, sentence: at("sentence")? })
    }
}

fn read_table(root: &Path, table: &Path, problems: &mut Problems) -> Vec<Utterance> {
    let mut columns = None;
    let mut utterances = Vec::new();
    for_each_line(table, problems, |line, text, problems| match &columns {
        None if line == 1 => {
            columns = Columns::of(text);
            if columns.is_none() {
                problems.add(table, Some(1), Fault::shape(text, "the columns `client_id`, `path` and `sentence`"));
            }
        }
        Some(columns) if !text.is_empty() => utterances.extend(parse(root, columns, table, line, text, problems)),
        _ => {}
    });
    utterances
}

fn parse(
    root: &Path,
    columns: &Columns,
    table: &Path,
    line: usize,
    text: &str,
    problems: &mut Problems,
) -> Option<Utterance> {
    let fields: Vec<&str> = text.split('\t').collect();
    let field = |index: usize| fields.get(index).filter(|field| !field.is_empty());
    let (Some(name), Some(speaker)) = (field(columns.path), field(columns.client_id)) else {
        problems.add(table, Some(line), Fault::shape(text, "a path and a client_id"));
        return None;
    };
    Some(Utterance {
        id: files::stem(Path::new(name)),
        speaker: (*speaker).to_owned(),
        audio: AudioPart { path: clip(root, name), ..AudioPart::default() },
        sentence: field(columns.sentence).map(|sentence| sentence.trim().to_owned()).unwrap_or_default(),
        ..Utterance::default()
    })
}

fn clip(root: &Path, name: &str) -> PathBuf {
    root.join("clips").join(name)
}
