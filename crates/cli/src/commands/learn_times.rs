//! `srf learn-times`: a model and a manifest with times in, the model with the timing of its labels out.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use srf::Recognizer;
use srf::directory;
use srf_text::label_timing::LabelTiming;
use srf_train::corpus::manifest;

use crate::Exit;
use crate::printer::{Bar, Printer};

/// Teach a model when its labels begin and end, from a manifest with times
///
/// A network writes a label where it is surest, somewhere inside its sound. `srf train` does this by itself where the
/// dev part has times. Writes `times.json` into the model directory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf learn-times runs/digits/model data/digits/dev.jsonl")]
pub(crate) struct Args {
    /// The model directory to teach
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Utterances with `words` or `phones` that the model was not trained on
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { model, manifest } = args;
    let parts = directory::ModelParts { label_timing: LabelTiming::default(), ..directory::read(&model)? };
    let (listed, problems) = manifest::load(&manifest);
    problems.iter().for_each(|problem| out.problem(problem));
    let utterances: Vec<_> = listed.into_iter().map(|listed| listed.utterance).collect();
    let recognizer = Recognizer::from_parts(parts.clone())?;
    let watcher = Bar::new(out);
    let learned = srf_train::times::learn(&recognizer, &utterances, &watcher);
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
