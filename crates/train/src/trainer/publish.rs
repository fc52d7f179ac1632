//! The finished model: parameters in, a model directory with its card out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use model::config::Recipe;
use model::params::Params;
use model::weights;

use super::TrainJob;
use super::checkpoint::{Head, State};
use super::error::TrainError;
use super::run_dir::RunDirError;
use crate::events::Measured;

/// Writes the model directory `dir`.
pub(super) fn write(
    dir: &Path,
    job: &TrainJob,
    params: &Params<f32>,
    head: &Head,
    state: &State,
    dev: Option<&Measured>,
) -> Result<(), TrainError> {
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(RunDirError::write(&path))
    };
    fs::create_dir_all(dir).map_err(RunDirError::write(dir))?;
    let recipe = Recipe { training: None, ..job.recipe.clone() };
    weights::save(&dir.join("weights.safetensors"), &recipe.model, params)?;
    write("config.toml", &recipe.format())?;
    write("labels.txt", &head.labels)?;
    write("card.md", &card(job, head, state, dev))?;
    Ok(())
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
        job.data.path.display(),
        job.data.train.len(),
        head.data_fingerprint
    );
    let _ = writeln!(card, "- command: `{}`", job.command.join(" "));
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
