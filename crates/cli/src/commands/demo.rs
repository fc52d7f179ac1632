//! `srf demo`: synthesises a corpus, trains and evaluates a model on it, and writes a page about everything.
//!
//! Every step is also a command of its own: `prepare builtin`, `train`, `evaluate`, `transcribe`, `analyze`.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use srf::Recognizer;
use srf_base::shell::quote_path;
use srf_model::config::Recipe;
use srf_score::{Pair, Verdict, Word};
use srf_train::analyze::{Analysis, Named, reference_labels, samples, unused_in_training};
use srf_train::builtin::Voices;
use srf_train::builtin::layout::PlainConfig;
use srf_train::corpus::Utterance;
use srf_train::evaluate::summary::{Subject, Summary};
use srf_train::evaluate::{DEFAULT_REPLICATIONS, EvaluateOptions, Evaluation, Scoring, files};
use srf_train::events::log::{self, History};
use srf_train::recipes;
use srf_train::report::{self, demo};
use srf_train::trainer::prepared::Prepared;
use srf_train::trainer::{Outcome, TrainJob};

use super::thread_pool;
use super::{evaluate, prepare, train as training};
use crate::Exit;
use crate::printer::{Printer, human_duration};

const RECIPE: &str = "builtin/demo";
const FULL: Settings = Settings { seed: 1, hours: 1.5, n_speakers: 90, n_epochs: None };
/// Enough to go through every step.
const SMOKE: Settings = Settings { seed: 1, hours: 0.04, n_speakers: 10, n_epochs: Some(2) };
/// Recordings that are shown with their reference.
const N_EXAMPLES: usize = 4;
const SAVE_EVERY: Duration = Duration::from_mins(1);
const MAX_CACHE_BYTES: u64 = 2 << 30;
/// Records the settings of a demo in its directory.
const SETTINGS_FILE: &str = "demo.json";
/// Characters per line.
const WIDTH: usize = 96;
/// Times at which the routing is shown.
const N_TIMES: usize = 10;
const BAR_WIDTH: f32 = 30.0;

/// Try everything: synthesise a corpus, train on it, evaluate, transcribe, look inside
///
/// Needs nothing but this program and a few minutes on two cores. DIR becomes a run directory with the model
/// (DIR/model), the recordings (DIR/corpus), the evaluation (DIR/test) and one page about everything
/// (DIR/report.html). The same command continues where it was stopped, and skips what is done.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf demo
  srf demo elsewhere --seed 2
  srf transcribe --model demo/model demo/corpus/audio/f0001/f0001-00001.wav")]
pub(crate) struct Args {
    /// Directory to create
    #[arg(default_value = "demo", value_name = "DIR")]
    dir: PathBuf,

    /// Seed of speakers, sentences and initial weights
    #[arg(long, value_name = "N", default_value_t = FULL.seed)]
    seed: u64,

    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Run every step in seconds, with a useless model
    #[arg(long, hide = true)]
    smoke: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { dir, seed, threads, smoke } = args;
    let demo = Demo { dir, settings: Settings { seed, ..if smoke { SMOKE } else { FULL } }, out };
    thread_pool(threads)?.install(|| demo.run())
}

struct Demo<'a> {
    dir: PathBuf,
    settings: Settings,
    out: &'a Printer,
}

/// The model and its results on the test part.
struct Tested {
    recognizer: Recognizer,
    utterances: Vec<Utterance>,
    evaluation: Evaluation,
}

impl Demo<'_> {
    fn run(&self) -> anyhow::Result<Exit> {
        let start = Instant::now();
        self.settings.claim(&self.dir)?;
        self.make_corpus()?;
        if !self.train()? {
            return Ok(Exit::Problems);
        }
        let tested = self.evaluate()?;
        let chosen = demo::choose(&tested.evaluation, N_EXAMPLES);
        self.step(4, "some of these recordings, with the second at which each label begins");
        show_examples(&tested.evaluation, &tested.utterances, &chosen, self.out)?;
        let analysis = chosen.first().map(|at| self.analyze(&tested, *at)).transpose()?;
        self.write_page(&tested, &chosen, analysis.as_ref())?;
        self.print_end(&tested, chosen.first().copied(), start)?;
        Ok(if tested.evaluation.left_out.is_empty() { Exit::Done } else { Exit::Problems })
    }

    fn step(&self, number: usize, what: impl std::fmt::Display) {
        self.out.note(format_args!("\n{number}/5 {what}"));
    }

    fn make_corpus(&self) -> anyhow::Result<()> {
        let Settings { seed, hours, n_speakers, .. } = self.settings;
        let corpus = self.corpus();
        // Written last, so everything else is there too.
        if corpus.join("summary.json").is_file() {
            self.step(1, format_args!("the corpus is in `{}` already", corpus.display()));
            return Ok(());
        }
        self.step(1, format_args!("synthesising {hours} hours with {n_speakers} voices"));
        let config = PlainConfig { seed, n_speakers, hours, voices: Voices::Flite };
        prepare::builtin::make_usual(&config, corpus, self.out).map(drop)
    }

    fn corpus(&self) -> PathBuf {
        self.dir.join("corpus")
    }

    fn model(&self) -> PathBuf {
        self.dir.join("model")
    }

    /// Trains the model if there is none. Returns `false` if interrupted.
    fn train(&self) -> anyhow::Result<bool> {
        let history = History::load(&self.dir.join(log::FILE_NAME)).unwrap_or_default();
        if history.is_finished() && self.model().join("config.toml").is_file() {
            self.step(2, format_args!("the model is in `{}` already", self.model().display()));
            return Ok(true);
        }
        self.step(2, "training a capsule network on phones; Ctrl-C stops it, the same command continues");
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
        Ok(matches!(
            training::watch(&job, &training::screen::Screen::new(self.out), self.out)?,
            Outcome::Finished { .. }
        ))
    }

    fn recipe(&self) -> anyhow::Result<Recipe> {
        let text = recipes::text(RECIPE).context("the recipe of the demo is missing")?;
        let mut recipe = Recipe::parse(text, Path::new(RECIPE))?;
        let training = recipe.training.as_mut().context("the recipe of the demo does not train")?;
        training.seed = self.settings.seed;
        training.epochs = self.settings.n_epochs.unwrap_or(training.epochs);
        Ok(recipe)
    }

    fn evaluate(&self) -> anyhow::Result<Tested> {
        self.step(3, "recognising voices it was not trained on");
        let (model, manifest) = (self.model(), self.corpus().join("test.jsonl"));
        let recognizer = Recognizer::open(&model)?;
        let (utterances, _) = evaluate::load(&manifest, self.out)?;
        let scoring = Scoring { n_replications: DEFAULT_REPLICATIONS, seed: 1, ..Scoring::default() };
        let options = EvaluateOptions { scoring, ..EvaluateOptions::default() };
        let evaluation = evaluate::recognize(&recognizer, &utterances, &options, self.out);
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
        let unused = unused_in_training(&self.model(), recognizer.labels());
        let models = [Named { name: "demo".to_owned(), recognizer: recognizer.clone(), unused }];
        let labels = reference_labels(utterance, recognizer.labels().units());
        let analysis = Analysis::compute(&models, &utterance.to_be_heard(), &[None], labels)?;
        show_routing(&analysis, self.out)?;
        Ok(analysis)
    }

    fn write_page(&self, tested: &Tested, chosen: &[usize], routing: Option<&Analysis>) -> anyhow::Result<()> {
        let examples = chosen.iter().map(|at| {
            let utterance = tested.utterance(*at);
            let sound = samples(&tested.recognizer, &utterance.to_be_heard())?;
            Ok(demo::Example { answer: *at, sentence: utterance.sentence.clone(), sound })
        });
        let examples = examples.collect::<anyhow::Result<Vec<_>>>()?;
        let history = History::load(&self.dir.join(log::FILE_NAME))?;
        let (evaluation, title) = (&tested.evaluation, "srf demo");
        let page = demo::page(&demo::Demo { title, history: &history, evaluation, examples: &examples, routing });
        let path = self.dir.join(report::FILE_NAME);
        page.save(&path).with_context(|| format!("could not write `{}`", path.display()))
    }

    /// Where the page is, and three commands to try, which work as printed.
    fn print_end(&self, tested: &Tested, example: Option<usize>, start: Instant) -> anyhow::Result<()> {
        let took = human_duration(start.elapsed().as_secs_f64());
        let page = self.dir.join(report::FILE_NAME);
        self.out.note(format_args!("\ndone in {took}; open `{}` in a browser. Try next:", page.display()));
        let program = std::env::args_os().next().map_or_else(|| PathBuf::from("srf"), PathBuf::from);
        let [program, model, corpus] = [&program, &self.model(), &self.corpus()].map(|path| quote_path(path));
        let [recipe, test, routing, longer] =
            ["recipe.toml", "corpus/test.jsonl", "routing", "longer"].map(|name| quote_path(&self.dir.join(name)));
        if let Some(at) = example {
            let Utterance { speaker, id, .. } = tested.utterance(at);
            let recording = quote_path(&self.corpus().join(format!("audio/{speaker}/{id}.wav")));
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

/// What a demo is made from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    seed: u64,
    hours: f64,
    n_speakers: usize,
    /// Those of the recipe if `None`.
    n_epochs: Option<usize>,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("`{dir}` is not empty, and no demo was started in it")]
    Foreign { dir: PathBuf },
    #[error("the demo in `{dir}` was started with other settings: {found}")]
    Other { dir: PathBuf, found: String },
    #[error("could not use `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl ClaimError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let what = match self {
            Self::Foreign { .. } => "name another directory: `srf demo DIR`",
            Self::Other { .. } => "name another directory (`srf demo DIR`), remove this one, or give the same options",
            Self::Io { .. } => return None,
        };
        Some(what.to_owned())
    }
}

impl Settings {
    /// Creates `dir`, or checks that this very demo was started there.
    fn claim(&self, dir: &Path) -> Result<(), ClaimError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ClaimError::Io { path, source }
        };
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        let (file, dir) = (dir.join(SETTINGS_FILE), dir.to_owned());
        let ours = serde_json::to_string(self).expect("numbers have a JSON form");
        match std::fs::read_to_string(&file) {
            Ok(found) if serde_json::from_str(&found).is_ok_and(|found: Self| found == *self) => Ok(()),
            Ok(found) => Err(ClaimError::Other { dir, found: found.trim().chars().take(200).collect() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_empty = std::fs::read_dir(&dir).map_err(failed(&dir))?.next().is_none();
                if is_empty {
                    std::fs::write(&file, ours + "\n").map_err(failed(&file))
                } else {
                    Err(ClaimError::Foreign { dir })
                }
            }
            Err(error) => Err(failed(&file)(error)),
        }
    }
}

/// References over results, with times; errors are in capitals, as scoring tools write them.
fn show_examples(evaluation: &Evaluation, utterances: &[Utterance], chosen: &[usize], out: &Printer) -> io::Result<()> {
    for at in chosen {
        let (answer, transcript) = (&evaluation.answers[*at], &evaluation.transcripts[*at]);
        let sentence = utterances.iter().find(|u| u.id == answer.id).map_or("", |u| u.sentence.as_str());
        out.line(format_args!("{} ({:.2} s): {sentence}", answer.id, transcript.duration_s))?;
        let system = &evaluation.rate().system;
        let Some(scored) = system.utterances().find(|utterance| utterance.sequence == *at) else { continue };
        let tokens = transcript.segments.iter().flat_map(|segment| &segment.tokens);
        let columns = columns(&scored.alignment.pairs, tokens.map(|token| token.start_s));
        blocks(&columns).iter().try_for_each(|line| out.line(line))?;
        out.line("")?;
    }
    Ok(())
}

/// A reference label, what was recognised, and its start.
type Column = [String; 3];

fn columns(pairs: &[Pair], mut starts_s: impl Iterator<Item = f64>) -> Vec<Column> {
    let spell = |word: Option<&Word>, is_right: bool| match word {
        None => "***".to_owned(),
        Some(word) if is_right => String::from_utf8_lossy(&word.text).into_owned(),
        Some(word) => String::from_utf8_lossy(&word.text).to_uppercase(),
    };
    let column = |pair: &Pair| {
        let is_right = pair.verdict == Verdict::Correct;
        let start_s = pair.hypothesis.as_ref().and_then(|_| starts_s.next());
        let time = start_s.map_or_else(String::new, |start_s| format!("{start_s:.2}"));
        [spell(pair.reference.as_ref(), is_right), spell(pair.hypothesis.as_ref(), is_right), time]
    };
    pairs.iter().map(column).collect()
}

/// Three rows, broken at the width of a line.
fn blocks(columns: &[Column]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rows = [const { String::new() }; 3];
    let mut flush = |rows: &mut [String; 3]| {
        for (name, row) in ["ref", "hyp", "at"].iter().zip(rows) {
            lines.push(format!("  {name:<6} {}", row.trim_end()));
            row.clear();
        }
    };
    for column in columns {
        let width = column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 1;
        if WIDTH < rows[0].chars().count() + width {
            flush(&mut rows);
        }
        for (row, cell) in rows.iter_mut().zip(column) {
            let _ = write!(row, "{cell:<width$}");
        }
    }
    if !rows[0].is_empty() {
        flush(&mut rows);
    }
    lines
}

/// At some times: the most probable class, and the one with the largest sum of couplings.
fn show_routing(analysis: &Analysis, out: &Printer) -> io::Result<()> {
    let Some(routes) = analysis.models.first() else { return Ok(()) };
    let name = |class: usize| routes.classes[class].as_str();
    out.line(format_args!("    time  ref    most probable    most coupled, share of all couplings"))?;
    for time_s in analysis.choose_times(N_TIMES) {
        let slice = routes.slice_at(time_s);
        let (probable, coupled) = (routes.most_probable()[slice], routes.most_coupled()[slice]);
        let masses = routes.masses_at(slice);
        let share = masses[coupled] / masses.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let probability = format!("{:.2}", routes.probabilities_at(slice)[probable]);
        let bar = "#".repeat((share * BAR_WIDTH).round() as usize);
        out.line(format_args!(
            "  {time_s:>4.2} s  {:<6} {:<8} {probability:<7} {:<8} {:>4.1} % {bar}",
            analysis.reference_at(time_s).unwrap_or("-"),
            name(probable),
            name(coupled),
            100.0 * share,
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Settings = Settings { seed: 1, hours: 0.1, n_speakers: 3, n_epochs: None };

    #[test]
    fn a_demo_goes_on_in_its_own_directory_only() {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        let at = dir.path().join("demo");
        ONE.claim(&at).expect("it is new");
        ONE.claim(&at).expect("it is the same demo");
        let other = Settings { seed: 2, ..ONE }.claim(&at);
        assert!(matches!(other, Err(ClaimError::Other { .. })), "{other:?}");
        let above = ONE.claim(dir.path());
        assert!(matches!(above, Err(ClaimError::Foreign { .. })), "{above:?}");
    }

    fn pair(reference: Option<&str>, hypothesis: Option<&str>, verdict: Verdict) -> Pair {
        let word = |text: &str| Word::new(text.as_bytes());
        Pair { reference: reference.map(word), hypothesis: hypothesis.map(word), verdict }
    }

    #[test]
    fn results_are_below_the_reference_with_their_times() {
        let pairs = [
            pair(Some("sil"), Some("sil"), Verdict::Correct),
            pair(Some("dh"), Some("d"), Verdict::Substitution),
            pair(Some("ah"), None, Verdict::Deletion),
            pair(None, Some("n"), Verdict::Insertion),
        ];
        let columns = columns(&pairs, [0.0, 0.12, 0.34].into_iter());
        let expected = ["  ref    sil  DH   AH  ***", "  hyp    sil  D    *** N", "  at     0.00 0.12     0.34"];
        assert_eq!(blocks(&columns), expected);
    }

    #[test]
    fn lines_end_before_the_screen_does() {
        let columns: Vec<Column> = (0..100).map(|k| [format!("p{k}"), "q".to_owned(), "0.00".to_owned()]).collect();
        let lines = blocks(&columns);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH + 9));
        assert_eq!(lines.iter().flat_map(|line| line.split_whitespace()).filter(|cell| *cell == "q").count(), 100);
    }
}
