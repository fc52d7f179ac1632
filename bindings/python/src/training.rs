//! Training, with events as they happen and Ctrl-C as the command has it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use pyo3::prelude::*;
use serde_json::{Value, json};
use srf::directory;
use srf_model::config::{Override, Recipe};
use srf_train::corpus::Watcher;
use srf_train::events::{Machine, Record};
use srf_train::trainer::prepared::Prepared;
use srf_train::trainer::{
    Figures, Outcome, TrainJob, TrainWatcher, in_epochs, is_run_or_empty, set_run_aside, train as run,
};

use crate::errors::raise;
use crate::interrupt::interruptible;

/// The names of the recipes inside the package.
#[pyfunction]
pub(crate) fn recipes() -> Vec<&'static str> {
    srf_train::recipes::ALL.iter().map(|(name, _)| *name).collect()
}

/// What `srf.train` was called with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    recipe: PathBuf,
    data: Vec<PathBuf>,
    out: PathBuf,
    changes: Vec<(String, String)>,
    epochs: Option<usize>,
    start_from: Option<PathBuf>,
    restart: bool,
    save_every_minutes: f64,
    cache_gib: f64,
    command: Vec<String>,
}

/// Trains; the result is JSON. `on_event` is called with the JSON of each event.
#[pyfunction]
pub(crate) fn train(py: Python<'_>, arguments: Arguments, on_event: Option<Py<PyAny>>) -> PyResult<String> {
    let stop = AtomicBool::new(false);
    let watcher = Events { on_event, stop: &stop, failure: Mutex::new(None) };
    let (outcome, interrupt) = interruptible(py, &stop, || arguments.run(&watcher, &stop));
    let failure = watcher.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = outcome.map_err(raise)?;
    let Some(raised) = failure.or(interrupt) else { return Ok(summary(&outcome).to_string()) };
    if let Outcome::Interrupted { checkpoint } = &outcome {
        let note = format!("stopped; saved `{}`: the same call resumes", checkpoint.display());
        raised.value(py).setattr("__notes__", [note])?;
    }
    Err(raised)
}

fn summary(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Finished { model, dev, n_left_out } => {
            json!({ "model": model, "dev": dev, "left_out": n_left_out })
        }
        Outcome::Interrupted { checkpoint } => json!({ "checkpoint": checkpoint }),
    }
}

impl Arguments {
    fn run(self, watcher: &Events<'_>, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        let data = Prepared::load_all(&self.data)?;
        data.problems.iter().for_each(|problem| watcher.remark(&problem.to_string()));
        let minutes = self.save_every_minutes;
        let job = TrainJob {
            recipe: self.recipe(data.labels.n_classes())?,
            recipe_name: self.recipe.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            data: Arc::new(data),
            run: self.out,
            from: self.start_from.map(|path| directory::resolve(&path)),
            command: self.command,
            machine: Machine::this(srf_kernels::isa()?),
            save_every: Duration::try_from_secs_f64(60.0 * minutes)
                .with_context(|| format!("save_every_minutes is {minutes}"))?,
            max_cache_bytes: (self.cache_gib.max(0.0) * f64::from(1 << 30)) as u64,
        };
        let shown = job.run.display();
        ensure!(
            is_run_or_empty(&job.run),
            "`out` is for a new folder or the run to resume: `{shown}` holds other files"
        );
        if self.restart
            && let Some(old) = set_run_aside(&job.run)?
        {
            watcher.remark(&format!("the earlier training is in `{}`", old.display()));
        }
        Ok(run(&job, watcher, stop)?)
    }

    /// The recipe file, or the bundled recipe of that name, with all changes.
    fn recipe(&self, n_classes: usize) -> anyhow::Result<Recipe> {
        let change = |(key, value): &(String, String)| Override { key: key.clone(), value: value.clone() };
        let changes: Vec<Override> = self.changes.iter().map(change).collect();
        let mut recipe = match bundled(&self.recipe) {
            Some(text) => Recipe::parse_with(text, &self.recipe, &changes, n_classes)?,
            None => Recipe::load_with(&self.recipe, &changes, n_classes)?,
        };
        if let (Some(n_epochs), Some(training)) = (self.epochs, &mut recipe.training) {
            ensure!(0 < n_epochs, "epochs is 0, expected at least 1");
            *training = in_epochs(training, n_epochs);
            training.validate()?;
        }
        Ok(recipe)
    }
}

fn bundled(path: &Path) -> Option<&'static str> {
    if path.exists() {
        return None;
    }
    srf_train::recipes::text(path.to_str()?.trim_start_matches("recipes/").trim_end_matches(".toml"))
}

/// Hands events to Python; the first exception of the callback stops the training.
struct Events<'a> {
    on_event: Option<Py<PyAny>>,
    stop: &'a AtomicBool,
    failure: Mutex<Option<PyErr>>,
}

impl Events<'_> {
    fn send(&self, event: impl FnOnce() -> Value) {
        let Some(on_event) = &self.on_event else { return };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = Python::attach(|py| on_event.call1(py, (event().to_string(),)).err());
            self.stop.fetch_or(failure.is_some(), Ordering::Relaxed);
        }
    }
}

impl Watcher for Events<'_> {
    fn begin(&self, _what: &'static str, _n_steps: usize) {}
    fn advance(&self) {}
}

impl TrainWatcher for Events<'_> {
    fn record(&self, record: &Record) {
        self.send(|| serde_json::to_value(record).unwrap_or_default());
    }

    fn remark(&self, text: &str) {
        self.send(|| json!({ "event": "remark", "text": text }));
    }

    fn step(&self, figures: &Figures) {
        let Figures { epoch, n_epochs, loss, error_rate, rate, frames_per_s, left_s } = figures;
        self.send(|| {
            json!({
                "event": "step", "epoch": epoch, "n_epochs": n_epochs, "loss": loss, "error_rate": error_rate,
                "learning_rate": rate, "frames_per_s": frames_per_s, "left_s": left_s,
            })
        });
    }
}
