//! `srf info`: size, look-ahead, delay and layers of a recipe or a model; labels, sample rate and card of a model.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use srf::{ModelParts, directory};
use srf_model::config::{FeaturesConfig, Recipe};
use srf_model::summary::{LayerSummary, Summary};
use srf_model::weights;
use srf_train::report::grouped;

use super::models::{load_recipe, model_directory, units_name};
use crate::Exit;
use crate::printer::{Printer, table};

/// Labels printed in full; more are abbreviated.
const MAX_LABELS: usize = 70;

/// Print a summary of a recipe or a model: parameters, look-ahead, delay, layers, labels
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf info recipes/timit/srf-7l.toml
  srf info en-digits
  srf info my-model/
  srf info my-model/weights.safetensors --json")]
pub(crate) struct Args {
    /// A recipe, a model directory or run, a weights file (.safetensors), or the name of a recipe or model
    #[arg(value_name = "RECIPE|MODEL", required_unless_present = "model")]
    path: Option<PathBuf>,

    /// The same as MODEL, as other commands have it
    #[arg(short, long, value_name = "MODEL", conflicts_with = "path", hide = true)]
    model: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// What the summary of a model adds to that of its recipe.
#[derive(Serialize)]
struct ModelSummary {
    units: &'static str,
    labels: Vec<String>,
    rate_hz: u32,
    cmvn: String,
    card: String,
}

#[derive(Serialize)]
struct Info {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    model: Option<ModelSummary>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { path, model, json } = args;
    let (recipe, model) = read(path.or(model).context("no recipe or model was named")?)?;
    let info = Info { summary: recipe.summary(), model };
    if json {
        out.line(serde_json::to_string(&info)?)?;
        return Ok(Exit::Done);
    }
    out.line(heading(&info.summary))?;
    if let Some(model) = &info.model {
        out.line(model_heading(model))?;
    }
    out.line("")?;
    let head = ["layer", "output", "parameters"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(info.summary.layers.iter().map(row)).collect();
    out.line(table(&rows, 2))?;
    if let Some(ModelSummary { card, .. }) = info.model.filter(|model| !model.card.is_empty()) {
        out.line(format_args!("\n{}", card.trim_end()))?;
    }
    Ok(Exit::Done)
}

fn read(path: PathBuf) -> anyhow::Result<(Recipe, Option<ModelSummary>)> {
    let path = model_directory(path)?;
    if path.is_dir() {
        return read_directory(&path);
    }
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        return Ok((read_weights(&path)?, None));
    }
    Ok((load_recipe(&path)?, None))
}

/// The model of a weights file, with default features, which the file does not describe.
fn read_weights(path: &Path) -> anyhow::Result<Recipe> {
    let (model, _) = weights::load(path)?;
    let recipe = Recipe { model, features: FeaturesConfig::default(), training: None };
    recipe.validate().with_context(|| format!("`{}` was made for other features", path.display()))?;
    Ok(recipe)
}

/// The configuration of a model directory, checked against its weights, and its labels if it has any.
fn read_directory(dir: &Path) -> anyhow::Result<(Recipe, Option<ModelSummary>)> {
    let (config, weights) = (dir.join("config.toml"), dir.join("weights.safetensors"));
    if !config.exists() {
        bail!("`{}` has no config.toml, expected a recipe, a model directory or a weights file", dir.display());
    }
    let recipe = Recipe::load(&config)?;
    if weights::load(&weights)?.0 != recipe.model {
        bail!("`{}` holds another model than `{}` describes", weights.display(), config.display());
    }
    let summary = dir.join("labels.txt").exists().then(|| directory::read(dir).map(ModelSummary::new)).transpose()?;
    Ok((recipe, summary))
}

impl ModelSummary {
    fn new(parts: ModelParts) -> Self {
        Self {
            units: units_name(parts.labels.units()),
            labels: parts.labels.symbols().to_vec(),
            rate_hz: parts.features.sample_rate_hz,
            cmvn: format!("{:?}", parts.features.cmvn).to_lowercase(),
            card: parts.card,
        }
    }
}

fn model_heading(model: &ModelSummary) -> String {
    let ModelSummary { units, labels, rate_hz, cmvn, card: _ } = model;
    let shown = labels.iter().take(MAX_LABELS).map(String::as_str).collect::<Vec<_>>().join(" ");
    let more = labels.len().saturating_sub(MAX_LABELS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "units            {units}\n\
         labels           {}: {shown}{more}\n\
         sample rate      {rate_hz} Hz\n\
         normalisation    {cmvn}",
        labels.len()
    )
}

fn heading(summary: &Summary) -> String {
    let Summary { architecture, parameters, receptive_field_frames, look_ahead_frames, delay_ms, layers: _ } = summary;
    let (total, trainable) = (grouped(parameters.total), grouped(parameters.trainable));
    let whole = || "the whole utterance".to_owned();
    // Without a bound but with a bounded look-ahead, the network depends on the whole past.
    let past = || if look_ahead_frames.is_some() { "everything before".to_owned() } else { whole() };
    let receptive_field = receptive_field_frames.map_or_else(past, |frames| format!("{frames} frames"));
    let look_ahead = look_ahead_frames.map_or_else(whole, |frames| format!("{frames} frames"));
    let delay = delay_ms.map_or_else(whole, |ms| format!("{ms} ms"));
    format!(
        "architecture     {architecture}\n\
         parameters       {total} ({trainable} trainable)\n\
         receptive field  {receptive_field}\n\
         look-ahead       {look_ahead}\n\
         delay            {delay}"
    )
}

/// Name, output as `T/4 x 60 x 8`, parameters.
fn row(layer: &LayerSummary) -> Vec<String> {
    let time = if layer.time_divisor == 1 { "T".to_owned() } else { format!("T/{}", layer.time_divisor) };
    let output = layer.shape.iter().fold(time, |output, size| format!("{output} x {size}"));
    vec![layer.name.clone(), output, grouped(layer.parameters)]
}
