//! Options of the front end.

use std::path::PathBuf;

use anyhow::Context as _;
use srf_audio::features::{Cmvn, FeaturesConfig, WindowShape};

/// What overrides the defaults, or those of a file.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag as typed")]
pub(super) struct Settings {
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

    /// Mel bins per frame
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

    /// Shift between frames in milliseconds
    #[arg(long, value_name = "MS")]
    shift: Option<f64>,

    /// The window each frame is multiplied by
    #[arg(long, value_enum)]
    window: Option<WindowName>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum CmvnName {
    /// All utterances of a speaker
    Speaker,
    /// Each utterance alone
    Utterance,
    /// All inputs
    Global,
    /// Each frame by the frames before it
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

impl Settings {
    /// The settings of the file, if there is one, under those typed.
    pub(super) fn resolve(self) -> anyhow::Result<FeaturesConfig> {
        let Self {
            config,
            cmvn,
            no_cmvn,
            mean_only,
            no_deltas,
            no_energy,
            dither,
            seed,
            mels,
            rate,
            low,
            high,
            frame,
            shift,
            window,
        } = self;
        let mut resolved = config.map_or_else(|| Ok(FeaturesConfig::default()), load)?;
        set(&mut resolved.sample_rate_hz, rate);
        set(&mut resolved.window_ms, frame);
        set(&mut resolved.shift_ms, shift);
        set(&mut resolved.dither, dither);
        set(&mut resolved.dither_seed, seed);
        set(&mut resolved.window, window.map(window_shape));
        set(&mut resolved.mel_bins, mels);
        set(&mut resolved.low_hz, low);
        set(&mut resolved.high_hz, high);
        set(&mut resolved.energy, no_energy.then_some(false));
        set(&mut resolved.delta_order, no_deltas.then_some(0));
        set(&mut resolved.cmvn, cmvn.map(cmvn_mode));
        set(&mut resolved.cmvn, no_cmvn.then_some(Cmvn::None));
        set(&mut resolved.cmvn_variance, mean_only.then_some(false));
        resolved.check()?;
        Ok(resolved)
    }
}

fn load(path: PathBuf) -> anyhow::Result<FeaturesConfig> {
    let text = std::fs::read_to_string(&path).with_context(|| format!("could not read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` is no feature configuration", path.display()))
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

fn cmvn_mode(name: CmvnName) -> Cmvn {
    match name {
        CmvnName::Speaker => Cmvn::Speaker,
        CmvnName::Utterance => Cmvn::Utterance,
        CmvnName::Global => Cmvn::Global,
        CmvnName::Online => Cmvn::Online,
        CmvnName::Off => Cmvn::None,
    }
}
