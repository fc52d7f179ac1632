//! The settings of features: the table `[features]` of a recipe.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// How feature frames are computed and normalised.
///
/// The defaults are the paper's: 40 mel bins and energy with first and second differences, 123 values every 10 ms, as
/// Kaldi computes them with `--num-mel-bins=40 --use-energy=true` and `add-deltas`.
///
/// ```
/// let config = srf_audio::features::FeaturesConfig { mel_bins: 80, energy: false, ..Default::default() };
/// assert_eq!(config.n_features(), 240);
/// ```
///
/// ```
/// use srf_audio::features::{FeaturesConfig, WindowShape};
///
/// let config = FeaturesConfig { window: WindowShape::Hamming, ..FeaturesConfig::default() };
/// config.check()?;
/// assert_eq!((config.frame_samples(), config.shift_samples()), (400, 160));
/// assert_eq!((config.n_static(), config.n_features()), (41, 123));
/// // Deltas of deltas see two frames ahead each.
/// assert_eq!(config.look_ahead_frames(), 4);
/// # Ok::<(), srf_audio::features::FeaturesConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeaturesConfig {
    /// Sample rate; recordings of another rate are resampled to it.
    #[serde(alias = "rate_hz")]
    pub sample_rate_hz: u32,
    /// Length of the window of a frame, in milliseconds.
    #[serde(alias = "frame_ms")]
    pub window_ms: f64,
    /// From one frame to the next, in milliseconds.
    pub shift_ms: f64,
    /// Triangular filters on the mel scale.
    #[serde(alias = "n_mels")]
    pub mel_bins: usize,
    /// Whether the log energy comes first in each frame.
    #[serde(alias = "use_energy")]
    pub energy: bool,
    /// How many times differences are taken: 2 adds deltas and double deltas.
    pub delta_order: usize,
    /// Frames to either side that a difference is taken over.
    #[serde(alias = "delta_window_frames")]
    pub delta_window: usize,
    /// Which frames share the means and variances by which they are normalised.
    pub cmvn: Cmvn,
    /// Whether variances are normalised too, or means only.
    pub cmvn_variance: bool,
    /// Standard deviation of the noise added to samples, on the scale of 16-bit integers; 0 adds none.
    #[serde(skip_serializing_if = "is_default::dither")]
    pub dither: f32,
    /// Seed of that noise.
    #[serde(skip_serializing_if = "is_default::dither_seed")]
    pub dither_seed: u64,
    /// Whether the mean of each frame is subtracted first.
    #[serde(skip_serializing_if = "is_default::remove_dc")]
    pub remove_dc: bool,
    /// Share of the previous sample that is subtracted from each sample.
    #[serde(skip_serializing_if = "is_default::preemphasis")]
    pub preemphasis: f32,
    /// The window function.
    #[serde(skip_serializing_if = "is_default::window")]
    pub window: WindowShape,
    /// Where the lowest mel bin starts.
    #[serde(skip_serializing_if = "is_default::low_hz")]
    pub low_hz: f64,
    /// Where the highest mel bin ends; 0 or less counts down from half the sample rate.
    #[serde(skip_serializing_if = "is_default::high_hz")]
    pub high_hz: f64,
    /// Log energies are at least the logarithm of this; 0 leaves only the smallest positive step of a float.
    #[serde(skip_serializing_if = "is_default::energy_floor")]
    pub energy_floor: f32,
    /// Online normalisation: how many of the last frames count.
    #[serde(skip_serializing_if = "is_default::cmvn_window")]
    pub cmvn_window: usize,
    /// Online: while there are fewer, the speaker's earlier utterances count as at most this many.
    #[serde(skip_serializing_if = "is_default::cmvn_speaker_frames")]
    pub cmvn_speaker_frames: usize,
    /// Online: while there are fewer still, the global statistics count as at most this many.
    #[serde(skip_serializing_if = "is_default::cmvn_global_frames")]
    pub cmvn_global_frames: usize,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        Self {
            sample_rate_hz: 16_000,
            window_ms: 25.0,
            shift_ms: 10.0,
            mel_bins: 40,
            energy: true,
            delta_order: 2,
            delta_window: 2,
            cmvn: Cmvn::Speaker,
            cmvn_variance: true,
            dither: 1.0,
            dither_seed: 0,
            remove_dc: true,
            preemphasis: 0.97,
            window: WindowShape::Povey,
            low_hz: 20.0,
            high_hz: 0.0,
            energy_floor: 0.0,
            cmvn_window: 600,
            cmvn_speaker_frames: 600,
            cmvn_global_frames: 200,
        }
    }
}

/// Settings that a recipe rarely changes are written only where they differ from the default.
mod is_default {
    use super::{FeaturesConfig, WindowShape};

    macro_rules! fields {
        ($($field:ident: $type:ty),* $(,)?) => {
            $(pub(super) fn $field(value: &$type) -> bool {
                *value == FeaturesConfig::default().$field
            })*
        };
    }
    fields! {
        dither: f32, dither_seed: u64, remove_dc: bool, preemphasis: f32, window: WindowShape, low_hz: f64,
        high_hz: f64, energy_floor: f32, cmvn_window: usize, cmvn_speaker_frames: usize, cmvn_global_frames: usize,
    }
}

/// Which frames share the means and variances by which they are normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cmvn {
    /// Those of all utterances of a speaker.
    #[default]
    Speaker,
    /// Those of one utterance.
    Utterance,
    /// Those of the training set.
    Global,
    /// Each frame and the ones before it, for live streams.
    Online,
    /// No normalisation.
    #[serde(alias = "off")]
    None,
}

/// The shape of the window over N samples, x being the angle from 0 to 2 pi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowShape {
    /// (0.5 - 0.5 cos x)^0.85: a Hann window with broader shoulders.
    Povey,
    /// 0.5 - 0.5 cos x.
    Hanning,
    /// 0.54 - 0.46 cos x.
    Hamming,
    /// 1.
    Rectangular,
}

/// Why no features can be computed with these settings.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeaturesConfigError {
    #[error("`features.{key}` is {found}, expected {expected}")]
    Value { key: &'static str, found: String, expected: String },
    #[error("mel bin {bin} of {mel_bins} is too narrow for a spectrum of {n_points} points")]
    EmptyBin { bin: usize, mel_bins: usize, n_points: usize },
}

const MAX_WINDOW_SAMPLES: usize = 1 << 16;
/// A day of frames: a longer memory is a mistake.
const MAX_CMVN_WINDOW: usize = 10_000_000;

impl FeaturesConfig {
    /// Samples per frame; a fraction of a sample is dropped.
    pub fn frame_samples(&self) -> usize {
        samples(self.sample_rate_hz, self.window_ms)
    }

    /// Samples from the start of one frame to the start of the next.
    pub fn shift_samples(&self) -> usize {
        samples(self.sample_rate_hz, self.shift_ms)
    }

    /// Values per frame before deltas.
    pub fn n_static(&self) -> usize {
        self.mel_bins + usize::from(self.energy)
    }

    /// Values per frame.
    pub fn n_features(&self) -> usize {
        self.n_static() * (1 + self.delta_order)
    }

    /// Frames after (and before) its own that the deltas of a frame depend on.
    pub fn look_ahead_frames(&self) -> usize {
        self.delta_order * self.delta_window
    }

    /// Number of frames of `n_samples` samples: only complete ones count.
    pub fn n_frames(&self, n_samples: usize) -> usize {
        n_samples.checked_sub(self.frame_samples()).map_or(0, |rest| 1 + rest / self.shift_samples())
    }

    /// The upper end of the highest bin.
    pub(super) fn upper_hz(&self) -> f64 {
        if self.high_hz > 0.0 { self.high_hz } else { f64::from(self.sample_rate_hz) / 2.0 + self.high_hz }
    }

    /// Checks every setting against its range.
    pub fn check(&self) -> Result<(), FeaturesConfigError> {
        within("sample_rate_hz", self.sample_rate_hz, 1_000, 768_000)?;
        within("window_ms", self.window_ms, 1.0, 1000.0)?;
        within("shift_ms", self.shift_ms, 1.0, 1000.0)?;
        let fits = (2..=MAX_WINDOW_SAMPLES).contains(&self.frame_samples());
        check(fits, "window_ms", self.window_ms, format_args!("2 to {MAX_WINDOW_SAMPLES} samples"))?;
        within("mel_bins", self.mel_bins, 1, 1024)?;
        within("delta_order", self.delta_order, 0, 4)?;
        within("delta_window", self.delta_window, 1, 16)?;
        check(self.dither >= 0.0 && self.dither.is_finite(), "dither", self.dither, "0 or more")?;
        within("preemphasis", self.preemphasis, 0.0, 1.0)?;
        let is_floor = self.energy_floor >= 0.0 && self.energy_floor.is_finite();
        check(is_floor, "energy_floor", self.energy_floor, "0 or more")?;
        within("cmvn_window", self.cmvn_window, 1, MAX_CMVN_WINDOW)?;
        let is_below = self.low_hz >= 0.0 && self.low_hz < self.upper_hz();
        check(is_below, "low_hz", self.low_hz, "at least 0 and below high_hz")?;
        let nyquist_hz = f64::from(self.sample_rate_hz) / 2.0;
        let is_below = self.upper_hz() <= nyquist_hz;
        check(is_below, "high_hz", self.high_hz, format_args!("at most half the sample rate, {nyquist_hz}"))
    }
}

fn within<T: PartialOrd + Display>(key: &'static str, found: T, least: T, most: T) -> Result<(), FeaturesConfigError> {
    check(least <= found && found <= most, key, &found, format_args!("{least} to {most}"))
}

fn check(
    is_good: bool,
    key: &'static str,
    found: impl Display,
    expected: impl Display,
) -> Result<(), FeaturesConfigError> {
    let error = || FeaturesConfigError::Value { key, found: found.to_string(), expected: expected.to_string() };
    if is_good { Ok(()) } else { Err(error()) }
}

fn samples(rate_hz: u32, span_ms: f64) -> usize {
    // The tiny addition keeps 16000 x 0.025 from becoming 399.99...
    (f64::from(rate_hz) * span_ms / 1000.0 + 1e-6) as usize
}
