//! A folder of recordings with labels of the same name next to them: `.txt`, `.lab`, `.TextGrid`, `.phn`, `.wrd`.
//!
//! The speaker is the folder a recording lies in; a recording at the top is its own speaker.

use std::path::Path;

use super::files::{self, Siblings};
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, TRAIN, Timed, Utterance, phn, textgrid};

const RECORDINGS: [&str; 10] = ["wav", "flac", "mp3", "ogg", "oga", "aiff", "aif", "sph", "wv1", "nist"];
const MAX_LABEL_BYTES: u64 = 16 << 20;
/// HTK's unit of time is 100 ns.
const HTK_TICKS_HZ: f64 = 1e7;

/// Reads every recording below `root`.
pub fn read(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let files = files::files(root, &mut problems);
    let siblings = Siblings::new(&files);
    let recordings = files.iter().filter(|path| RECORDINGS.contains(&files::extension(path).as_str()));
    let utterances = recordings.filter_map(|recording| read_utterance(root, recording, &siblings, &mut problems));
    let corpus = Corpus::of_one(TRAIN, utterances.collect());
    if corpus.parts.is_empty() {
        problems.add(root, None, Fault::Missing { what: "a recording with a label file next to it".to_owned() });
    }
    (corpus, problems.0)
}

fn read_utterance(root: &Path, recording: &Path, siblings: &Siblings, problems: &mut Problems) -> Option<Utterance> {
    let below = recording.strip_prefix(root).unwrap_or(recording).with_extension("");
    let id = below.to_string_lossy().replace(['/', '\\'], "-");
    let is_at_top = below.parent().is_none_or(|dir| dir.as_os_str().is_empty());
    let speaker = if is_at_top { id.clone() } else { files::ancestor_name(recording, 1) };
    let audio = AudioPart { path: recording.to_owned(), ..AudioPart::default() };
    let mut utterance = Utterance { id, speaker, audio, ..Utterance::default() };
    let (mut n_labels, n_problems) = (0, problems.0.len());
    for kind in ["textgrid", "phn", "wrd", "lab", "txt"] {
        if let Some(path) = siblings.find(recording, &[kind]) {
            n_labels += 1;
            read_labels(kind, path, recording, &mut utterance, problems);
        }
    }
    if n_labels == 0 {
        let what = "a label file next to it (.txt, .lab, .TextGrid, .phn, .wrd)".to_owned();
        problems.add(recording, None, Fault::Missing { what });
        return None;
    }
    if utterance.sentence.is_empty() {
        utterance.sentence = names(&utterance.words);
    }
    let is_empty = utterance.sentence.is_empty() && utterance.phones.is_empty();
    // One line for one mistake: labels that could not be read have been told.
    (!is_empty || problems.0.len() == n_problems).then_some(utterance)
}

/// The labels that one file has for a recording; what kind of file it is, its extension says.
pub fn labels_of(path: &Path, recording: &Path) -> (Utterance, Vec<Problem>) {
    let (mut utterance, mut problems) = (Utterance::default(), Problems::default());
    read_labels(&files::extension(path), path, recording, &mut utterance, &mut problems);
    (utterance, problems.0)
}

fn names(timed: &[Timed]) -> String {
    timed.iter().map(|word| word.name.as_str()).collect::<Vec<_>>().join(" ")
}

fn read_labels(kind: &str, path: &Path, recording: &Path, utterance: &mut Utterance, problems: &mut Problems) {
    match kind {
        "phn" => utterance.phones = phn::load(path, rate_hz(recording), problems),
        "wrd" => utterance.words = phn::load(path, rate_hz(recording), problems),
        _ => match files::read_text(path, MAX_LABEL_BYTES) {
            Err(fault) => problems.add(path, None, fault),
            Ok(text) if kind == "textgrid" => read_textgrid(path, &text, utterance, problems),
            Ok(text) if kind == "lab" => read_lab(&text, utterance),
            Ok(text) => utterance.sentence = without_times(&text),
        },
    }
}

/// The rate that sample numbers count in; one that cannot be read is reported when the recording is measured.
fn rate_hz(recording: &Path) -> f64 {
    srf_audio::probe(recording).map_or(16_000.0, |info| f64::from(info.rate_hz))
}

/// Words on one line; TIMIT puts the first and last sample before them.
fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |index: usize| words.get(index).is_some_and(|word| word.parse::<u64>().is_ok());
    let n_skip = if 2 < words.len() && is_number(0) && is_number(1) { 2 } else { 0 };
    words[n_skip..].join(" ")
}

fn read_textgrid(path: &Path, text: &str, utterance: &mut Utterance, problems: &mut Problems) {
    match textgrid::parse(text) {
        Err(error) => problems.add(path, None, Fault::Shape { found: error.to_string(), expected: "a TextGrid" }),
        Ok(tiers) => {
            let intervals = |names: &[&str]| textgrid::tier(&tiers, names).map(|tier| tier.intervals.clone());
            utterance.phones = intervals(&["phones", "phone", "phn"]).unwrap_or_default();
            utterance.words = intervals(&["words", "word", "wrd"]).unwrap_or_default();
        }
    }
}

/// HTK's labels, `start end phone` in 100 ns; any other text is a transcript.
fn read_lab(text: &str, utterance: &mut Utterance) {
    let timed: Option<Vec<Timed>> = text.lines().filter(|line| !line.trim().is_empty()).map(htk_label).collect();
    match timed {
        Some(timed) if !timed.is_empty() => utterance.phones = timed,
        _ => utterance.sentence = text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn htk_label(line: &str) -> Option<Timed> {
    let mut fields = line.split_whitespace();
    let (start, end, name) = (fields.next()?, fields.next()?, fields.next()?);
    let seconds = |ticks: &str| ticks.parse::<u64>().ok().map(|ticks| ticks as f64 / HTK_TICKS_HZ);
    Some(Timed { start_s: seconds(start)?, end_s: seconds(end)?, name: name.to_owned() })
}
