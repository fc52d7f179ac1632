//! Reads the Wall Street Journal corpora (WSJ0 and WSJ1): `si84` or `si284`, `dev93`, `eval92` and `eval93`.
//!
//! The folder may hold the discs (`11-1.1`, `13-34.1`, ...) or the flattened form (`wsj0`, `wsj1`), in any case.
//! Lists (`.ndx`) say which recordings belong to a part, transcripts (`.dot`) what is said in them.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use srf_text::labels::wsj;

use super::files::{self, for_each_line, for_each_line_of};
use super::problem::{Fault, Problem, Problems};
use super::summary::Check;
use super::{AudioPart, Corpus, DEV, TEST, TRAIN, Utterance};

/// The third part that people report on.
pub const EVAL93: &str = "eval93";

/// Which recordings to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TrainingSet {
    /// 84 speakers of WSJ0.
    Si84,
    /// These and 200 of WSJ1.
    #[default]
    Si284,
}

/// Where the lists lie on the discs, and how many recordings the complete ones name.
const TRAIN_WSJ0: &str = "wsj0/doc/indices/train/tr_s_wv1.ndx";
const TRAIN_WSJ1: &str = "wsj1/doc/indices/si_tr_s.ndx";
const DEV93_LIST: &str = "wsj1/doc/indices/h1_p0.ndx";
const EVAL92_LIST: &str = "wsj0/doc/indices/test/nvp/si_et_20.ndx";
const EVAL93_LIST: &str = "wsj1/doc/indices/wsj1/eval/h1_p0.ndx";

/// Recordings that the lists name and nobody uses: their transcripts are missing.
const LEFT_OUT: &str = "wsj0/si_tr_s/401/";

/// Reads the discs below `root`.
pub fn read(root: &Path, training: TrainingSet) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let discs = Discs::scan(root, &mut problems);
    let lists: &[&str] = match training {
        TrainingSet::Si84 => &[TRAIN_WSJ0],
        TrainingSet::Si284 => &[TRAIN_WSJ0, TRAIN_WSJ1],
    };
    let mut part = |lists: &[&str]| lists.iter().flat_map(|list| discs.read_list(root, list, &mut problems)).collect();
    let parts = [
        (TRAIN, part(lists)),
        (DEV, part(&[DEV93_LIST])),
        (TEST, part(&[EVAL92_LIST])),
        (EVAL93, part(&[EVAL93_LIST])),
    ];
    (Corpus::of_parts(parts), problems.0)
}

/// The size of the complete corpora compared with this one.
pub fn checks(corpus: &Corpus, training: TrainingSet) -> Vec<Check> {
    let n_train = if training == TrainingSet::Si84 { 7138 } else { 37_416 };
    let n_utterances = |name: &str| corpus.part(name).map_or(0, |part| part.utterances.len());
    let n_words = |name: &str| {
        let utterances = corpus.part(name).map(|part| part.utterances.as_slice()).unwrap_or_default();
        utterances.iter().map(|utterance| wsj::to_labels(&utterance.sentence).0.split_whitespace().count()).sum()
    };
    vec![
        Check::new(TRAIN, "utterances", n_utterances(TRAIN), n_train),
        Check::new(DEV, "utterances", n_utterances(DEV), 503),
        Check::new(TEST, "utterances", n_utterances(TEST), 333),
        Check::new(EVAL93, "utterances", n_utterances(EVAL93), 213),
        Check::new(TEST, "words", n_words(TEST), 5643),
        Check::new(DEV, "words", n_words(DEV), 8234),
    ]
}

/// What lies on the discs, by name in lower case.
struct Discs {
    lists: Vec<PathBuf>,
    recordings: HashMap<String, Vec<PathBuf>>,
    transcripts: HashMap<String, PathBuf>,
}

impl Discs {
    fn scan(root: &Path, problems: &mut Problems) -> Self {
        let mut discs = Self { lists: Vec::new(), recordings: HashMap::new(), transcripts: HashMap::new() };
        for path in files::files(root, problems) {
            match files::extension(&path).as_str() {
                "ndx" => discs.lists.push(path),
                "dot" => drop(discs.transcripts.insert(files::stem(&path).to_lowercase(), path)),
                "wv1" => discs.recordings.entry(files::stem(&path).to_lowercase()).or_default().push(path),
                _ => {}
            }
        }
        discs
    }

    /// The utterances of the list whose path ends in `list`; lists that are not there give none.
    fn read_list(&self, root: &Path, list: &str, problems: &mut Problems) -> Vec<Utterance> {
        let Some(path) = self.lists.iter().find(|path| ends_in(path, list)) else {
            problems.add(root, None, Fault::Missing { what: format!("the list `{list}`") });
            return Vec::new();
        };
        let mut entries = Vec::new();
        for_each_line(path, problems, |line, text, problems| entries.extend(parse_entry(path, line, text, problems)));
        let mut transcripts = Transcripts::default();
        let kept = entries.into_iter().filter(|entry| !entry.file.contains(LEFT_OUT));
        kept.filter_map(|entry| self.utterance(path, &entry, &mut transcripts, problems)).collect()
    }

    fn utterance(
        &self,
        list: &Path,
        entry: &Entry,
        transcripts: &mut Transcripts,
        problems: &mut Problems,
    ) -> Option<Utterance> {
        let Some(recording) = self.recording(entry) else {
            let what = format!("the recording `{}` of disc {}", entry.file, entry.disc);
            problems.add(list, Some(entry.line), Fault::Missing { what });
            return None;
        };
        let id = files::stem(recording).to_lowercase();
        let sentence = transcripts.of(&id, &self.transcripts, problems);
        let Some(sentence) = sentence else {
            problems.add(list, Some(entry.line), Fault::Missing { what: format!("the transcript of `{id}`") });
            return None;
        };
        Some(Utterance {
            speaker: id.chars().take(3).collect(),
            id,
            audio: AudioPart { path: recording.to_owned(), ..AudioPart::default() },
            sentence: wsj::normalise(&sentence),
            ..Utterance::default()
        })
    }

    /// The recording of an entry, on the disc it names where there are copies.
    fn recording(&self, entry: &Entry) -> Option<&Path> {
        let id = files::stem(Path::new(&entry.file));
        let copies = self.recordings.get(&id)?.iter().filter(|path| ends_in(path, &entry.file));
        let copies: Vec<&PathBuf> = copies.collect();
        let is_on_disc = |path: &&&PathBuf| {
            path.components().any(|c| c.as_os_str().to_string_lossy().replace(['-', '.'], "_") == entry.disc)
        };
        copies.iter().find(is_on_disc).or(copies.first()).map(|path| path.as_path())
    }
}

/// Whether the last components of `path` are `suffix`, in any case.
fn ends_in(path: &Path, suffix: &str) -> bool {
    let mut of_path = path.components().rev().map(|c| c.as_os_str().to_string_lossy().to_lowercase());
    suffix.rsplit('/').all(|wanted| of_path.next().as_deref() == Some(wanted))
}

/// A line of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counted from 1.
    pub line: usize,
    /// The disc, as in `11_1_1`.
    pub disc: String,
    /// The recording on it, in lower case and with its extension.
    pub file: String,
}

/// Reads a list (`.ndx`) of recordings: `11_1_1:wsj0/si_tr_s/01i/01ic0201.wv1`.
pub fn read_list(reader: impl BufRead, path: &Path) -> (Vec<Entry>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut entries = Vec::new();
    for_each_line_of(reader, path, &mut problems, |line, text, problems| {
        entries.extend(parse_entry(path, line, text, problems));
    });
    (entries, problems.0)
}

fn parse_entry(path: &Path, line: usize, text: &str, problems: &mut Problems) -> Option<Entry> {
    let text = text.trim();
    if text.is_empty() || text.starts_with(';') {
        return None;
    }
    let Some((disc, file)) = text.split_once(':') else {
        problems.add(path, Some(line), Fault::shape(text, "`disc:path`, as in `11_1_1:wsj0/si_tr_s/01i/01ic0201.wv1`"));
        return None;
    };
    let mut file = file.trim().trim_start_matches('/').to_lowercase();
    if Path::new(&file).extension().is_none_or(|e| e != "wv1") {
        file.push_str(".wv1");
    }
    Some(Entry { line, disc: corrected(disc.trim(), path), file })
}

/// The list of `eval93` names the disc it lies on, not the one its recordings lie on.
fn corrected(disc: &str, list: &Path) -> String {
    if disc == "13_32_1" && ends_in(list, EVAL93_LIST) { "13_33_1".to_owned() } else { disc.to_owned() }
}

/// Transcripts read so far, by utterance, and the files they came from.
#[derive(Default)]
struct Transcripts {
    sentences: HashMap<String, String>,
    files: HashSet<String>,
}

impl Transcripts {
    fn of(&mut self, id: &str, files: &HashMap<String, PathBuf>, problems: &mut Problems) -> Option<String> {
        let session: String = id.chars().take(6).chain("00".chars()).collect();
        if let Some(path) = files.get(&session)
            && self.files.insert(session)
        {
            for_each_line(path, problems, |line, text, problems| {
                self.sentences.extend(parse_transcript(path, line, text, problems));
            });
        }
        self.sentences.get(id).cloned()
    }
}

/// Reads a transcript (`.dot`): lines `words (id)`, the id in any case.
pub fn read_transcripts(reader: impl BufRead, path: &Path) -> (Vec<(String, String)>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut transcripts = Vec::new();
    for_each_line_of(reader, path, &mut problems, |line, text, problems| {
        transcripts.extend(parse_transcript(path, line, text, problems));
    });
    (transcripts, problems.0)
}

fn parse_transcript(path: &Path, line: usize, text: &str, problems: &mut Problems) -> Option<(String, String)> {
    let text = text.trim();
    let parsed = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    if parsed.is_none() && !text.is_empty() {
        problems.add(path, Some(line), Fault::shape(text, "`words (id)`"));
    }
    parsed.map(|(words, id)| (id.trim().to_lowercase(), words.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_without_comments_and_with_extensions() {
        let text = "; a comment\n11_1_1:wsj0/si_tr_s/01i/01ic0201.wv1\n11_14_1: WSJ0/SI_ET_20/440/440C0401 \nbroken\n";
        let (entries, problems) = read_list(text.as_bytes(), Path::new("x.ndx"));
        let files: Vec<&str> = entries.iter().map(|entry| entry.file.as_str()).collect();
        assert_eq!(files, ["wsj0/si_tr_s/01i/01ic0201.wv1", "wsj0/si_et_20/440/440c0401.wv1"]);
        assert_eq!(entries[1].disc, "11_14_1");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].to_string().starts_with("x.ndx:4: found \"broken\", expected `disc:path`"));
    }

    #[test]
    fn the_disc_of_eval93_is_corrected_only_there() {
        let line = "13_32_1:wsj1/si_et_h1/4oa/4oac0201.wv1".as_bytes();
        let (entries, _) = read_list(line, Path::new("/d/13-32.1/WSJ1/doc/indices/wsj1/eval/h1_p0.ndx"));
        assert_eq!(entries[0].disc, "13_33_1");
        let (entries, _) = read_list(line, Path::new("/d/13-34.1/wsj1/doc/indices/h1_p0.ndx"));
        assert_eq!(entries[0].disc, "13_32_1");
    }

    #[test]
    fn transcripts_are_words_and_an_id() {
        let text = "The rate (not the price) rose (01IC0201)\nno id here\n\n(01ic0202)\n";
        let (transcripts, problems) = read_transcripts(text.as_bytes(), Path::new("x.dot"));
        assert_eq!(transcripts[0], ("01ic0201".to_owned(), "The rate (not the price) rose".to_owned()));
        assert_eq!(transcripts[1].1, "");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].to_string(), "x.dot:2: found \"no id here\", expected `words (id)`");
    }
}
