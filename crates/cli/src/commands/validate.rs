//! `srf validate`: reports every problem of a manifest with its line.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args as ClapArgs;
use srf_text::labels::LabelSet;
use srf_train::corpus::validate::{Depth, checksum, validate};

use super::evaluate::expect_manifest;
use super::prepare;
use crate::Exit;
use crate::printer::{Bar, Printer};

/// Check manifests before training on them
///
/// Reports missing and unreadable audio, lengths that differ, labels outside the set, ids used twice, empty texts and
/// texts with more labels than the audio has output frames, each with its file and line. Exit code 1 if there are any.
#[derive(ClapArgs)]
#[command(after_help = "Examples:\n  srf validate data/timit/train.jsonl data/timit/dev.jsonl --decode")]
pub(crate) struct Args {
    /// Manifests to check
    #[arg(required = true, value_name = "MANIFEST")]
    manifests: Vec<PathBuf>,
    /// The label set [default: `labels.txt` next to the manifest]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Read every sample, not only the headers
    #[arg(long)]
    decode: bool,
    /// Print a checksum of each manifest and of every byte of its recordings
    #[arg(long)]
    hash: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { manifests, labels, decode, hash } = args;
    let depth = if decode { Depth::Samples } else { Depth::Headers };
    let mut exit = Exit::Done;
    for manifest in &manifests {
        expect_manifest(manifest)?;
        let labels = labels_of(manifest, labels.as_deref(), out)?;
        let bar = Bar::new(out);
        let (validated, problems) = validate(manifest, labels.as_ref(), depth, &bar);
        bar.finish();
        prepare::problems(&problems, out);
        let shown = manifest.display();
        let (n, hours) = (validated.n_utterances, validated.hours);
        out.note(format!("{shown}: {n} utterances, {hours:.2} hours, {} problems", problems.len()));
        if hash {
            let sum = checksum(manifest).with_context(|| format!("could not read all of `{shown}`"))?;
            out.line(format_args!("{sum}  {shown}"))?;
        }
        if !problems.is_empty() {
            exit = Exit::Problems;
        }
    }
    Ok(exit)
}

fn labels_of(manifest: &Path, given: Option<&Path>, out: &Printer) -> anyhow::Result<Option<LabelSet>> {
    let default = manifest.with_file_name("labels.txt");
    match given {
        Some(path) => Ok(Some(LabelSet::load(path)?)),
        None if default.exists() => Ok(Some(LabelSet::load(&default)?)),
        None => {
            out.note(format!("no `{}`: labels are not checked (`--labels FILE`)", default.display()));
            Ok(None)
        }
    }
}
