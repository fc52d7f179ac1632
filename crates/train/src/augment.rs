//! Augmentation: an utterance of the corpus in, a slightly different one out, off unless asked for.
//!
//! Three kinds: speed perturbation and noise on the samples, masks (SpecAugment) on the features.
//! What happens to an utterance depends on the seed, the epoch and its id alone, so a run can be repeated and resumed
//! with any number of threads.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::noise;
use crate::playback::play;
use crate::seed::{between, generator, number_of};

/// What to do; the default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// One of these speeds is drawn for each utterance, such as `[0.9, 1.0, 1.1]`; none leaves them alone.
    pub speeds: Vec<f64>,
    /// Noise added to the samples.
    pub noise: Option<NoiseConfig>,
    /// Masks laid over the features.
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

/// Settings that make no sense.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum AugmentConfigError {
    /// Too fast or too slow to be the same words.
    #[error("augmentation speed {found}, expected 0.5 to 2")]
    Speed {
        /// As set.
        found: f64,
    },
    /// Not a probability.
    #[error("probability of noise {found}, expected 0 to 1")]
    Probability {
        /// As set.
        found: f32,
    },
    /// Not a range.
    #[error("noise from {min_snr_db} to {max_snr_db} dB, expected finite numbers, the smaller first")]
    Snr {
        /// As set.
        min_snr_db: f32,
        /// As set.
        max_snr_db: f32,
    },
    /// More than all.
    #[error("masks of {found} percent of an utterance, expected 0 to 100")]
    Percent {
        /// As set.
        found: usize,
    },
}

impl AugmentConfig {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<(), AugmentConfigError> {
        if let Some(found) = self.speeds.iter().copied().find(|speed| !(0.5..=2.0).contains(speed)) {
            return Err(AugmentConfigError::Speed { found });
        }
        if let Some(NoiseConfig { probability, min_snr_db, max_snr_db }) = self.noise {
            if !(0.0..=1.0).contains(&probability) {
                return Err(AugmentConfigError::Probability { found: probability });
            }
            if !(min_snr_db <= max_snr_db && min_snr_db.is_finite() && max_snr_db.is_finite()) {
                return Err(AugmentConfigError::Snr { min_snr_db, max_snr_db });
            }
        }
        match self.masks {
            Some(MaskConfig { max_percent: found, .. }) if 100 < found => Err(AugmentConfigError::Percent { found }),
            _ => Ok(()),
        }
    }
}

/// Changes utterances as configured.
#[derive(Clone, Debug)]
pub struct Augmenter {
    config: AugmentConfig,
    seed: u64,
}

/// Which generator: the samples must not depend on how much the features drew.
const SAMPLES: u64 = 3;
const FEATURES: u64 = 4;

impl Augmenter {
    /// For a run with this seed.
    pub fn new(config: AugmentConfig, seed: u64) -> Result<Self, AugmentConfigError> {
        config.check()?;
        Ok(Self { config, seed })
    }

    /// Whether there is nothing to do.
    pub fn is_off(&self) -> bool {
        self.config == AugmentConfig::default()
    }

    /// Changes the samples of utterance `id` in `epoch`, and says how much faster they are now.
    pub fn change_samples(&self, epoch: u64, id: &str, rate_hz: u32, samples: &mut Vec<f32>) -> f64 {
        let rng = &mut generator(self.seed, &[SAMPLES, epoch, number_of(id)]);
        let speed =
            if self.config.speeds.is_empty() { 1.0 } else { self.config.speeds[rng.usize(..self.config.speeds.len())] };
        change_speed(samples, rate_hz, speed);
        if let Some(NoiseConfig { probability, min_snr_db, max_snr_db }) = self.config.noise
            && rng.f32() < probability
        {
            let (snr_db, colour) = (between(rng, min_snr_db, max_snr_db), between(rng, 0.0, 0.95));
            noise::add(samples, snr_db, colour, rng);
        }
        speed
    }

    /// Masks the features of utterance `id` in `epoch`: `n_orders` blocks (statics, deltas, ...) of equal width a frame.
    ///
    /// A band is masked in every block, or the deltas would show what the statics hide.
    ///
    /// # Shapes
    /// - `features` `[time, n_orders, n_bins]`
    pub fn mask_features(&self, epoch: u64, id: &str, features: &mut [f32], n_bins: usize, n_orders: usize) {
        let Some(config) = self.config.masks else { return };
        let rng = &mut generator(self.seed, &[FEATURES, epoch, number_of(id)]);
        let n_frames = features.len() / (n_bins * n_orders);
        for _ in 0..config.n_bands {
            let (start, end) = any_span(rng, n_bins, config.max_bins);
            features.chunks_exact_mut(n_bins).for_each(|block| block[start..end].fill(0.0));
        }
        for _ in 0..config.n_stretches {
            let max_frames = config.max_frames.min(n_frames * config.max_percent / 100);
            let (start, end) = any_span(rng, n_frames, max_frames);
            features[start * n_bins * n_orders..end * n_bins * n_orders].fill(0.0);
        }
    }
}

/// From 0 to `max_length` of `n`, anywhere.
fn any_span(rng: &mut Rng, n: usize, max_length: usize) -> (usize, usize) {
    let length = rng.usize(..=max_length.min(n));
    let start = rng.usize(..=n - length);
    (start, start + length)
}

/// Plays the samples faster or slower: pitch and formants move along.
fn change_speed(samples: &mut Vec<f32>, rate_hz: u32, speed: f64) {
    let played_hz = (f64::from(rate_hz) * speed).round() as u32;
    if played_hz != rate_hz {
        *samples = play(std::mem::take(samples), played_hz, rate_hz);
    }
}

#[cfg(test)]
mod tests;
