//! The finished model: parameters in, a model directory with its card out.

use std::fmt::Write as _;
use std::path::Path;

use srf::Recognizer;
use srf::directory::{self, ModelParts};
use srf_audio::features::cmvn::CmvnStats;
use srf_model::config::TrainingConfig;
use srf_text::label_timing::LabelTiming;

use super::TrainJob;
use super::checkpoint::{Head, State};
use super::error::TrainError;
use crate::corpus::Watcher;
use crate::events::Measured;
use crate::timing;

/// Everything that a model directory holds.
pub(super) fn parts(job: &TrainJob, values: Vec<f32>, head: &Head, card: String) -> ModelParts {
    ModelParts {
        model: job.recipe.model.clone(),
        features: job.recipe.features.clone(),
        labels: job.data.labels.clone(),
        cmvn: head.cmvn.as_deref().and_then(CmvnStats::from_kaldi),
        label_timing: LabelTiming::default(),
        values,
        card,
    }
}

/// Writes the model directory `dir`.
pub(super) fn write(
    dir: &Path,
    job: &TrainJob,
    values: Vec<f32>,
    head: &Head,
    state: &State,
    dev: Option<&Measured>,
    watcher: &dyn Watcher,
) -> Result<(), TrainError> {
    let parts = parts(job, values, head, card(job, head, state, dev));
    let recognizer = Recognizer::from_parts(parts.clone()).ok();
    let label_timing = recognizer.and_then(|recognizer| timing::fit(&recognizer, &job.data.dev, watcher));
    Ok(directory::write(dir, &ModelParts { label_timing: label_timing.unwrap_or_default(), ..parts })?)
}

fn card(job: &TrainJob, head: &Head, state: &State, dev: Option<&Measured>) -> String {
    let mut card = format!("# {}\n\n", job.recipe_name);
    let labels = &job.data.labels;
    let _ = writeln!(
        card,
        "An `{}` network of {} parameters that writes {} ({} classes).\n",
        job.recipe.model.architecture(),
        head.n_values,
        labels.units(),
        labels.n_classes()
    );
    let _ = writeln!(
        card,
        "- data: `{}`, {} utterances, fingerprint {}",
        job.data.names(),
        job.data.train.len(),
        head.data_fingerprint
    );
    let _ = writeln!(card, "- command: `{}`", srf_base::shell::command_line(&job.command));
    if let Some(from) = &job.from {
        let _ = writeln!(card, "- started from: `{}`", from.display());
    }
    let _ = writeln!(
        card,
        "- trained for {} epochs, {} updates; version {}",
        state.epoch - 1,
        state.n_updates,
        env!("CARGO_PKG_VERSION")
    );
    if let Some(dev) = dev {
        let _ = write!(card, "- on {} utterances it was not trained on: loss {:.3}", dev.n_utterances, dev.loss);
        if let Some((errors, rate)) = dev.errors.as_ref().and_then(|errors| Some((errors, errors.rate()?))) {
            let _ = write!(
                card,
                ", {} {:.2} % ({} of {})",
                errors.measure,
                100.0 * rate,
                errors.n_errors(),
                errors.n_reference
            );
        }
        card.push('\n');
    }
    card
}

/// What a run is, for people and programs that come later.
pub(super) fn run_json(job: &TrainJob, training: &TrainingConfig, n_values: usize) -> String {
    let run = serde_json::json!({
        "command": job.command,
        "recipe": job.recipe_name,
        "seed": training.seed,
        "n_parameters": n_values,
        "data": job.data.paths,
        "data_fingerprint": job.data.fingerprint,
        "from": job.from,
        "version": env!("CARGO_PKG_VERSION"),
        "machine": job.machine,
    });
    serde_json::to_string_pretty(&run).expect("plain data has a JSON form") + "\n"
}
