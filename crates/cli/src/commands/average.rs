//! `srf average`: averages models, checkpoints or epochs.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use srf::directory;
use srf_train::trainer::average::{average, average_epochs};

use super::models::model_directory;
use crate::Exit;
use crate::printer::Printer;

/// Average several models: the mean of their weights and statistics
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf average run-a/model run-b/model --out mean
  srf average run/checkpoints/step-0000004096.ckpt --epochs 4 --out last-four")]
pub(crate) struct Args {
    /// Checkpoints (`RUN/checkpoints/*.ckpt`) or model directories of one and the same network
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,

    /// Average the last N epochs that one checkpoint holds
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// The model directory to write
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { models, epochs, out: dir } = args;
    let models: Vec<PathBuf> = models.into_iter().map(model_directory).collect::<Result<_, _>>()?;
    let parts = match epochs {
        None => average(&models)?,
        Some(n_epochs) => {
            ensure!(models.len() == 1, "`--epochs` takes one checkpoint, {} were given", models.len());
            average_epochs(&models[0], n_epochs)?
        }
    };
    directory::write(&dir, &parts).with_context(|| format!("could not write `{}`", dir.display()))?;
    let n_models = epochs.unwrap_or(models.len());
    out.note(format_args!("the mean of {n_models} models is in `{}`", dir.display()));
    Ok(Exit::Done)
}
