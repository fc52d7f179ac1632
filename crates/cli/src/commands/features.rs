//! `srf features`: writes the features of recordings to an archive.

mod settings;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use srf_audio::ark::Form;
use srf_audio::bulk::{Format, Summary, n_passes, write_features};
use srf_audio::features::FeaturesConfig;

use self::settings::Settings;
use crate::Exit;
use crate::commands::inputs::{self, Inputs};
use crate::printer::{Printer, human_duration};

/// Compute features of recordings
///
/// By default 40 log-mel bins and energy with deltas of order 2, 123 values every 10 ms, as Kaldi computes them,
/// normalised per speaker.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf features manifest.jsonl --out feats.ark                     # and feats.scp
  srf features recordings/ --out feats.safetensors
  srf features data/wav.scp --out feats.ark --mean-only
  srf features a.wav --out a.ark --no-cmvn --dither 0 --static    # as Kaldi's compute-fbank-feats")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests, Kaldi data directories or `wav.scp` files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// The file to write: `.ark` (and `.scp`) or `.safetensors`
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Output format, if the extension does not say
    #[arg(long, short, value_enum)]
    format: Option<FormatName>,

    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FormatName {
    /// Binary Kaldi archive, with a script file
    Ark,
    /// Kaldi archive in text, with a script file
    Text,
    /// One tensor per utterance
    Safetensors,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { inputs, out: path, format, settings } = args;
    let format = resolve_format(format, &path)?;
    let config = settings.resolve()?;
    let Inputs { utterances, n_problems, .. } = inputs::gather(&inputs, out);
    if utterances.is_empty() {
        bail!("there is no recording in what was given");
    }
    let progress = out.progress("features", (utterances.len() * n_passes(&config)) as u64);
    let start = Instant::now();
    let summary = write_features(&utterances, &config, format, &path, &|| progress.inc(1));
    progress.finish_and_clear();
    let summary = summary?;
    for problem in &summary.problems {
        out.problem(problem);
    }
    for missing in &summary.incomplete {
        out.problem(format!("{missing}; the features are those of what is there"));
    }
    out.note(describe(&summary, &config, start.elapsed().as_secs_f64(), &path));
    Ok(if n_problems + summary.problems.len() + summary.incomplete.len() == 0 { Exit::Done } else { Exit::Problems })
}

fn describe(summary: &Summary, config: &FeaturesConfig, elapsed_s: f64, path: &Path) -> String {
    let &Summary { n_utterances, n_speakers, n_frames, audio_s, .. } = summary;
    format!(
        "{}: {n_utterances} utterances of {n_speakers} speakers, {}, {n_frames} frames of {} values; \
         {elapsed_s:.1} s, {:.0} times real time",
        path.display(),
        human_duration(audio_s),
        config.n_features(),
        audio_s / elapsed_s
    )
}

fn resolve_format(name: Option<FormatName>, path: &Path) -> anyhow::Result<Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let by_extension = match extension.as_str() {
        "ark" => Some(FormatName::Ark),
        "safetensors" => Some(FormatName::Safetensors),
        _ => None,
    };
    match name.or(by_extension) {
        Some(FormatName::Ark) => Ok(Format::Ark(Form::Binary)),
        Some(FormatName::Text) => Ok(Format::Ark(Form::Text)),
        Some(FormatName::Safetensors) => Ok(Format::Safetensors),
        None => bail!("`{}` ends in neither `.ark` nor `.safetensors`; say `--format`", path.display()),
    }
}
