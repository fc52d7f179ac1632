//! Validation and the finished model: loss and errors on `dev`, the model directory and its card.
//!
//! The loss is that of the network; errors are those of the recogniser that users have.

use std::fmt::Write as _;
use std::path::Path;

use srf::Recognizer;
use srf::directory::{self, ModelParts};
use srf_audio::features::cmvn::CmvnStats;
use srf_base::shell::command_line;
use srf_model::config::TrainingConfig;
use srf_model::frames::Frames;
use srf_model::network::Mode;
use srf_text::label_timing::LabelTiming;

use super::checkpoint::{Head, State};
use super::data::{Data, UnreadableError};
use super::training_loop::Learner;
use super::{TrainError, TrainJob};
use crate::corpus::{Utterance, Watcher};
use crate::evaluate::scoring::compared;
use crate::evaluate::{EvaluateOptions, Rate, evaluate};
use crate::events::{ErrorCounts, Example, LayerHealth, Measured};
use crate::timing;

/// Utterances that are shown, and that the health of capsules is measured on.
const N_EXAMPLES: usize = 5;

/// What the recogniser writes for some utterances.
pub(super) struct Recognized {
    pub(super) n_utterances: usize,
    /// By every measure of the units: WER and CER for characters.
    pub(super) errors: Vec<ErrorCounts>,
    pub(super) examples: Vec<Example>,
    /// Of each capsule layer.
    pub(super) health: Vec<LayerHealth>,
}

/// The mean loss of an utterance of `dev`, and how many have one.
pub(super) fn dev_loss(learner: &mut Learner, data: &Data) -> Result<(f64, usize), UnreadableError> {
    let Data { dev, buckets, .. } = data;
    let mut extractor = dev.front_end.extractor();
    let mut x = Frames::new(dev.front_end.n_dims(), learner.net.margin());
    let (mut sum, mut n) = (0.0, 0);
    for members in buckets.in_order(&dev.lengths()) {
        let batch = dev.batch(&members, None, &mut extractor, x)?;
        let (loss_sum, n_losses) = learner.loss(dev, &batch, Mode::default());
        sum += loss_sum;
        n += n_losses as usize;
        x = batch.x;
    }
    Ok((sum / n.max(1) as f64, n))
}

/// Recognises `n` of the utterances, taken evenly from the list; `None` where the model cannot be used.
pub(super) fn recognize(
    parts: ModelParts,
    utterances: &[Utterance],
    n: usize,
    watcher: &dyn Watcher,
) -> Option<Recognized> {
    let chosen = evenly(utterances, n);
    if chosen.is_empty() {
        return None;
    }
    let recognizer = Recognizer::from_parts(parts).ok()?;
    let evaluation = evaluate(&recognizer, &chosen, &EvaluateOptions::default(), watcher);
    let rate = evaluation.rate();
    let example = |answer| {
        let [reference, hypothesis] = compared(answer, rate.measure, None);
        Example { id: answer.id.clone(), reference, hypothesis }
    };
    let examples = evaluation.answers.iter().take(N_EXAMPLES).map(example).collect();
    let few: Vec<_> = evenly(&chosen, N_EXAMPLES).iter().map(Utterance::to_be_heard).collect();
    let health = recognizer.health(&few).iter().map(LayerHealth::from).collect();
    let n_utterances = evaluation.answers.len();
    Some(Recognized { n_utterances, errors: evaluation.rates.iter().map(Rate::errors).collect(), examples, health })
}

/// At most `n`, from the whole list: manifests are sorted by speaker.
fn evenly(utterances: &[Utterance], n: usize) -> Vec<Utterance> {
    let n = n.min(utterances.len());
    (0..n).map(|at| utterances[at * utterances.len() / n].clone()).collect()
}

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
    let _ = writeln!(card, "- command: `{}`", command_line(&job.command));
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
        for errors in dev.errors.iter().chain(&dev.other_errors) {
            let Some(rate) = errors.rate() else { continue };
            let (measure, n_errors, n_reference) = (&errors.measure, errors.n_errors(), errors.n_reference);
            let _ = write!(card, ", {measure} {:.2} % ({n_errors} of {n_reference})", 100.0 * rate);
        }
        card.push('\n');
    }
    card
}

/// `run.json`: what a run was started with.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_spans_the_list_without_repeats() {
        let all: Vec<Utterance> = (0..10).map(|n| Utterance { id: n.to_string(), ..Utterance::default() }).collect();
        let ids = |n| evenly(&all, n).into_iter().map(|utterance| utterance.id).collect::<Vec<_>>().concat();
        assert_eq!([ids(0), ids(1), ids(4), ids(10), ids(99)], ["", "0", "0257", "0123456789", "0123456789"]);
    }
}
