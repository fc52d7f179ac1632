//! `srf demo`: nothing in, a spoken corpus, a trained and measured model and a page about it out.
//!
//! Every step is what a command of its own does: `prepare builtin`, `train`, `evaluate`, `transcribe`, `analyze`.

mod claim;
mod shown;

pub(crate) use self::claim::ClaimError;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use srf::Recognizer;
use srf_model::config::Recipe;
use srf_train::analyze::{Analysis, Named, reference, spectrogram};
use srf_train::builtin::Voices;
use srf_train::builtin::layout::PlainConfig;
use srf_train::corpus::Utterance;
use srf_train::evaluate::summary::{Subject, Summary};
use srf_train::evaluate::{DEFAULT_REPLICATIONS, EvaluateOptions, Evaluation, Scoring, files};
use srf_train::events::log::{self, History};
use srf_train::recipes;
use srf_train::report::{self, whole};
use srf_train::trainer::prepared::Prepared;
use srf_train::trainer::{Outcome, TrainJob};

use self::claim::Settings;
use super::thread_pool;
use super::{evaluate, prepare, train as training};
use crate::Exit;
use crate::printer::{Printer, human_duration};

const RECIPE: &str = "builtin/demo";
const FULL: Settings = Settings { seed: 1, hours: 1.5, n_speakers: 90, n_epochs: None };
/// Enough to go through every step.
const SMOKE: Settings = Settings { seed: 1, hours: 0.04, n_speakers: 10, n_epochs: Some(2) };
/// Recordings that are shown beside what was said.
const N_EXAMPLES: usize = 4;
const SAVE_EVERY: Duration = Duration::from_mins(1);
const MAX_CACHE_BYTES: u64 = 2 << 30;

/// See all of it work: speak a corpus, train on it, measure, transcribe, look inside
///
/// Needs nothing but this program and some minutes on two cores. DIR becomes a run directory with the model
/// (DIR/model), the recordings (DIR/corpus), the evaluation (DIR/test) and one page about everything
/// (DIR/report.html). The same command goes on where it was stopped, and skips what is done.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf demo
  srf demo elsewhere --seed 2
  srf transcribe --model demo/model demo/corpus/audio/f0001/f0001-00001.wav")]
pub(crate) struct Args {
    /// The directory to make
    #[arg(default_value = "demo", value_name = "DIR")]
    dir: PathBuf,

    /// Speakers, sentences and first weights follow from it
    #[arg(long, value_name = "N", default_value_t = FULL.seed)]
    seed: u64,

    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Go through every step in seconds, with a model that is good for nothing
    #[arg(long, hide = true)]
    smoke: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { dir, seed, threads, smoke } = args;
    let demo = Demo { dir, settings: Settings { seed, ..if smoke { SMOKE } else { FULL } }, out };
    thread_pool(threads)?.install(|| demo.go())
}

/// A demo under way.
struct Demo<'a> {
    dir: PathBuf,
    settings: Settings,
    out: &'a Printer,
}

/// What the model made of the held-out recordings.
struct Tested {
    recognizer: Recognizer,
    utterances: Vec<Utterance>,
    evaluation: Evaluation,
}

impl Demo<'_> {
    fn go(&self) -> anyhow::Result<Exit> {
        let start = Instant::now();
        self.settings.claim(&self.dir)?;
        self.speak()?;
        if !self.train()? {
            return Ok(Exit::Problems);
        }
        let tested = self.evaluate()?;
        let chosen = whole::choose(&tested.evaluation, N_EXAMPLES);
        self.step(4, "some of these recordings, with the second in which each label begins");
        shown::examples(&tested.evaluation, &tested.utterances, &chosen, self.out)?;
        let analysis = chosen.first().map(|at| self.analyze(&tested, *at)).transpose()?;
        self.write_page(&tested, &chosen, analysis.as_ref())?;
        self.tell_end(&tested, chosen.first().copied(), start)?;
        Ok(if tested.evaluation.left_out.is_empty() { Exit::Done } else { Exit::Problems })
    }

    fn step(&self, number: usize, what: impl std::fmt::Display) {
        self.out.note(format_args!("\n{number}/5 {what}"));
    }

    fn speak(&self) -> anyhow::Result<()> {
        let Settings { seed, hours, n_speakers, .. } = self.settings;
        let corpus = self.corpus();
        // Written last: what it counts is there.
        if corpus.join("summary.json").is_file() {
            self.step(1, format_args!("the corpus is in `{}` already", corpus.display()));
            return Ok(());
        }
        self.step(1, format_args!("speaking {hours} hours with {n_speakers} voices"));
        let config = PlainConfig { seed, n_speakers, hours, voices: Voices::Flite };
        prepare::builtin::make_usual(&config, corpus, self.out).map(drop)
    }

    fn corpus(&self) -> PathBuf {
        self.dir.join("corpus")
    }

    fn model(&self) -> PathBuf {
        self.dir.join("model")
    }

    /// Whether there is a model now; not if somebody stopped the training.
    fn train(&self) -> anyhow::Result<bool> {
        let history = History::load(&self.dir.join(log::FILE_NAME)).unwrap_or_default();
        if history.is_finished() && self.model().join("config.toml").is_file() {
            self.step(2, format_args!("the model is in `{}` already", self.model().display()));
            return Ok(true);
        }
        self.step(2, "training a network of capsules to write phones; Ctrl-C stops it, the same command goes on");
        let job = TrainJob {
            recipe: self.recipe()?,
            recipe_name: "demo".to_owned(),
            data: Arc::new(Prepared::load(&self.corpus())?),
            run: self.dir.clone(),
            from: None,
            command: std::env::args().collect(),
            machine: training::machine(),
            save_every: SAVE_EVERY,
            max_cache_bytes: MAX_CACHE_BYTES,
        };
        Ok(matches!(training::watch(&job, self.out)?, Outcome::Finished { .. }))
    }

    fn recipe(&self) -> anyhow::Result<Recipe> {
        let text = recipes::text(RECIPE).context("the recipe of the demo is not in the list")?;
        let mut recipe = Recipe::parse(text, Path::new(RECIPE))?;
        let training = recipe.training.as_mut().context("the recipe of the demo does not train")?;
        training.seed = self.settings.seed;
        training.epochs = self.settings.n_epochs.unwrap_or(training.epochs);
        Ok(recipe)
    }

    fn evaluate(&self) -> anyhow::Result<Tested> {
        self.step(3, "recognising speakers that it never heard");
        let (model, manifest) = (self.model(), self.corpus().join("test.jsonl"));
        let recognizer = Recognizer::open(&model)?;
        let (utterances, _) = evaluate::load(&manifest, self.out)?;
        let scoring = Scoring { n_replications: DEFAULT_REPLICATIONS, seed: 1, ..Scoring::default() };
        let options = EvaluateOptions { scoring, ..EvaluateOptions::default() };
        let evaluation = evaluate::recognise(&recognizer, &utterances, &options, self.out);
        let subject = Subject::new(&model, &manifest, &options.decoder, None);
        let summary = Summary::of(&evaluation, &subject);
        files::write(&self.dir.join("test"), &evaluation, &summary, &utterances, None)?;
        evaluate::show(&evaluation, DEFAULT_REPLICATIONS, true, self.out)?;
        Ok(Tested { recognizer, utterances, evaluation })
    }

    fn analyze(&self, tested: &Tested, at: usize) -> anyhow::Result<Analysis> {
        let Tested { recognizer, .. } = tested;
        let utterance = tested.utterance(at);
        self.step(5, format_args!("how capsules are routed to classes in {}", utterance.id));
        let models = [Named { name: "demo".to_owned(), recognizer: recognizer.clone() }];
        let labels = reference::of(utterance, recognizer.labels().units());
        let analysis = Analysis::hear(&models, &utterance.to_be_heard(), &[None], labels)?;
        shown::routing(&analysis, self.out)?;
        Ok(analysis)
    }

    fn write_page(&self, tested: &Tested, chosen: &[usize], routing: Option<&Analysis>) -> anyhow::Result<()> {
        let examples = chosen.iter().map(|at| {
            let utterance = tested.utterance(*at);
            let sound = spectrogram::samples(&tested.recognizer, &utterance.to_be_heard())?;
            Ok(whole::Example { answer: *at, sentence: utterance.sentence.clone(), sound })
        });
        let examples = examples.collect::<anyhow::Result<Vec<_>>>()?;
        let history = History::load(&self.dir.join(log::FILE_NAME))?;
        let (evaluation, title) = (&tested.evaluation, "srf demo");
        let page = whole::page(&whole::Whole { title, history: &history, evaluation, examples: &examples, routing });
        let path = self.dir.join(report::FILE_NAME);
        page.save(&path).with_context(|| format!("could not write `{}`", path.display()))
    }

    /// What there is now, and three commands that work as they stand.
    fn tell_end(&self, tested: &Tested, example: Option<usize>, start: Instant) -> anyhow::Result<()> {
        let took = human_duration(start.elapsed().as_secs_f64());
        let page = self.dir.join(report::FILE_NAME);
        self.out.note(format_args!("\ndone in {took}; open `{}` in a browser. Try next:", page.display()));
        let program = std::env::args_os().next().map_or_else(|| PathBuf::from("srf"), PathBuf::from);
        let quoted = srf_base::shell::quote_path;
        let [program, model, corpus] = [&program, &self.model(), &self.corpus()].map(|path| quoted(path));
        let [recipe, test, routing, longer] =
            ["recipe.toml", "corpus/test.jsonl", "routing", "longer"].map(|name| quoted(&self.dir.join(name)));
        if let Some(at) = example {
            let Utterance { speaker, id, .. } = tested.utterance(at);
            let recording = quoted(&self.corpus().join(format!("audio/{speaker}/{id}.wav")));
            self.out.line(format_args!("  {program} transcribe --model {model} --format json {recording}"))?;
        }
        self.out.line(format_args!("  {program} analyze --model {model} --pictures 2 --out {routing} {test}"))?;
        self.out.line(format_args!("  {program} train {recipe} --data {corpus} --out {longer} training.epochs=40"))?;
        Ok(())
    }
}

impl Tested {
    /// The utterance of an answer: answers are in the order of the list, some left out.
    fn utterance(&self, answer: usize) -> &Utterance {
        let id = &self.evaluation.answers[answer].id;
        self.utterances.iter().find(|utterance| utterance.id == *id).expect("answers are of listed utterances")
    }
}
