//! `srf align` and `srf gop`: when, and how well, each label of a known transcript was spoken.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use srf::Recognizer;
use srf::align::Said;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_text::cmudict;
use srf_text::labels::{LabelSet, Units};
use srf_text::output::{Format, Segment, Transcript, Word};
use srf_train::corpus::manifest;
use srf_train::evaluate::pronunciation::{Detection, Replacement};
use srf_train::lexicon::Pronouncer;

use super::recognition::{ModelArgs, read_text};
use super::transcribe::files::{Sink, keep_on};
use super::words::CMUDICT;
use crate::Exit;
use crate::printer::Printer;

/// Find when each label of a transcript was spoken
///
/// The transcript is written in the labels of the model (phones or characters) or in words, which a lexicon turns into
/// labels.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf align talk.wav --text 'hello world' > talk.TextGrid
  srf align talk.wav --text 'hh ah l ow' --format ctm
  srf align talk.wav --transcript talk.txt --lexicon cmudict.txt
  srf align data/timit/test.jsonl --format ctm > aligned.ctm
  srf align data/timit/test.jsonl --out grids/")]
pub(crate) struct Args {
    #[command(flatten)]
    reference: ReferenceArgs,

    #[command(flatten)]
    model: ModelArgs,

    /// Output format: textgrid, ctm, json, csv, srt or vtt
    #[arg(long, short, value_name = "FORMAT", default_value_t = Format::TextGrid)]
    format: Format,

    /// Write one file per recording to this directory instead of stdout
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Score how well each label of a transcript was pronounced (goodness of pronunciation)
///
/// The score is the posterior probability in per cent that this label was spoken between its neighbours, rather than
/// another label or none, summed over all alignments. 100: nothing else is plausible; 50: something else is as
/// probable; near 0: the label was omitted or replaced. The last two columns are the most probable alternative (`-`
/// for none) and its probability.
///
/// `--replace` measures how well the scores of a model find wrong labels: it replaces labels of right transcripts at
/// random and prints the area under the ROC curve (1: all wrong labels score below all right ones; 0.5: chance).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf gop talk.wav --text 'hello world'
  srf gop talk.wav --text 'hh ah l ow'
  srf gop data/learners.jsonl --json > scores.jsonl
  srf gop data/timit/test.jsonl --replace 20")]
pub(crate) struct GopArgs {
    #[command(flatten)]
    reference: ReferenceArgs,

    #[command(flatten)]
    model: ModelArgs,

    /// Print JSON instead of text, one object per recording
    #[arg(long)]
    json: bool,

    /// Replace one label in N by another one at random, and print how well the scores find them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    replace: Option<u64>,

    /// Seed of --replace
    #[arg(long, value_name = "N", default_value_t = 1, requires = "replace")]
    seed: u64,
}

/// Recordings and their transcripts.
#[derive(clap::Args)]
struct ReferenceArgs {
    /// Recordings, or JSONL manifests with the text of each utterance
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// The transcript of the recording
    #[arg(long, conflicts_with = "transcript")]
    text: Option<String>,

    /// A transcript file: the text of one recording, or `id text` lines for several
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,

    /// Pronunciations for transcripts in words: `cmudict`, or a file of `word label label ...` lines; the first entry of a
    /// word is used [default: cmudict for texts that are not in the phones of the model]
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,
}

/// A recording and the labels of its transcript.
struct Referenced {
    utterance: Utterance,
    classes: Vec<usize>,
    /// The words of the transcript with their numbers of labels; empty without a lexicon.
    words: Vec<(String, usize)>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { reference, model, format, out: dir } = args;
    let recognizer = model.open()?;
    let (referenced, mut n_problems) = reference.resolve(recognizer.labels(), out)?;
    let mut sink = Sink::new(format, dir, out)?;
    sink.expect(&[], referenced.len())?;
    let aligned = for_each_in_parallel("align", &recognizer, &referenced, out, |item, statistics| {
        transcript(&recognizer, item, statistics)
    });
    for result in aligned {
        let written = result.and_then(|transcript| sink.write(&transcript));
        keep_on(written, &mut n_problems, |problem| out.problem(problem))?;
    }
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

pub(crate) fn run_gop(args: GopArgs, out: &Printer) -> anyhow::Result<Exit> {
    let GopArgs { reference, model, json, replace, seed } = args;
    let recognizer = model.open()?;
    let (referenced, mut n_problems) = reference.resolve(recognizer.labels(), out)?;
    if let Some(one_in) = replace {
        n_problems += show_detection(&recognizer, &referenced, Replacement { one_in, seed }, json, out)?;
        return Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems });
    }
    let scored = for_each_in_parallel("gop", &recognizer, &referenced, out, |item, statistics| {
        Ok(recognizer.pronunciation(&item.utterance, &item.classes, statistics)?)
    });
    for (item, result) in referenced.iter().zip(scored) {
        let id = &item.utterance.id;
        let printed = result.and_then(|labels| {
            let text = if json { serde_json::to_string(&gop_json(id, &labels))? } else { gop_table(id, &labels) };
            Ok(out.line(text)?)
        });
        keep_on(printed, &mut n_problems, |problem| out.problem(problem))?;
    }
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

/// Prints how well scores find replaced labels. Returns the number of problems.
fn show_detection(
    recognizer: &Recognizer,
    referenced: &[Referenced],
    replacement: Replacement,
    json: bool,
    out: &Printer,
) -> anyhow::Result<usize> {
    let labels = recognizer.labels();
    let replaceable: Vec<usize> =
        (1..labels.n_classes() - 1).filter(|class| Some(*class) != labels.end_of_sentence()).collect();
    let detected = for_each_in_parallel("gop", recognizer, referenced, out, |item, statistics| {
        let log_probs = recognizer.log_probs(&item.utterance, statistics)?;
        let replaced = replacement.apply(&item.utterance.id, &item.classes, &replaceable);
        Detection::of(recognizer, &log_probs, &replaced).with_context(|| item.utterance.id.clone())
    });
    let (mut all, mut n_problems) = (Detection::default(), 0);
    for result in detected {
        let added = result.map(|detection| all.add(detection));
        keep_on(added, &mut n_problems, |problem| out.problem(problem))?;
    }
    let [n_labels, n_replaced] = all.counts();
    let (Some(area), Some(ratio_area)) = (all.area(), all.ratio_area()) else {
        bail!("{n_replaced} of {n_labels} labels were replaced: give more utterances, or another --replace");
    };
    if json {
        let (labels, replaced) = (n_labels, n_replaced);
        out.line(json!({ "labels": labels, "replaced": replaced, "auc": area, "auc_log_ratio": ratio_area }))?;
    } else {
        out.line(format_args!("{n_labels} labels, {n_replaced} of them replaced"))?;
        out.line(format_args!("area under the ROC curve: {area:.4}"))?;
        out.line(format_args!("  of the mean log posterior ratio, from the same network: {ratio_area:.4}"))?;
    }
    Ok(n_problems)
}

/// Calls `work` for every recording with the statistics of its speaker, on all threads and with a progress bar.
fn for_each_in_parallel<T: Send>(
    what: &'static str,
    recognizer: &Recognizer,
    referenced: &[Referenced],
    out: &Printer,
    work: impl Fn(&Referenced, Option<CmvnStats>) -> anyhow::Result<T> + Sync,
) -> Vec<anyhow::Result<T>> {
    let utterances: Vec<Utterance> = referenced.iter().map(|item| item.utterance.clone()).collect();
    let statistics =
        if recognizer.is_by_speaker() { recognizer.speaker_statistics(&utterances) } else { HashMap::default() };
    let progress = out.progress(what, referenced.len() as u64);
    let call = |item: &Referenced| {
        let result = work(item, statistics.get(item.utterance.speaker.as_str()).cloned());
        progress.inc(1);
        result
    };
    referenced.par_iter().map(call).collect()
}

fn transcript(recognizer: &Recognizer, item: &Referenced, statistics: Option<CmvnStats>) -> anyhow::Result<Transcript> {
    let mut segment = recognizer.align(&item.utterance, &item.classes, statistics)?;
    if !item.words.is_empty() {
        segment.words = group_words(&segment, &item.words);
        segment.text = segment.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    }
    let duration_s = srf_audio::Recording::open(&item.utterance.path)?.info().duration_s();
    Ok(Transcript {
        id: item.utterance.id.clone(),
        path: Some(item.utterance.path.clone()),
        channel: "A".to_owned(),
        duration_s: duration_s.unwrap_or(segment.end_s),
        segments: vec![segment],
        incomplete: None,
    })
}

/// Words of the given numbers of labels, with the times of their labels.
fn group_words(segment: &Segment, words: &[(String, usize)]) -> Vec<Word> {
    let mut rest = segment.tokens.as_slice();
    let mut grouped = Vec::new();
    for (text, n_labels) in words {
        let (tokens, later) = rest.split_at((*n_labels).min(rest.len()));
        rest = later;
        if let (Some(first), Some(last)) = (tokens.first(), tokens.last()) {
            grouped.push(Word { text: text.clone(), start_s: first.start_s, end_s: last.end_s, confidence: None });
        }
    }
    grouped
}

/// The JSON object of a recording in `srf gop --json`.
#[derive(Serialize)]
struct GopJson<'a> {
    id: &'a str,
    /// The mean over the labels.
    score: f32,
    labels: Vec<GopLabelJson<'a>>,
}

#[derive(Serialize)]
struct GopLabelJson<'a> {
    label: &'a str,
    start_s: f64,
    end_s: f64,
    score: f32,
    heard: Option<&'a str>,
    heard_score: f32,
}

fn mean_score(labels: &[Said]) -> f32 {
    labels.iter().map(|label| label.score).sum::<f32>() / labels.len().max(1) as f32
}

fn gop_json<'a>(id: &'a str, labels: &'a [Said]) -> GopJson<'a> {
    let label = |label: &'a Said| GopLabelJson {
        label: &label.token.text,
        start_s: label.token.start_s,
        end_s: label.token.end_s,
        score: label.score,
        heard: label.heard.as_deref(),
        heard_score: label.heard_score,
    };
    GopJson { id, score: mean_score(labels), labels: labels.iter().map(label).collect() }
}

/// A heading with the mean score, then a line per label.
fn gop_table(id: &str, labels: &[Said]) -> String {
    let id = srf_base::ids::encode(id);
    let mut table = format!("{id}: {:.1}\n   start      end  label  score  heard  share", mean_score(labels));
    for Said { token, score, heard, heard_score } in labels {
        let heard = heard.as_deref().unwrap_or("-");
        let _ = write!(
            table,
            "\n{:>8.2} {:>8.2}  {:<6} {score:>5.1}  {heard:<6} {heard_score:>5.1}",
            token.start_s, token.end_s, token.text
        );
    }
    table
}

impl ReferenceArgs {
    /// All utterances whose transcript can be written in `labels`, and the number of problems, which are reported.
    fn resolve(self, labels: &LabelSet, out: &Printer) -> anyhow::Result<(Vec<Referenced>, usize)> {
        let Self { inputs, text, transcript, lexicon } = self;
        let lexicon = Pronunciations::new(lexicon.as_deref(), labels)?;
        let (texts, mut n_problems) = texts(&inputs, text, transcript.as_deref(), out)?;
        let mut referenced = Vec::new();
        for (utterance, text) in texts {
            match encode(labels, &lexicon, &text) {
                Ok((classes, words)) => referenced.push(Referenced { utterance, classes, words }),
                Err(error) => {
                    n_problems += 1;
                    out.problem(format!("{}: {error:#}", utterance.id));
                }
            }
        }
        Ok((referenced, n_problems))
    }
}

/// Every recording with its text, and the number of problems.
fn texts(
    inputs: &[PathBuf],
    text: Option<String>,
    transcript: Option<&Path>,
    out: &Printer,
) -> anyhow::Result<(Vec<(Utterance, String)>, usize)> {
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|e| e == "jsonl" || e == "json");
    if inputs.iter().all(is_manifest) {
        ensure!(text.is_none() && transcript.is_none(), "a manifest has its own texts: omit --text and --transcript");
        return Ok(manifest_texts(inputs, out));
    }
    let text = match (text, transcript) {
        (Some(text), _) => text,
        (None, Some(path)) => read_text(path)?,
        (None, None) => bail!("no transcript: give --text, --transcript or a manifest"),
    };
    if let [path] = inputs {
        return Ok((vec![(path.clone().into(), text)], 0));
    }
    let by_id: HashMap<&str, &str> =
        text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace)).collect();
    let (mut found, mut n_problems) = (Vec::new(), 0);
    for utterance in inputs.iter().cloned().map(Utterance::from) {
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

fn manifest_texts(manifests: &[PathBuf], out: &Printer) -> (Vec<(Utterance, String)>, usize) {
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

/// Where the labels of words come from.
enum Pronunciations {
    /// The first pronunciation of each word of a file.
    Listed(HashMap<String, String>),
    /// CMU's dictionary inside the program, for all texts or only for those that are not in the labels of the model.
    CmuDict { pronouncer: Box<Pronouncer>, is_asked_for: bool },
    /// Texts are in the labels of the model.
    None,
}

impl Pronunciations {
    fn new(lexicon: Option<&Path>, labels: &LabelSet) -> anyhow::Result<Self> {
        let is_asked_for = lexicon.is_some_and(|path| path == Path::new(CMUDICT));
        match lexicon {
            Some(path) if !is_asked_for => Ok(Self::Listed(first_pronunciations(&read_text(path)?))),
            _ if is_asked_for || speaks_english(labels) => {
                Ok(Self::CmuDict { pronouncer: Box::new(Pronouncer::new(labels)), is_asked_for })
            }
            _ => Ok(Self::None),
        }
    }

    /// Whether this text is words.
    fn are_for(&self, text: &str, labels: &LabelSet) -> bool {
        match self {
            Self::Listed(_) => true,
            // Some words are phones, too (`b`, `er`), and a text of phones may have one that is misspelt.
            Self::CmuDict { is_asked_for, .. } => {
                *is_asked_for || text.split_whitespace().count() < 2 * labels.foreign(text).len()
            }
            Self::None => false,
        }
    }

    fn labels_of(&self, word: &str) -> anyhow::Result<String> {
        let word = word.to_lowercase();
        match self {
            Self::Listed(listed) => listed.get(&word).cloned(),
            Self::CmuDict { pronouncer, .. } => pronouncer.phones(&word).map(|phones| phones.join(" ")),
            Self::None => None,
        }
        .with_context(|| format!("nothing says how `{word}` is pronounced"))
    }
}

/// Whether a model has the phones of CMU's dictionary, under its names or those of a mapping.
fn speaks_english(labels: &LabelSet) -> bool {
    let is_known = |phone: &&&str| labels.class(phone).is_some();
    labels.units() == Units::Phones && 30 <= cmudict::PHONES.iter().filter(is_known).count()
}

/// The first pronunciation of each word.
fn first_pronunciations(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some((word, labels)) = line.split_once(char::is_whitespace) {
            found.entry(word.to_lowercase()).or_insert_with(|| labels.trim().to_owned());
        }
    }
    found
}

type Encoded = (Vec<usize>, Vec<(String, usize)>);

/// The classes of a text, and its words with their numbers of labels if it is in words.
fn encode(labels: &LabelSet, lexicon: &Pronunciations, text: &str) -> anyhow::Result<Encoded> {
    if !lexicon.are_for(text.trim(), labels) {
        let classes = labels.encode(text.trim())?;
        ensure!(labels.end_of_sentence().into_iter().ne(classes.iter().copied()), "the transcript is empty");
        return Ok((classes, Vec::new()));
    }
    let (mut pronounced, mut words) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        let labels_of_word = lexicon.labels_of(word)?;
        words.push((word.to_owned(), labels.units().split(&labels_of_word).len()));
        pronounced.push(labels_of_word);
    }
    ensure!(!pronounced.is_empty(), "the transcript is empty");
    let separator = if labels.units() == Units::Chars { "" } else { " " };
    Ok((labels.encode(&pronounced.join(separator))?, words))
}
