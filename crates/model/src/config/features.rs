//! The table `[features]`: how a feature frame is made, hence its width, its shift, and how far ahead it looks.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;

const MAX_SAMPLE_RATE_HZ: usize = 192_000;
const MAX_MS: f64 = 1000.0;
const MAX_MEL_BINS: usize = 512;
const MAX_DELTA_ORDER: usize = 3;
const MAX_DELTA_WINDOW: usize = 16;

/// Filterbanks as the paper's: 40 mel bins and energy, with first and second differences, 123 values every 10 ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeaturesConfig {
    /// Samples a second that the filterbanks are computed from.
    pub sample_rate_hz: usize,
    /// Length of the window of a frame.
    pub window_ms: f64,
    /// From one frame to the next.
    pub shift_ms: f64,
    /// Triangular filters on the mel scale.
    pub mel_bins: usize,
    /// Whether the logarithm of the energy comes first in each frame.
    pub energy: bool,
    /// How often differences are taken: 2 adds deltas and double deltas.
    pub delta_order: usize,
    /// Frames to either side that a difference is taken over.
    pub delta_window: usize,
    /// What means and variances are taken over.
    pub cmvn: Cmvn,
    /// Whether variances are normalised too, not only means.
    pub cmvn_variance: bool,
}

/// What means and variances of features are taken over before they are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cmvn {
    /// All utterances of the speaker.
    #[default]
    Speaker,
    /// The training set.
    Global,
    /// The frames heard so far.
    Online,
    /// Nothing: features stay as they are.
    None,
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
            cmvn: Cmvn::default(),
            cmvn_variance: true,
        }
    }
}

impl FeaturesConfig {
    /// Values in a frame.
    pub fn n_features(&self) -> usize {
        (self.mel_bins + usize::from(self.energy)) * (1 + self.delta_order)
    }

    /// Filterbank frames after (and before) its own that a feature frame is computed from.
    pub fn reach_frames(&self) -> usize {
        self.delta_order * self.delta_window
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless_within("features.sample_rate_hz", self.sample_rate_hz, 1000, MAX_SAMPLE_RATE_HZ)?;
        for (key, ms) in [("features.window_ms", self.window_ms), ("features.shift_ms", self.shift_ms)] {
            let expected = format_args!("1 to {MAX_MS}");
            InvalidConfig::unless((1.0..=MAX_MS).contains(&ms), key, ms, expected)?;
        }
        InvalidConfig::unless_within("features.mel_bins", self.mel_bins, 1, MAX_MEL_BINS)?;
        InvalidConfig::unless_within("features.delta_order", self.delta_order, 0, MAX_DELTA_ORDER)?;
        InvalidConfig::unless_within("features.delta_window", self.delta_window, 1, MAX_DELTA_WINDOW)
    }
}
