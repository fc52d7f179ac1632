//! `srf reproduce`: a table of the paper with our figures next to the paper's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use srf_text::decode::{DecoderConfig, Search};
use srf_train::reproduce::paper::TABLES;
use srf_train::reproduce::results::Paths;
use srf_train::reproduce::settings::{Budget, RowChange, Settings};
use srf_train::reproduce::{Job, Outcome, Table, cut_for_smoke, load_parts, smoke_corpus};
use srf_train::trainer::prepared::Prepared;

use super::thread_pool;
use super::train::screen::Screen;
use super::train::{machine, stop_on_signal};
use crate::Exit;
use crate::printer::Printer;

/// The paper's beam.
const BEAM: usize = 100;
/// With untrained networks a wide beam takes long.
const SMOKE_BEAM: usize = 4;
const MAX_BEAM: usize = 10_000;
const MAX_SEEDS: u64 = 1000;

/// Make a table of the paper: train, measure, and check its claims
///
/// Trains every row from its recipe with the labels of the corpus, evaluates it on dev and test, and writes OUT/TABLE.md,
/// .json and .html: the paper's figures, ours with 95 % intervals, parameters, look-ahead, delay and time, and a verdict
/// on each claim of the paper. Nothing is done twice; the same command continues where it was stopped.
#[derive(clap::Args)]
#[command(after_help = "\
Tables: routing (1), windows (2), depth (3), architectures (4), times (5) for corpora of phones; wsj (6),
wsj-times (7) for characters or words; distance (8), from the runs of `routing`.
OUT/ROW/seed-N are runs as `srf train` makes them: `srf runs` and `srf analyze` work on them. Tables that
have rows in common (architectures and times, routing and distance) share them in one OUT.
KEY=VALUE changes the recipes of all rows, ROW:KEY=VALUE those of one row (`tf-*`: of all rows that start with `tf-`).
`--epochs` and `--minutes` compress the schedule: the learning rate takes the same course in less time.

Examples:
  srf reproduce routing --data data/timit --seeds 5
  srf reproduce architectures --data corpus --minutes 60 --out tables
  srf reproduce 3 --data corpus --epochs 20 --rows depth-2,depth-16 features.cmvn=online
  srf reproduce windows --smoke          # all steps in a minute; the figures are meaningless")]
pub(crate) struct Args {
    /// Name or number of the table
    #[arg(value_parser = tables())]
    table: &'static Table,

    /// Changes to the recipes: `training.batch_frames=3000`, `tf-5l:training.clip_norm=5`
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<RowChange>,

    /// A folder that `srf prepare` made
    #[arg(long, value_name = "DIR", required_unless_present = "smoke")]
    data: Option<PathBuf>,

    /// Directory of runs and tables [default: reproduce, or reproduce-smoke with --smoke]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Train every row with the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: u64,

    /// Only these rows, by the names of their recipes
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<String>,

    /// Train every row for this many epochs
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,

    /// Train every row for about this long: a few batches are timed first, and no row gets more epochs than its recipe has
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,

    /// Width of the beam; 0 is greedy decoding [default: 100]
    #[arg(long, value_name = "N")]
    beam: Option<usize>,

    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Smoke test with tiny networks on a little speech: the figures mean nothing
    #[arg(long)]
    smoke: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Parses names and numbers of tables, with suggestions for misspelt ones.
fn tables() -> impl TypedValueParser<Value = &'static Table> {
    let values = TABLES.iter().map(|table| PossibleValue::new(&*table.name).alias(&*table.number).help(&*table.title));
    PossibleValuesParser::new(values)
        .map(|name| Table::find(&name).expect("only names and numbers of tables are accepted"))
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { table, changes, data, out: dir, seeds, rows, epochs, minutes, beam, threads, smoke, json } = args;
    let dir = dir.unwrap_or_else(|| PathBuf::from(if smoke { "reproduce-smoke" } else { "reproduce" }));
    let budget = budget(epochs, minutes)?;
    let decoder = decoder(beam.unwrap_or(if smoke { SMOKE_BEAM } else { BEAM }))?;
    let rows = table.rows_named(&rows)?;
    thread_pool(threads)?.install(|| {
        let screen = Screen::new(out);
        let corpus = Corpus::load(data.as_deref(), &dir, table, smoke, &screen)?;
        corpus.data.problems.iter().chain(&corpus.problems).for_each(|problem| out.problem(problem));
        let n_problems = corpus.data.problems.len() + corpus.problems.len();
        let job = Job {
            table,
            rows,
            settings: Settings { n_classes: corpus.data.labels.n_classes(), changes, is_smoke: smoke },
            data: Arc::new(corpus.data),
            parts: corpus.parts,
            n_seeds: seeds,
            budget,
            decoder,
            paths: Paths { out: dir },
            command: std::env::args().collect(),
            machine: machine(),
        };
        let stop = stop_on_signal()?;
        let outcome = job.run(&screen, &stop);
        screen.finish();
        print_outcome(outcome?, n_problems, &job.paths.out, json, out)
    })
}

fn budget(epochs: Option<u32>, minutes: Option<f64>) -> anyhow::Result<Budget> {
    match (epochs, minutes) {
        (Some(epochs), _) => Ok(Budget::Epochs(epochs as usize)),
        (None, Some(minutes)) => {
            ensure!(0.0 < minutes && minutes.is_finite(), "`--minutes {minutes}` is not a time to train");
            Ok(Budget::Minutes(minutes))
        }
        (None, None) => Ok(Budget::Recipe),
    }
}

fn decoder(beam: usize) -> anyhow::Result<DecoderConfig> {
    ensure!(beam <= MAX_BEAM, "`--beam {beam}` is too wide, expected at most {MAX_BEAM}");
    let search = if beam == 0 { Search::Greedy } else { Search::Beam { width: beam } };
    Ok(DecoderConfig { search, ..DecoderConfig::default() })
}

/// The data for training and evaluation.
struct Corpus {
    data: Prepared,
    parts: Vec<srf_train::reproduce::Part>,
    problems: Vec<srf_train::corpus::Problem>,
}

impl Corpus {
    /// The prepared corpus; for a smoke test a little of it, or a synthetic one.
    fn load(data: Option<&Path>, out: &Path, table: &Table, is_smoke: bool, screen: &Screen) -> anyhow::Result<Self> {
        let made = || out.join(if table.phones { "corpus-phones" } else { "corpus-chars" });
        let path = data.map_or_else(made, Path::to_owned);
        if data.is_none() {
            smoke_corpus(table, &path, screen).context("could not make the corpus")?;
        }
        let mut data = Prepared::load(&path)?;
        let (mut parts, problems) = load_parts(&path);
        if is_smoke {
            cut_for_smoke(&mut data, &mut parts);
        }
        Ok(Self { data, parts, problems })
    }
}

fn print_outcome(outcome: Outcome, n_problems: usize, dir: &Path, json: bool, out: &Printer) -> anyhow::Result<Exit> {
    let Outcome::Finished { report, n_problems: n_more } = outcome else {
        out.note("stopped; the same command continues from here");
        return Ok(Exit::Problems);
    };
    if json {
        out.line(serde_json::to_string(&report)?)?;
    } else {
        out.bytes(report.markdown().as_bytes())?;
    }
    out.note(format_args!("wrote `{}` (.md, .json, .html)", dir.join(report.table).display()));
    Ok(if n_problems + n_more == 0 { Exit::Done } else { Exit::Problems })
}
