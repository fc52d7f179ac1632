//! `srf train`: trains a model from a recipe and a prepared corpus.

pub(super) mod screen;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use srf_model::config::{Override, Recipe};
use srf_train::events::Machine;
use srf_train::trainer::prepared::Prepared;
use srf_train::trainer::{Outcome, TrainJob, train};

use self::screen::Screen;
use super::models::bundled_recipe;
use super::models::model_directory;
use crate::Exit;
use crate::printer::Printer;

/// Train a model on a prepared corpus
///
/// RUN gets the model (RUN/model), checkpoints, the log and the recipe as it was used. The same command goes on where
/// a stopped or killed training was, and ends in the same bytes as one that never stopped. Ctrl-C finishes the step,
/// saves and says how to go on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf prepare builtin corpus --hours 2
  srf train recipes/builtin/phones.toml --data corpus --out run
  srf train recipes/builtin/phones.toml --data corpus --out fast training.epochs=3 model.layers=2
  srf train own/srf --data mine --out tuned --from run/model 'training.schedule={constant={rate=1e-4}}'")]
pub(crate) struct Args {
    /// The recipe: a TOML file, or a name (see `srf recipes`)
    recipe: PathBuf,

    /// Changes to the recipe: `training.epochs=20`, `features.cmvn=online`
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<Override>,

    /// A folder that `srf prepare` made; give several with the same labels to train on all of them
    #[arg(long, value_name = "DIR", required = true)]
    data: Vec<PathBuf>,

    /// The run directory
    #[arg(long, short, value_name = "RUN")]
    out: PathBuf,

    /// Start from this model directory or run; with other labels, the class capsules are made anew
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,

    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Minutes from one checkpoint to the next; one is written after each epoch besides
    #[arg(long, value_name = "MINUTES", default_value_t = 3.0)]
    save_every: f64,

    /// The most memory for features, in GiB; beyond it they are computed again in each epoch
    #[arg(long, value_name = "GIB", default_value_t = 6.0)]
    cache: f64,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { recipe: recipe_path, changes, data, out: run, from, threads, save_every, cache } = args;
    if let Some(n_threads) = threads {
        rayon::ThreadPoolBuilder::new().num_threads(n_threads).build_global().context("threads")?;
    }
    let data = Prepared::load_all(&data)?;
    data.problems.iter().for_each(|problem| out.problem(problem));
    let n_problems = data.problems.len();
    let job = TrainJob {
        recipe: load_recipe(&recipe_path, &changes, data.labels.n_classes())?,
        recipe_name: recipe_path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        data: Arc::new(data),
        run,
        from: from.map(model_directory).transpose()?,
        command: std::env::args().collect(),
        machine: machine(),
        save_every: minutes(save_every)?,
        max_cache_bytes: (cache.max(0.0) * f64::from(1 << 30)) as u64,
    };
    let outcome = watch(&job, out)?;
    let is_clean = matches!(outcome, Outcome::Finished { n_left_out: 0, .. }) && n_problems == 0;
    Ok(if is_clean { Exit::Done } else { Exit::Problems })
}

/// Reads a recipe file, or the bundled recipe of that name, and changes it.
fn load_recipe(path: &Path, changes: &[Override], n_classes: usize) -> anyhow::Result<Recipe> {
    Ok(match bundled_recipe(path) {
        Some(text) => Recipe::parse_with(text, path, changes, n_classes)?,
        None => Recipe::load_with(path, changes, n_classes)?,
    })
}

/// Trains behind a bar until the end or until Ctrl-C, and tells how it ended.
pub(super) fn watch(job: &TrainJob, out: &Printer) -> anyhow::Result<Outcome> {
    let stop = stop_on_signal()?;
    let screen = Screen::new(out);
    let outcome = train(job, &screen, &stop);
    screen.finish();
    let outcome = outcome?;
    tell(&outcome, out);
    Ok(outcome)
}

fn minutes(minutes: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(60.0 * minutes).with_context(|| format!("`--save-every {minutes}`"))
}

/// Set by Ctrl-C and by a request to end; the second Ctrl-C ends the process at once.
pub(super) fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::abort();
        }
    })
    .context("could not listen for Ctrl-C")?;
    Ok(stop)
}

fn tell(outcome: &Outcome, out: &Printer) {
    match outcome {
        Outcome::Interrupted { checkpoint } => {
            out.note(format_args!("stopped; saved `{}`", checkpoint.display()));
            out.note("give the same command again to go on from there");
        }
        Outcome::Finished { model, dev, n_left_out } => {
            if *n_left_out > 0 {
                out.problem(format_args!("{n_left_out} utterances or batches were left out, see above and the log"));
            }
            if let Some((errors, rate)) =
                dev.as_ref().and_then(|dev| dev.errors.as_ref()?.rate().map(|rate| (dev, rate)))
            {
                let measure = errors.errors.as_ref().map_or("", |errors| errors.measure.as_str());
                out.note(format_args!("dev: loss {:.3}, {measure} {:.2} %", errors.loss, 100.0 * rate));
            }
            out.note(format_args!("the model is in `{}`", model.display()));
        }
    }
}

pub(super) fn machine() -> Machine {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let memory = read("/proc/meminfo");
    let memory_kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    Machine {
        processor: processor.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
        n_threads: rayon::current_num_threads(),
        memory_gib: memory_kib.and_then(|kib| kib.parse().ok()).unwrap_or(0.0) / f64::from(1 << 20),
        system: std::env::consts::OS.to_owned(),
        kernels: <f32 as srf_kernels::Element>::kernels().name.to_owned(),
    }
}
