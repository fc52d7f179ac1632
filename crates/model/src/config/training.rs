//! The tables `[training]` and `[training.augment]`: epochs, batches, learning rate, augmentation.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;
use super::srf::is_default;

const MAX_EPOCHS: usize = 1_000_000;
const MAX_BATCH_FRAMES: usize = 100_000_000;
const MAX_SPEEDS: usize = 64;
const MAX_MASKS: usize = 1000;

/// How a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Passes over the training set.
    pub epochs: usize,
    /// Feature frames in a batch at most, padding included.
    pub batch_frames: usize,
    /// The final model is the mean of the models after this many last epochs.
    #[serde(default = "number::<1, _>")]
    pub average_epochs: usize,
    /// The seed of every random choice: initial weights, dropout, order of batches.
    #[serde(default = "number::<1, _>")]
    pub seed: u64,
    /// Largest norm of the whole gradient; longer ones are scaled down to it. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Stop after this many epochs in a row without a smaller loss on `dev`. `None`: never before the last epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// How many batches may be skipped because their loss or gradient is not finite before training stops.
    #[serde(default = "number::<20, _>")]
    pub max_skipped: usize,
    /// Utterances of `dev` that are recognised after each epoch to measure the error rate.
    #[serde(default = "number::<200, _>")]
    pub validation_utterances: usize,
    /// How utterances differ from epoch to epoch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub augment: AugmentConfig,
    /// The optimizer.
    #[serde(default)]
    pub adam: AdamConfig,
    /// The learning rate: `[training.schedule.warmup]` or `[training.schedule.constant]`.
    pub schedule: ScheduleConfig,
}

/// Adam's constants; the defaults are those the paper's models were trained with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squared gradients.
    pub beta2: f64,
    /// Keeps the division finite.
    pub epsilon: f64,
}

/// The learning rate as a function of step and epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ScheduleConfig {
    /// κ d^-1/2 min(n^-1/2, n n_w^-3/2): rises for n_w steps, then falls with the root of the step n.
    #[serde(rename_all = "snake_case")]
    Warmup {
        /// Steps of rising rate (n_w).
        steps: u64,
        /// Width by which the rate is scaled (d): 1, or the width of the embedding.
        #[serde(default = "number::<1, _>")]
        dimension: usize,
        /// The factor κ by epoch.
        kappa: Vec<KappaStep>,
    },
    /// The same rate at every step.
    Constant {
        /// The rate.
        rate: f64,
    },
}

/// A factor and the epoch from which it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KappaStep {
    /// The first epoch with this factor; epochs count from 1.
    pub from_epoch: usize,
    /// The factor κ.
    pub value: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.98, epsilon: 1e-9 }
    }
}

/// The default of a key.
fn number<const N: u16, T: From<u16>>() -> T {
    N.into()
}

impl TrainingConfig {
    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless_within("training.epochs", self.epochs, 1, MAX_EPOCHS)?;
        InvalidConfig::unless_within("training.batch_frames", self.batch_frames, 1, MAX_BATCH_FRAMES)?;
        InvalidConfig::unless_within("training.average_epochs", self.average_epochs, 1, self.epochs)?;
        // TOML has no larger whole numbers, and a run must be able to write down its seed.
        InvalidConfig::unless(i64::try_from(self.seed).is_ok(), "training.seed", self.seed, "less than 2^63")?;
        if let Some(norm) = self.clip_norm {
            unless_positive("training.clip_norm", norm)?;
        }
        if let Some(patience) = self.patience {
            InvalidConfig::unless_within("training.patience", patience, 1, MAX_EPOCHS)?;
        }
        self.augment.validate()?;
        self.adam.validate()?;
        self.schedule.validate()
    }
}

impl AdamConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        for (key, beta) in [("training.adam.beta1", self.beta1), ("training.adam.beta2", self.beta2)] {
            InvalidConfig::unless((0.0..1.0).contains(&beta), key, beta, "at least 0 and less than 1")?;
        }
        unless_positive("training.adam.epsilon", self.epsilon)
    }
}

impl ScheduleConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::Constant { rate } => unless_positive("training.schedule.constant.rate", *rate),
            Self::Warmup { steps, dimension, kappa } => {
                let (key, most) = ("training.schedule.warmup.steps", 1 << 40);
                InvalidConfig::unless((1..=most).contains(steps), key, steps, format_args!("1 to {most}"))?;
                InvalidConfig::unless_within("training.schedule.warmup.dimension", *dimension, 1, 1 << 20)?;
                validate_kappa(kappa)
            }
        }
    }
}

fn validate_kappa(kappa: &[KappaStep]) -> Result<(), InvalidConfig> {
    let key = "training.schedule.warmup.kappa";
    let first = kappa.first().map_or(0, |step| step.from_epoch);
    let found = format_args!("a list that starts at epoch {first}");
    InvalidConfig::unless(first == 1, key, found, "a list that starts at epoch 1")?;
    let is_rising = kappa.windows(2).all(|pair| pair[0].from_epoch < pair[1].from_epoch);
    InvalidConfig::unless(is_rising, key, "a list whose epochs do not rise", "a later epoch at every step")?;
    kappa.iter().try_for_each(|step| unless_positive(key, step.value))
}

fn unless_positive(key: &str, value: f64) -> Result<(), InvalidConfig> {
    InvalidConfig::unless(value > 0.0 && value.is_finite(), key, value, "a number greater than 0")
}

/// How utterances are varied from epoch to epoch; the default leaves them alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// One of these speeds is drawn for each utterance, such as `[0.9, 1.0, 1.1]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<f64>,
    /// Rooms in which the utterances are spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rooms: Option<RoomsConfig>,
    /// Noise added to the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseConfig>,
    /// The fraction of utterances that are limited to the band of a telephone, which samples at 8 kHz.
    #[serde(skip_serializing_if = "is_default")]
    pub telephone: f32,
    /// Masks over the features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<MaskConfig>,
}

/// Reverberation that decays by 60 dB within a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomsConfig {
    /// The fraction of utterances that are spoken in a room.
    pub probability: f32,
    /// The shortest decay.
    pub min_t60_s: f32,
    /// The longest decay.
    pub max_t60_s: f32,
}

/// Noise at a signal-to-noise ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseConfig {
    /// The fraction of utterances that get noise.
    pub probability: f32,
    /// The loudest noise.
    pub min_snr_db: f32,
    /// The softest noise.
    pub max_snr_db: f32,
}

/// SpecAugment: stretches of time and bands of frequency are set to zero, the mean of normalized features.
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
        unless_probability("training.augment.telephone", self.telephone)?;
        self.rooms.iter().try_for_each(RoomsConfig::validate)?;
        self.noise.iter().try_for_each(NoiseConfig::validate)?;
        self.masks.iter().try_for_each(MaskConfig::validate)
    }
}

fn unless_probability(key: &str, value: f32) -> Result<(), InvalidConfig> {
    InvalidConfig::unless((0.0..=1.0).contains(&value), key, value, "0 to 1")
}

impl RoomsConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let Self { probability, min_t60_s, max_t60_s } = *self;
        unless_probability("training.augment.rooms.probability", probability)?;
        let is_range = 0.01 <= min_t60_s && min_t60_s <= max_t60_s && max_t60_s <= 5.0;
        let found = format_args!("{min_t60_s} with a longest time of {max_t60_s}");
        let expected = "two times from 0.01 to 5 s, the shorter first";
        InvalidConfig::unless(is_range, "training.augment.rooms.min_t60_s", found, expected)
    }
}

impl NoiseConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let Self { probability, min_snr_db, max_snr_db } = *self;
        unless_probability("training.augment.noise.probability", probability)?;
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
