//! Recordings with what is said in them: recordings and transcripts, or manifests in; utterances and classes out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use srf::Recognizer;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_text::labels::{LabelSet, Units};
use srf_train::corpus::manifest;

use super::{inputs, text_file};
use crate::printer::Printer;

/// What was said where.
#[derive(clap::Args)]
pub(crate) struct SpokenArgs {
    /// Recordings, or JSONL manifests with the text of each utterance
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// What is said in the recording
    #[arg(long, conflicts_with = "transcript")]
    text: Option<String>,

    /// A file with what is said: of one recording the whole file, of several `id text` lines
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,

    /// How words are said, for transcripts in words: `word label label ...` lines, the first one of a word counts
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
}

/// A recording and its labels.
pub(crate) struct Spoken {
    pub(crate) utterance: Utterance,
    pub(crate) classes: Vec<usize>,
    /// The words of the transcript with the number of labels of each, where a lexicon told them.
    pub(crate) words: Vec<(String, usize)>,
}

impl SpokenArgs {
    /// All utterances that have a transcript in the labels of the model, and how many have none (each was told).
    pub(crate) fn resolve(self, labels: &LabelSet, out: &Printer) -> anyhow::Result<(Vec<Spoken>, usize)> {
        let Self { inputs, text, transcript, lexicon } = self;
        let lexicon = lexicon.map(|path| text_file::read(&path)).transpose()?.map(|text| pronunciations(&text));
        let (texts, mut n_problems) = texts(&inputs, text, transcript.as_deref(), out)?;
        let mut spoken = Vec::new();
        for (utterance, text) in texts {
            match encode(labels, lexicon.as_ref(), &text) {
                Ok((classes, words)) => spoken.push(Spoken { utterance, classes, words }),
                Err(error) => {
                    n_problems += 1;
                    out.problem(format!("{}: {error:#}", utterance.id));
                }
            }
        }
        Ok((spoken, n_problems))
    }
}

/// The statistics of each speaker, where the model wants them.
pub(crate) fn statistics(recognizer: &Recognizer, spoken: &[Spoken]) -> HashMap<String, CmvnStats> {
    if !recognizer.is_by_speaker() {
        return HashMap::new();
    }
    let utterances: Vec<Utterance> = spoken.iter().map(|spoken| spoken.utterance.clone()).collect();
    let by_speaker = recognizer.speaker_statistics(&utterances);
    by_speaker.into_iter().map(|(speaker, stats)| (speaker.to_owned(), stats)).collect()
}

/// Every recording with its text.
fn texts(
    inputs: &[PathBuf],
    text: Option<String>,
    transcript: Option<&Path>,
    out: &Printer,
) -> anyhow::Result<(Vec<(Utterance, String)>, usize)> {
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|e| e == "jsonl" || e == "json");
    if inputs.iter().all(is_manifest) {
        ensure!(text.is_none() && transcript.is_none(), "a manifest has the texts: leave out --text and --transcript");
        return Ok(listed_texts(inputs, out));
    }
    let text = match (text, transcript) {
        (Some(text), _) => text,
        (None, Some(path)) => text_file::read(path)?,
        (None, None) => bail!("what is said? give --text, --transcript or a manifest"),
    };
    if let [path] = inputs {
        return Ok((vec![(inputs::whole(path.clone()), text)], 0));
    }
    let by_id: HashMap<&str, &str> =
        text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace)).collect();
    let mut n_problems = 0;
    let mut found = Vec::new();
    for utterance in inputs.iter().cloned().map(inputs::whole) {
        let Some(text) = by_id.get(utterance.id.as_str()) else {
            n_problems += 1;
            let Utterance { path, id, .. } = &utterance;
            out.problem(format!("{}: no line of the transcript begins with `{id}`", path.display()));
            continue;
        };
        found.push((utterance, (*text).to_owned()));
    }
    Ok((found, n_problems))
}

fn listed_texts(manifests: &[PathBuf], out: &Printer) -> (Vec<(Utterance, String)>, usize) {
    let (mut found, mut n_problems) = (Vec::new(), 0);
    for path in manifests {
        let (lines, problems) = manifest::load(path);
        n_problems += problems.len();
        problems.iter().for_each(|problem| out.problem(problem));
        found.extend(lines.into_iter().map(|line| {
            let text = line.utterance.text.clone();
            (line.utterance.to_be_heard(), text)
        }));
    }
    (found, n_problems)
}

/// The first way to say each word.
fn pronunciations(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some((word, labels)) = line.split_once(char::is_whitespace) {
            found.entry(word.to_lowercase()).or_insert_with(|| labels.trim().to_owned());
        }
    }
    found
}

type Encoded = (Vec<usize>, Vec<(String, usize)>);

/// The classes of a text; through the lexicon if there is one.
fn encode(labels: &LabelSet, lexicon: Option<&HashMap<String, String>>, text: &str) -> anyhow::Result<Encoded> {
    let Some(lexicon) = lexicon else {
        let classes = labels.encode(text.trim())?;
        ensure!(labels.end_of_sentence().into_iter().ne(classes.iter().copied()), "the transcript is empty");
        return Ok((classes, Vec::new()));
    };
    let (mut said, mut words) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        let spelled = lexicon.get(&word.to_lowercase()).with_context(|| format!("`{word}` is not in the lexicon"))?;
        let n_labels = labels.units().split(spelled).len();
        said.push(spelled.as_str());
        words.push((word.to_owned(), n_labels));
    }
    ensure!(!said.is_empty(), "the transcript is empty");
    let between = if labels.units() == Units::Chars { "" } else { " " };
    Ok((labels.encode(&said.join(between))?, words))
}
