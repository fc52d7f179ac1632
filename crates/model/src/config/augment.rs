//! The table `[training.augment]`: how utterances differ from epoch to epoch; absent, they do not.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;

const MAX_SPEEDS: usize = 64;
const MAX_MASKS: usize = 1000;

/// What to do; the default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// One of these speeds is drawn for each utterance, such as `[0.9, 1.0, 1.1]`; none leaves them alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<f64>,
    /// Noise added to the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseConfig>,
    /// Masks laid over the features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<MaskConfig>,
}

/// Noise at a signal-to-noise ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseConfig {
    /// How many of the utterances get noise, from 0 to 1.
    pub probability: f32,
    /// The loudest noise.
    pub min_snr_db: f32,
    /// The softest noise.
    pub max_snr_db: f32,
}

/// SpecAugment: stretches of time and bands of frequency set to zero, which is the mean of normalised features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskConfig {
    /// How many bands.
    pub n_bands: usize,
    /// A band has from 0 to this many bins.
    pub max_bins: usize,
    /// How many stretches.
    pub n_stretches: usize,
    /// A stretch has from 0 to this many frames.
    pub max_frames: usize,
    /// And no more than this many percent of the utterance.
    pub max_percent: usize,
}

impl AugmentConfig {
    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let key = "training.augment.speeds";
        InvalidConfig::unless_within(key, self.speeds.len(), 0, MAX_SPEEDS)?;
        for speed in &self.speeds {
            InvalidConfig::unless((0.5..=2.0).contains(speed), key, speed, "speeds from 0.5 to 2")?;
        }
        self.noise.iter().try_for_each(NoiseConfig::validate)?;
        self.masks.iter().try_for_each(MaskConfig::validate)
    }
}

impl NoiseConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let Self { probability, min_snr_db, max_snr_db } = *self;
        let is_probability = (0.0..=1.0).contains(&probability);
        InvalidConfig::unless(is_probability, "training.augment.noise.probability", probability, "0 to 1")?;
        let is_range = min_snr_db <= max_snr_db && min_snr_db.is_finite() && max_snr_db.is_finite();
        let found = format_args!("{min_snr_db} with a largest ratio of {max_snr_db}");
        InvalidConfig::unless(is_range, "training.augment.noise.min_snr_db", found, "two numbers, the smaller first")
    }
}

impl MaskConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless_within("training.augment.masks.max_percent", self.max_percent, 0, 100)?;
        InvalidConfig::unless_within("training.augment.masks.n_bands", self.n_bands, 0, MAX_MASKS)?;
        InvalidConfig::unless_within("training.augment.masks.n_stretches", self.n_stretches, 0, MAX_MASKS)
    }
}
