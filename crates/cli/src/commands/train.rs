//! `srf train`: trains a model from a recipe and prepared corpora.

pub(super) mod screen;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use rayon::prelude::*;
use srf_model::config::{Override, Recipe};
use srf_train::events::Machine;
use srf_train::trainer::prepared::Prepared;
use srf_train::trainer::{Outcome, TrainJob, in_epochs, is_run_or_empty, set_run_aside, train};

use self::screen::Screen;
use super::models::{bundled_recipe, model_directory};
use super::recordings;
use crate::Exit;
use crate::printer::Printer;

/// Train a model on a prepared corpus
///
/// RUN gets the model (RUN/model), checkpoints, the log and the recipe as it was used. The same command resumes a
/// stopped or killed run and ends with the same bytes as an uninterrupted one. Ctrl-C finishes the step and saves.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf prepare builtin corpus --hours 2
  srf train recipes/builtin/phones.toml --data corpus --out run
  srf train recipes/builtin/phones.toml --data corpus --out fast --epochs 3 model.layers=2
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

    /// Train for this many epochs: warm-up and decay of the learning rate are stretched with them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,

    /// Start from the beginning; what RUN holds of an earlier run is moved to RUN/old-N
    #[arg(long)]
    restart: bool,

    /// Write into RUN even if it holds other files
    #[arg(long)]
    force: bool,

    /// Start from this model directory or run; with other labels, the class capsules are initialised from scratch
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,

    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Minutes between checkpoints; one is also written after each epoch
    #[arg(long, value_name = "MINUTES", default_value_t = 3.0)]
    save_every: f64,

    /// Minutes after which a line is printed even within an epoch, where no progress bar is shown
    #[arg(long, value_name = "MINUTES", default_value_t = 1.0)]
    log_every: f64,

    /// Memory for cached features, in GiB; what does not fit is computed again in each epoch
    #[arg(long, value_name = "GIB", default_value_t = 6.0)]
    cache: f64,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { recipe: recipe_path, changes, data, out: run, epochs, restart, from, threads, .. } = args;
    if let Some(n_threads) = threads {
        rayon::ThreadPoolBuilder::new().num_threads(n_threads).build_global().context("threads")?;
    }
    let data = Prepared::load_all(&data)?;
    data.problems.iter().for_each(|problem| out.problem(problem));
    let n_problems = data.problems.len();
    let job = TrainJob {
        recipe: recipe(&recipe_path, changes, epochs, data.labels.n_classes(), out)?,
        recipe_name: recipe_path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        data: Arc::new(data),
        run,
        from: from.map(model_directory).transpose()?,
        command: std::env::args().collect(),
        machine: machine(),
        save_every: minutes("--save-every", args.save_every)?,
        max_cache_bytes: (args.cache.max(0.0) * f64::from(1 << 30)) as u64,
    };
    let screen = Screen::new(out).with_line_every(minutes("--log-every", args.log_every)?);
    if !args.force && !is_run_or_empty(&job.run) {
        let refused = anyhow!("`{}` holds files that no training wrote", job.run.display());
        return Err(
            refused.context("`--out` is for a new folder or the run to resume (`--force` writes next to files)")
        );
    }
    if restart && let Some(old) = set_run_aside(&job.run)? {
        out.note(format_args!("the earlier training is in `{}`", old.display()));
    }
    note_low_rates(&job, out);
    let outcome = watch(&job, &screen, out)?;
    let is_clean = matches!(outcome, Outcome::Finished { n_left_out: 0, .. }) && n_problems == 0;
    Ok(if is_clean { Exit::Done } else { Exit::Problems })
}

/// Says how many recordings have a lower sample rate than the features are computed at.
fn note_low_rates(job: &TrainJob, out: &Printer) {
    let paths: BTreeSet<&Path> = job.data.train.iter().chain(&job.data.dev).map(|u| u.audio.path.as_path()).collect();
    let rate_hz = job.recipe.features.sample_rate_hz;
    let is_low = |path: &&&Path| srf_audio::probe(path).is_ok_and(|info| info.rate_hz < rate_hz);
    recordings::note_low_rate(paths.par_iter().filter(is_low).count(), rate_hz, out);
}

/// The recipe with all changes.
fn recipe(
    path: &Path,
    mut changes: Vec<Override>,
    epochs: Option<u32>,
    n_classes: usize,
    out: &Printer,
) -> anyhow::Result<Recipe> {
    let is_of = |change: &Override, key: &str| change.key == key;
    let fewer = changes.iter().find(|change| is_of(change, "training.epochs")).map(|change| change.value.clone());
    ensure!(fewer.is_none() || epochs.is_none(), "`--epochs` and `training.epochs` were both given");
    let averages = changes.iter().any(|change| is_of(change, "training.average_epochs"));
    if let Some(n_epochs) = fewer.and_then(|value| value.parse::<usize>().ok()).filter(|_| !averages) {
        let others = changes.iter().filter(|change| !is_of(change, "training.epochs")).cloned().collect::<Vec<_>>();
        let training = load_recipe(path, &others, n_classes)?.training;
        let average = training.map_or(1, |training| training.average_epochs);
        if 0 < n_epochs && n_epochs < average {
            out.note(format_args!("the model will be the mean of {n_epochs} epochs, not {average}: there are no more"));
            changes.push(Override { key: "training.average_epochs".to_owned(), value: n_epochs.to_string() });
        }
    }
    let mut recipe = load_recipe(path, &changes, n_classes)?;
    if let (Some(n_epochs), Some(training)) = (epochs, &mut recipe.training) {
        *training = in_epochs(training, n_epochs as usize);
        training.validate()?;
    }
    Ok(recipe)
}

/// Reads a recipe file, or the bundled recipe of that name, and changes it.
fn load_recipe(path: &Path, changes: &[Override], n_classes: usize) -> anyhow::Result<Recipe> {
    Ok(match bundled_recipe(path) {
        Some(text) => Recipe::parse_with(text, path, changes, n_classes)?,
        None => Recipe::load_with(path, changes, n_classes)?,
    })
}

/// Trains with a progress bar until the end or until Ctrl-C, and prints how it ended.
pub(super) fn watch(job: &TrainJob, screen: &Screen<'_>, out: &Printer) -> anyhow::Result<Outcome> {
    let stop = stop_on_signal()?;
    let outcome = train(job, screen, &stop);
    screen.finish();
    let outcome = outcome?;
    print_outcome(&outcome, out);
    Ok(outcome)
}

fn minutes(option: &str, minutes: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(60.0 * minutes).with_context(|| format!("`{option} {minutes}`"))
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

fn print_outcome(outcome: &Outcome, out: &Printer) {
    match outcome {
        Outcome::Interrupted { checkpoint } => {
            out.note(format_args!("stopped; saved `{}`", checkpoint.display()));
            out.note("give the same command again to resume");
        }
        Outcome::Finished { model, dev, n_left_out } => {
            if *n_left_out > 0 {
                out.problem(format_args!("{n_left_out} utterances or batches were left out, see above and the log"));
            }
            if let Some(dev) = dev {
                out.note(format_args!("dev, {} utterances: loss {}", dev.n_utterances, screen::measured(dev)));
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
