//! `srf info`: a recipe or a model in; its size, look-ahead, delay and layers out.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use srf_model::config::{FeaturesConfig, Recipe};
use srf_model::summary::{LayerSummary, Summary};
use srf_model::weights;
use srf_train::report::grouped;

use crate::Exit;
use crate::printer::Printer;

/// Tell what a recipe or a model amounts to: parameters, look-ahead, delay, layers
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf info recipes/timit/srf-7l.toml
  srf info my-model/
  srf info my-model/weights.safetensors --json")]
pub(crate) struct Args {
    /// A recipe (.toml), a model directory, or a weights file (.safetensors)
    #[arg(value_name = "CONFIG|MODEL")]
    path: PathBuf,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { path, json } = args;
    let summary = read(&path)?.summary();
    if json {
        out.line(serde_json::to_string(&summary)?)?;
    } else {
        out.line(heading(&summary))?;
        out.line("")?;
        layer_lines(&summary.layers).iter().try_for_each(|line| out.line(line))?;
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> anyhow::Result<Recipe> {
    if path.is_dir() {
        return read_directory(path);
    }
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        return read_weights(path);
    }
    Ok(Recipe::load(path)?)
}

/// The model of a weights file, which says nothing of its features: the default ones are meant unless their width
/// shows otherwise.
fn read_weights(path: &Path) -> anyhow::Result<Recipe> {
    let (model, _) = weights::load(path)?;
    let recipe = Recipe { model, features: FeaturesConfig::default(), training: None };
    recipe.validate().with_context(|| format!("`{}` was made for other features", path.display()))?;
    Ok(recipe)
}

/// The configuration of a model directory, after a look whether the weights beside it are of that model.
fn read_directory(dir: &Path) -> anyhow::Result<Recipe> {
    let (config, weights) = (dir.join("config.toml"), dir.join("weights.safetensors"));
    if !config.exists() {
        bail!("`{}` has no config.toml, expected a recipe, a model directory or a weights file", dir.display());
    }
    let recipe = Recipe::load(&config)?;
    let (model, _) = weights::load(&weights)?;
    if model != recipe.model {
        bail!("`{}` holds another model than `{}` describes", weights.display(), config.display());
    }
    Ok(recipe)
}

fn heading(summary: &Summary) -> String {
    let Summary { architecture, parameters, receptive_field_frames, look_ahead_frames, delay_ms, layers: _ } = summary;
    let (total, trainable) = (grouped(parameters.total), grouped(parameters.trainable));
    let whole = || "the whole utterance".to_owned();
    // Without a bound to one side but with one to the other, everything before is heard.
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

fn layer_lines(layers: &[LayerSummary]) -> Vec<String> {
    let head = ["layer", "output", "parameters"].map(str::to_owned);
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(layers.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    rows.iter()
        .map(|[name, output, parameters]| format!("{name:first$}  {output:second$}  {parameters:>third$}"))
        .collect()
}

/// Name, output as `T/4 x 60 x 8`, parameters.
fn row(layer: &LayerSummary) -> [String; 3] {
    let time = if layer.time_divisor == 1 { "T".to_owned() } else { format!("T/{}", layer.time_divisor) };
    let output = layer.shape.iter().fold(time, |output, size| format!("{output} x {size}"));
    [layer.name.clone(), output, grouped(layer.parameters)]
}
