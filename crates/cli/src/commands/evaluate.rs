//! `srf evaluate`: error rates with intervals, and hypotheses, of a model on a manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use srf::Recognizer;
use srf_text::decode::DecoderConfig;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::{LabelSet, Units};
use srf_train::corpus::{Utterance, manifest};
use srf_train::evaluate::summary::{Subject, Summary};
use srf_train::evaluate::{
    DEFAULT_REPLICATIONS, EvaluateOptions, Evaluation, Rate, Scoring, UnknownLabels, evaluate, files, fitting_mapping,
    has_words, units_of, unknown_labels,
};

use super::models;
use super::recognition::{DecodingArgs, ModelArgs};
use super::score::{rate_line, sentence_line, show_speakers};
use crate::Exit;
use crate::printer::{Bar, Printer, human_duration};

/// Measure the error rate and the speed of a model
///
/// Recognises every utterance of a manifest as `srf transcribe` would, on all cores, and scores it against its text:
/// PER where phones are written, WER and CER otherwise. A model of phones that has words is scored by its words, and with
/// `--phones` by its phones. Utterances that cannot be read are reported and left out, and
/// labels that the model cannot write are reported; the exit code is then 1. Where the reference has another label set,
/// no rate is computed.
#[derive(clap::Args)]
#[command(after_help = "\
Files in DIR: evaluation.json, ref.trn, hyp.trn, hyp.ctm, hyp.jsonl (NeMo's `pred_text`), score.html.
`srf runs RUN` shows evaluations that are in the directory of their run.

Examples:
  srf evaluate --model run/model corpus/test.jsonl
  srf evaluate --model run corpus/test.jsonl --out run/test --speakers
  srf evaluate --model run/model corpus/test.jsonl --phones
  srf evaluate --model run/model timit/test.jsonl --map timit39 --beam 20 --json")]
pub(crate) struct Args {
    /// The utterances: a JSONL manifest
    manifest: PathBuf,

    #[command(flatten)]
    model: ModelArgs,

    /// Write hypotheses and figures into this directory
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Map the phones of both sides first: timit48, timit39, or shared37 (common to TIMIT and CMU's dictionary)
    #[arg(long, value_name = "SET")]
    map: Option<PhoneMapping>,

    /// Show a table of speakers
    #[arg(long)]
    speakers: bool,

    /// Bootstrap draws for the 95 % interval
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPLICATIONS)]
    bootstrap: usize,

    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    decoding: DecodingArgs,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { manifest, model, out: dir, map, speakers, bootstrap, seed, threads, json, decoding } = args;
    let (model, recognizer) = model.open_named()?;
    let (utterances, mut n_problems) = load(&manifest, out)?;
    let decoder = decoding.decoder(&recognizer)?;
    let decoder = fitting_decoder(&recognizer, &utterances, decoder, map, out);
    let units = units_of(&recognizer, &decoder);
    if let Some(mapping) = map {
        ensure!(units == Units::Phones, "`--map {mapping}` is for phones, but the model writes {units}");
    }
    if units == recognizer.labels().units() {
        let unknown = unknown_labels(recognizer.labels(), &utterances, map);
        n_problems += usize::from(!unknown.labels.is_empty());
        report_unknown(&unknown, recognizer.labels(), &utterances, out);
        if unknown.are_another_set(units) {
            return Ok(Exit::Problems);
        }
    }
    let subject = Subject::new(&model, &manifest, &decoder, map);
    let scoring = Scoring { mapping: map, n_replications: bootstrap, seed };
    let options = EvaluateOptions { decoder, scoring };
    let evaluation = with_threads(threads, || recognize(&recognizer, &utterances, &options, out))?;
    for left_out in &evaluation.left_out {
        out.problem(format_args!("utterance `{}` is left out: {}", left_out.id, left_out.reason));
    }
    if evaluation.answers.is_empty() {
        out.problem("no utterance could be evaluated, so there is no error rate");
        return Ok(Exit::Problems);
    }
    let summary = Summary::of(&evaluation, &subject);
    if let Some(dir) = &dir {
        files::write(dir, &evaluation, &summary, &utterances, map)?;
        out.note(format_args!("wrote `{}`", dir.display()));
    }
    if json {
        out.line(serde_json::to_string(&summary)?)?;
    } else {
        show(&evaluation, bootstrap, speakers, out)?;
    }
    let is_clean = evaluation.left_out.is_empty() && n_problems == 0;
    Ok(if is_clean { Exit::Done } else { Exit::Problems })
}

/// `decoder`, or one that writes phones if it would write words and there are only phones to compare them with.
fn fitting_decoder(
    recognizer: &Recognizer,
    utterances: &[Utterance],
    decoder: DecoderConfig,
    map: Option<PhoneMapping>,
    out: &Printer,
) -> DecoderConfig {
    let labels = recognizer.labels();
    if units_of(recognizer, &decoder) == labels.units() {
        return decoder;
    }
    let n_with_words = utterances.iter().filter(|utterance| has_words(utterance, labels)).count();
    if n_with_words == utterances.len() && map.is_none() {
        out.note("words are compared, without punctuation; `--phones` compares phones");
        return decoder;
    }
    let reason = if map.is_some() { "a mapping of phones is asked for" } else { "the manifest has no words" };
    out.note(format_args!("phones are compared, because {reason}"));
    DecoderConfig { search: decoder.search, fusion: None }
}

/// Fails if there is no such file.
pub(super) fn expect_manifest(path: &Path) -> anyhow::Result<()> {
    let found = std::fs::metadata(path).with_context(|| format!("could not read `{}`", path.display()))?;
    ensure!(found.is_file(), "`{}` is not a file, expected a manifest", path.display());
    Ok(())
}

/// The utterances of the manifest, and the number of its problems, which are reported.
pub(super) fn load(path: &Path, out: &Printer) -> anyhow::Result<(Vec<Utterance>, usize)> {
    expect_manifest(path)?;
    let (listed, problems) = manifest::load(path);
    problems.iter().for_each(|problem| out.problem(problem));
    if listed.is_empty() {
        bail!("`{}` lists no utterance", path.display());
    }
    Ok((listed.into_iter().map(|listed| listed.utterance).collect(), problems.len()))
}

/// Reports reference labels that the model cannot write, and whether that leaves anything to measure.
fn report_unknown(unknown: &UnknownLabels, labels: &LabelSet, utterances: &[Utterance], out: &Printer) {
    let Some((most_frequent, _)) = unknown.labels.first() else { return };
    let (n, n_reference, units) = (unknown.n(), unknown.n_reference, models::units_name(labels.units()));
    let advice = match (labels.units(), fitting_mapping(labels, utterances)) {
        (Units::Phones, Some(mapping)) => format!("`--map {mapping}` compares both in a set that has them all"),
        (Units::Phones, None) => "prepare the manifest with the phones of the model, or give `--map`".to_owned(),
        _ => format!("prepare the manifest with the {units} of the model (`srf prepare` has `--case` and `--labels`)"),
    };
    let effect = if unknown.are_another_set(labels.units()) {
        "so an error rate would say nothing about the model, and none is computed"
    } else {
        "and count as errors"
    };
    out.problem(format_args!(
        "{n} of {n_reference} {units} of the reference, such as `{most_frequent}`, are not among the model's, {effect}; \
         {advice}"
    ));
}

fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    let Some(n_threads) = threads else { return Ok(work()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().context("could not start threads")?;
    Ok(pool.install(work))
}

pub(super) fn recognize(
    recognizer: &Recognizer,
    utterances: &[Utterance],
    options: &EvaluateOptions,
    out: &Printer,
) -> Evaluation {
    let bar = Bar::new(out);
    let evaluation = evaluate(recognizer, utterances, options, &bar);
    bar.finish();
    evaluation
}

pub(super) fn show(
    evaluation: &Evaluation,
    n_replications: usize,
    speakers: bool,
    out: &Printer,
) -> std::io::Result<()> {
    if speakers {
        show_speakers(&evaluation.rate().system, out)?;
    }
    for rate in &evaluation.rates {
        out.line(rate_line(rate.measure.name(), &rate.system.counts()))?;
        if n_replications > 0 {
            let (low, high) = (100.0 * rate.interval.low, 100.0 * rate.interval.high);
            out.line(format_args!("     {low:.2} to {high:.2} in 95 % of {n_replications} draws of the utterances"))?;
        }
    }
    out.line(sentence_line(&evaluation.rate().system))?;
    show_confidences(evaluation.rate(), out)?;
    show_speed(evaluation, out)
}

fn show_confidences(rate: &Rate, out: &Printer) -> std::io::Result<()> {
    let Some(confidences) = &rate.confidences else { return Ok(()) };
    let nce = confidences.nce.map_or_else(|| "undefined".to_owned(), |nce| format!("{nce:.3}"));
    out.line(format_args!("confidences: NCE {nce}, ECE {:.3}", confidences.ece))
}

fn show_speed(evaluation: &Evaluation, out: &Printer) -> std::io::Result<()> {
    let Evaluation { audio_s, recognition_s, n_threads, answers, .. } = evaluation;
    let (audio, time) = (human_duration(*audio_s), human_duration(*recognition_s));
    let factor = evaluation.real_time_factor().map_or_else(|| "undefined".to_owned(), |factor| format!("{factor:.4}"));
    let n = answers.len();
    out.line(format_args!("{n} utterances, {audio} in {time} on {n_threads} threads: real-time factor {factor}"))
}
