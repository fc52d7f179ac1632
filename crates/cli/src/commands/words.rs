//! `srf words`: gives a model a lexicon and a language model, so that it writes words, and tunes their weights.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use srf::words::{MAX_BEAM, WordSettings, write, write_settings};
use srf::{LabelSet, Recognizer, Units, directory};
use srf_score::Counts;
use srf_text::calibration::Calibration;
use srf_text::fusion::Lexicon;
use srf_text::lm::NgramModel;
use srf_text::word_model::WordModel;
use srf_train::evaluate::has_words;
use srf_train::evaluate::tune::{Grid, Tuner};
use srf_train::lexicon::{LexiconOptions, MadeLexicon, from_cmudict};

use super::evaluate::load;
use super::models::model_directory;
use super::recognition::{parse_file, parse_lexicon};
use super::thread_pool;
use crate::Exit;
use crate::printer::{Bar, Printer};

/// The name of the dictionary inside the program.
pub(super) const CMUDICT: &str = "cmudict";

/// Make a model of phones or characters write words
///
/// A model directory with a lexicon and a language model (`words.bin`) writes words; `--phones` still gives phones.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf lm estimate books.txt --order 3 --prune 0,0,1 --out books.arpa.gz
  srf words build --model runs/mine --lm books.arpa.gz
  srf words tune --model runs/mine corpus/dev.jsonl
  srf transcribe --model runs/mine talk.wav")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Build(BuildArgs),
    Tune(TuneArgs),
}

/// Write the lexicon and the language model of a model directory
///
/// The lexicon is CMU's dictionary, which is inside the program, or a file. Words of the language model that the
/// dictionary does not have are pronounced by letter-to-sound rules; for characters they are spelled.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf words build --model runs/mine --lm english.arpa.gz
  srf words build --model runs/mine --lm english.arpa.gz --known-only --no-rules
  srf words build --model runs/mine --lm quechua.arpa --lexicon quechua.txt")]
struct BuildArgs {
    /// The model directory to add words to, or a run that contains one
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,

    /// The language model of words: an ARPA file, plain or .gz
    #[arg(long, value_name = "FILE")]
    lm: PathBuf,

    /// `cmudict`, or a file of `word label label ...` lines [default: cmudict; the words of --lm for characters]
    #[arg(long, value_name = "LEXICON")]
    lexicon: Option<PathBuf>,

    /// Leave out words of the dictionary that the language model does not know
    #[arg(long)]
    known_only: bool,

    /// Leave out words of the language model that the dictionary does not have
    #[arg(long)]
    no_rules: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Choose the weights of language model and words that give the fewest errors on a manifest
///
/// The network runs once over all utterances; then one weight after the other is tried until none gives fewer wrong
/// words. The best weights become the defaults of the model (`decoding.json`). Every try is a line on stdout: weight of
/// the language model, bonus per word, beam, word error rate in per cent, errors, substitutions, deletions, insertions.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf words tune --model runs/mine corpus/dev.jsonl
  srf words tune --model runs/mine corpus/dev.jsonl --every 4 --beam 50
  srf words tune --model runs/mine corpus/dev.jsonl --alphas 0.6,0.7,0.8 --betas 0,0.5 --dry-run")]
struct TuneArgs {
    /// Utterances with their words: a JSONL manifest; not the one that is reported later
    manifest: PathBuf,

    /// The model directory, or a run that contains one
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,

    /// Weights of the language model to try
    #[arg(long, value_delimiter = ',', value_name = "A,A,...", default_value = "0.3,0.5,0.7,0.9,1.1,1.4")]
    alphas: Vec<f64>,

    /// Bonuses per word to try
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "B,B,...",
        allow_hyphen_values = true,
        default_value = "-2,-1,0,1,2,3"
    )]
    betas: Vec<f64>,

    /// Width of the beam [default: the model's, or 100]
    #[arg(long, value_name = "N")]
    beam: Option<usize>,

    /// Use only every Nth utterance
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,

    /// Print the time of decoding, too, in microseconds per slice
    #[arg(long)]
    times: bool,

    /// Write log-probabilities, references, lexicon and labels into this directory, for other decoders
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,

    /// Only print; leave the model as it is
    #[arg(long)]
    dry_run: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    match args.action {
        Action::Build(args) => build(args, out),
        Action::Tune(args) => {
            let pool = thread_pool(args.threads)?;
            pool.install(|| tune(args, out))
        }
    }
}

fn build(args: BuildArgs, out: &Printer) -> anyhow::Result<Exit> {
    let BuildArgs { model, lm, lexicon, known_only, no_rules, json } = args;
    let dir = model_directory(model)?;
    let labels = directory::read(&dir)?.labels;
    let language = NgramModel::load(&lm)?;
    let made = make_lexicon(&labels, &language, lexicon.as_deref(), LexiconOptions { known_only, no_rules })?;
    let MadeLexicon { lexicon, n_by_rules, n_unpronounced, n_foreign, n_unknown } = &made;
    ensure!(0 < lexicon.n_words(), "no word can be written in the labels of the model, so that nothing was written");
    let bytes = WordModel::format(lexicon, &language, &labels);
    // What is read back is what was rounded and kept.
    let kept = WordModel::parse(&bytes, &labels).context("the word model cannot be read back")?.language;
    let path = write(&dir, &bytes)?;
    let (n_words, n_spoken) = (lexicon.n_words(), lexicon.n_pronunciations());
    if json {
        out.line(json!({
            "path": path, "bytes": bytes.len(), "words": n_words, "pronunciations": n_spoken,
            "order": kept.order(), "ngrams": kept.n_ngrams(), "ngrams_left_out": language.n_ngrams() - kept.n_ngrams(),
            "words_by_rules": n_by_rules, "words_unpronounced": n_unpronounced,
            "pronunciations_left_out": n_foreign, "words_unknown": n_unknown,
        }))?;
        return Ok(Exit::Done);
    }
    out.note(format_args!("wrote `{}`: {} bytes", path.display(), bytes.len()));
    out.note(format_args!("{n_words} words with {n_spoken} pronunciations, {n_by_rules} of them by rules"));
    out.note(format_args!(
        "{} of {} n-grams up to order {}; the others have words that the lexicon does not have",
        kept.n_ngrams(),
        language.n_ngrams(),
        kept.order()
    ));
    for (n, what) in [
        (n_unpronounced, "words of the language model, because nothing says how they are pronounced"),
        (n_foreign, "pronunciations with phones that the model does not have"),
        (n_unknown, "words of the dictionary that the language model does not know"),
    ] {
        if 0 < *n {
            out.note(format_args!("left out: {n} {what}"));
        }
    }
    Ok(Exit::Done)
}

fn make_lexicon(
    labels: &LabelSet,
    language: &NgramModel,
    lexicon: Option<&Path>,
    options: LexiconOptions,
) -> anyhow::Result<MadeLexicon> {
    let is_phones = labels.units() == Units::Phones;
    match lexicon.filter(|path| *path != Path::new(CMUDICT) || path.is_file()) {
        Some(path) => {
            let lexicon = parse_file(path, |text| parse_lexicon(text, labels))?;
            let names: std::collections::HashSet<&str> =
                (0..lexicon.n_words() as u32).filter_map(|word| lexicon.word(word)).collect();
            let is_left_out = |word: &&str| !word.starts_with('<') && !names.contains(word);
            let n_unpronounced = language.words().map(|(word, _)| word).filter(is_left_out).count();
            Ok(MadeLexicon { n_unpronounced, lexicon, ..MadeLexicon::default() })
        }
        None if is_phones => Ok(from_cmudict(labels, language, options)),
        None => {
            ensure!(lexicon.is_none(), "`--lexicon {CMUDICT}` is for phones, but the model writes {}", labels.units());
            let mut words: Vec<&str> = language.words().map(|(word, _)| word).collect();
            words.retain(|word| !word.starts_with('<'));
            words.sort_unstable();
            let (lexicon, n_unpronounced) = Lexicon::spelled(words, labels);
            Ok(MadeLexicon { lexicon, n_unpronounced, ..MadeLexicon::default() })
        }
    }
}

fn tune(args: TuneArgs, out: &Printer) -> anyhow::Result<Exit> {
    let TuneArgs { manifest, model, alphas, betas, beam, every, times, export, dry_run, .. } = args;
    ensure!(0 < every, "--every is 0, expected 1 or more");
    ensure!(alphas.iter().all(|alpha| (0.0..=100.0).contains(alpha)), "--alphas: expected numbers from 0 to 100");
    ensure!(betas.iter().all(|beta| (-100.0..=100.0).contains(beta)), "--betas: expected numbers from -100 to 100");
    let dir = model_directory(model)?;
    let recognizer = Recognizer::open(&dir)?;
    let (utterances, n_problems) = load(&manifest, out)?;
    let labels = recognizer.labels();
    let chosen: Vec<_> = utterances.into_iter().filter(|u| has_words(u, labels)).step_by(every).collect();
    ensure!(!chosen.is_empty(), "no utterance of `{}` has words, expected `sentence` in its lines", manifest.display());
    let mut start = recognizer.words().map_or_else(WordSettings::default, |words| *words.settings());
    start.beam = beam.unwrap_or(start.beam);
    ensure!((1..=MAX_BEAM).contains(&start.beam), "--beam is {}, expected 1 to {MAX_BEAM}", start.beam);
    let bar = Bar::new(out);
    let tuner = Tuner::new(&recognizer, &chosen, &bar)?;
    bar.finish();
    for left_out in &tuner.left_out {
        out.problem(format_args!("utterance `{}` is left out: {}", left_out.id, left_out.reason));
    }
    out.note(format_args!("{} utterances", tuner.n_utterances()));
    if let Some(dir) = export {
        tuner.export(&dir).with_context(|| format!("could not write to `{}`", dir.display()))?;
        out.note(format_args!("wrote `{}`", dir.display()));
    }
    let mut printed = Ok(());
    let mut lap = Instant::now();
    let mut show = |settings: &WordSettings, counts: &Counts| {
        let micros = 1e6 * lap.elapsed().as_secs_f64() / tuner.n_slices().max(1) as f64;
        lap = Instant::now();
        let time = if times { format!(" us {micros:.1}") } else { String::new() };
        if printed.is_ok() {
            printed = out.line(format_args!("{}{time}", row(settings, counts)));
        }
    };
    let (mut best, counts) = tuner.search(&Grid { alphas, betas }, start, &mut show)?;
    printed?;
    out.note(format_args!("best: {}", row(&best, &counts)));
    best.confidence = tuner.calibration(&best)?;
    let Calibration { scale, shift } = best.confidence;
    out.note(format_args!("confidences of words: the logit is scaled by {scale:.3} and shifted by {shift:.3}"));
    if !dry_run {
        let path = write_settings(&dir, &best)?;
        out.note(format_args!("wrote `{}`", path.display()));
    }
    Ok(if n_problems == 0 && tuner.left_out.is_empty() { Exit::Done } else { Exit::Problems })
}

fn row(settings: &WordSettings, counts: &Counts) -> String {
    let WordSettings { alpha, beta, beam, .. } = settings;
    let Counts { substitutions, deletions, insertions, .. } = counts;
    let rate = 100.0 * counts.error_rate().unwrap_or(f64::NAN);
    let n_errors = counts.n_errors();
    format!(
        "alpha {alpha} beta {beta} beam {beam} WER {rate:.2} errors {n_errors} sub {substitutions} del {deletions} ins {insertions}"
    )
}
