//! `srf features`: recordings in, a file of features out.

mod inputs;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use audio::ark::Form;
use audio::bulk::{Format, Summary, n_passes, write_features};
use audio::features::cmvn::{CmvnConfig, CmvnMode};
use audio::features::{FeaturesConfig, WindowShape};

use crate::Exit;
use crate::printer::{Printer, human_duration};

/// Compute features of recordings
///
/// By default 40 log-mel bins and energy with deltas of order 2, 123 values every 10 ms, as Kaldi computes them,
/// normalised per speaker.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf features manifest.jsonl --out feats.ark            with feats.scp beside it
  srf features recordings/ --out feats.safetensors
  srf features data/wav.scp --out feats.ark --mean-only
  srf features a.wav --out a.ark --no-cmvn --dither 0 --static    Kaldi's compute-fbank-feats")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests or Kaldi `wav.scp` files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// The file to write: `.ark` (and `.scp`) or `.safetensors`
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// What to write, when the extension does not say
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// A TOML file with settings; the options below override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Which frames are normalised together
    #[arg(long, value_enum, value_name = "MODE")]
    cmvn: Option<CmvnName>,

    /// No normalisation; the same as `--cmvn off`
    #[arg(long, conflicts_with = "cmvn")]
    no_cmvn: bool,

    /// Normalise the mean only, not the variance
    #[arg(long)]
    mean_only: bool,

    /// Static values only, no deltas
    #[arg(long = "static")]
    no_deltas: bool,

    /// Leave the energy out
    #[arg(long)]
    no_energy: bool,

    /// Standard deviation of the noise added to the samples, on the scale of 16-bit integers; 0 for none
    #[arg(long, value_name = "X")]
    dither: Option<f32>,

    /// Seed of that noise
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Mel bins a frame
    #[arg(long, value_name = "N")]
    mels: Option<usize>,

    /// Sample rate to resample recordings to
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,

    /// Where the lowest mel bin starts
    #[arg(long, value_name = "HZ")]
    low: Option<f64>,

    /// Where the highest mel bin ends; 0 or less counts down from half the rate
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    high: Option<f64>,

    /// Length of a frame in milliseconds
    #[arg(long, value_name = "MS")]
    frame: Option<f64>,

    /// From one frame to the next, in milliseconds
    #[arg(long, value_name = "MS")]
    shift: Option<f64>,

    /// The window each frame is multiplied by
    #[arg(long, value_enum)]
    window: Option<WindowName>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FormatName {
    /// Binary Kaldi archive, with a script file
    Ark,
    /// Kaldi archive in text, with a script file
    Text,
    /// One tensor an utterance
    Safetensors,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum CmvnName {
    /// All utterances of a speaker
    Speaker,
    /// Each utterance alone
    Utterance,
    /// All that is given
    Global,
    /// Each frame by those before it
    Online,
    /// None
    Off,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum WindowName {
    Povey,
    Hanning,
    Hamming,
    Rectangular,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let format = format_of(&args)?;
    let config = config_of(&args)?;
    config.check()?;
    let inputs::Inputs { utterances, n_problems } = inputs::gather(&args.inputs, out);
    if utterances.is_empty() {
        bail!("there is no recording in what was given");
    }
    let progress = out.progress("features", (utterances.len() * n_passes(&config)) as u64);
    let start = Instant::now();
    let summary = write_features(&utterances, &config, format, &args.out, &|| progress.inc(1));
    progress.finish_and_clear();
    let summary = summary?;
    for problem in &summary.problems {
        out.problem(problem);
    }
    out.remark(describe(&summary, &config, start.elapsed().as_secs_f64(), &args.out));
    Ok(if n_problems + summary.problems.len() == 0 { Exit::Done } else { Exit::Problems })
}

fn describe(summary: &Summary, config: &FeaturesConfig, elapsed_s: f64, path: &Path) -> String {
    let &Summary { n_utterances, n_speakers, n_frames, audio_s, .. } = summary;
    format!(
        "{}: {n_utterances} utterances of {n_speakers} speakers, {}, {n_frames} frames of {} values; \
         {elapsed_s:.1} s, {:.0} times real time",
        path.display(),
        human_duration(audio_s),
        config.n_dims(),
        audio_s / elapsed_s
    )
}

fn format_of(args: &Args) -> anyhow::Result<Format> {
    let extension = args.out.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let by_extension = match extension.as_str() {
        "ark" => Some(FormatName::Ark),
        "safetensors" => Some(FormatName::Safetensors),
        _ => None,
    };
    match args.format.or(by_extension) {
        Some(FormatName::Ark) => Ok(Format::Ark(Form::Binary)),
        Some(FormatName::Text) => Ok(Format::Ark(Form::Text)),
        Some(FormatName::Safetensors) => Ok(Format::Safetensors),
        None => bail!("`{}` ends in neither `.ark` nor `.safetensors`; say `--format`", args.out.display()),
    }
}

/// The settings of the file, if there is one, under those typed.
fn config_of(args: &Args) -> anyhow::Result<FeaturesConfig> {
    let mut config = match &args.config {
        None => FeaturesConfig::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))?;
            toml::from_str(&text).with_context(|| format!("`{}` is no feature configuration", path.display()))?
        }
    };
    let given = |config: &mut FeaturesConfig| {
        let FeaturesConfig {
            rate_hz, frame_ms, shift_ms, dither, dither_seed, window, n_mels, low_hz, high_hz, ..
        } = config;
        set(rate_hz, args.rate);
        set(frame_ms, args.frame);
        set(shift_ms, args.shift);
        set(dither, args.dither);
        set(dither_seed, args.seed);
        set(n_mels, args.mels);
        set(low_hz, args.low);
        set(high_hz, args.high);
        set(window, args.window.map(window_shape));
    };
    given(&mut config);
    config.use_energy &= !args.no_energy;
    if args.no_deltas {
        config.delta_order = 0;
    }
    let CmvnConfig { mode, norm_vars, .. } = &mut config.cmvn;
    set(mode, if args.no_cmvn { Some(CmvnMode::Off) } else { args.cmvn.map(cmvn_mode) });
    *norm_vars &= !args.mean_only;
    Ok(config)
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn window_shape(name: WindowName) -> WindowShape {
    match name {
        WindowName::Povey => WindowShape::Povey,
        WindowName::Hanning => WindowShape::Hanning,
        WindowName::Hamming => WindowShape::Hamming,
        WindowName::Rectangular => WindowShape::Rectangular,
    }
}

fn cmvn_mode(name: CmvnName) -> CmvnMode {
    match name {
        CmvnName::Speaker => CmvnMode::Speaker,
        CmvnName::Utterance => CmvnMode::Utterance,
        CmvnName::Global => CmvnMode::Global,
        CmvnName::Online => CmvnMode::Online,
        CmvnName::Off => CmvnMode::Off,
    }
}
