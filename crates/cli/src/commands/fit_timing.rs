//! `srf fit-timing`: estimates where the labels of a model begin and end, from a manifest with times.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use srf::Recognizer;
use srf::directory;
use srf_text::label_timing::LabelTiming;
use srf_train::corpus::manifest;

use super::models::model_directory;
use crate::Exit;
use crate::printer::{Bar, Printer};

/// Fit the start and end times of a model's labels, from a manifest with times
///
/// A CTC network emits a label at one moment inside its sound. This estimates how far each label extends before and
/// after that moment and writes `times.json` to the model directory. `srf train` does this automatically if the dev part
/// has times.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf fit-timing runs/digits/model data/digits/dev.jsonl")]
pub(crate) struct Args {
    /// The model directory
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Utterances with `words` or `phones`, not from the training part
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { model, manifest } = args;
    let model = model_directory(model)?;
    let parts = directory::ModelParts { label_timing: LabelTiming::default(), ..directory::read(&model)? };
    let (listed, problems) = manifest::load(&manifest);
    problems.iter().for_each(|problem| out.problem(problem));
    let utterances: Vec<_> = listed.into_iter().map(|listed| listed.utterance).collect();
    let recognizer = Recognizer::from_parts(parts.clone())?;
    let watcher = Bar::new(out);
    let learned = srf_train::timing::fit(&recognizer, &utterances, &watcher);
    watcher.finish();
    let Some(label_timing) = learned else {
        bail!(
            "`{}`: found too few utterances that have times and are recognised without a mistake, expected some",
            manifest.display()
        );
    };
    directory::write(&model, &directory::ModelParts { label_timing, ..parts }).context("could not write the model")?;
    out.note(format_args!("wrote `{}`", model.join("times.json").display()));
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Problems })
}
