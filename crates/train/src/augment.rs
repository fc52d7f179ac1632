//! Augmentation: changes utterances a little in every epoch; off by default.
//!
//! On the samples speed perturbation, rooms, noise and the band of a telephone; on the features masks (SpecAugment).
//! What happens to an utterance depends on the seed, the epoch and its id alone, so a run can be repeated and resumed
//! with any number of threads.

use fastrand::Rng;
use srf_base::random::hash_of;
use srf_model::config::InvalidConfig;
pub use srf_model::config::{AugmentConfig, MaskConfig, NoiseConfig, RoomsConfig};

use crate::noise;
use crate::playback::play;
use crate::seed::{between, generator, normal};

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
    pub fn new(config: AugmentConfig, seed: u64) -> Result<Self, InvalidConfig> {
        config.validate()?;
        Ok(Self { config, seed })
    }

    /// Whether there is nothing to do.
    pub fn is_off(&self) -> bool {
        self.config == AugmentConfig::default()
    }

    /// Whether samples change, hence features have to be computed anew in every epoch.
    pub fn changes_samples(&self) -> bool {
        let AugmentConfig { speeds, rooms, noise, telephone, masks: _ } = &self.config;
        !speeds.is_empty() || rooms.is_some() || noise.is_some() || 0.0 < *telephone
    }

    /// How many times as long as it was an utterance can become.
    pub fn max_stretch(&self) -> f64 {
        self.config.speeds.iter().fold(1.0, |stretch: f64, speed| stretch.max(1.0 / speed))
    }

    /// Changes the samples of utterance `id` in `epoch`, and says how much faster they are now.
    pub fn change_samples(&self, epoch: u64, id: &str, rate_hz: u32, samples: &mut Vec<f32>) -> f64 {
        let rng = &mut generator(self.seed, &[SAMPLES, epoch, hash_of(id)]);
        let speed =
            if self.config.speeds.is_empty() { 1.0 } else { self.config.speeds[rng.usize(..self.config.speeds.len())] };
        change_speed(samples, rate_hz, speed);
        if let Some(RoomsConfig { probability, min_t60_s, max_t60_s }) = self.config.rooms
            && rng.f32() < probability
        {
            reverberate(samples, rate_hz, between(rng, min_t60_s, max_t60_s), rng);
        }
        if let Some(NoiseConfig { probability, min_snr_db, max_snr_db }) = self.config.noise
            && rng.f32() < probability
        {
            let (snr_db, colour) = (between(rng, min_snr_db, max_snr_db), between(rng, 0.0, 0.95));
            noise::add(samples, snr_db, colour, rng);
        }
        // Last, for a telephone transmits the room and the noise too.
        if 0.0 < self.config.telephone && rng.f32() < self.config.telephone {
            limit_band(samples, rate_hz);
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
        let rng = &mut generator(self.seed, &[FEATURES, epoch, hash_of(id)]);
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

/// Echoes per second of decay: enough that single ones are not heard, few enough to add one by one.
const ECHOES_PER_S: f32 = 400.0;

/// Adds echoes at random times whose level falls by 60 dB within `t60_s`. The length and the mean power stay.
fn reverberate(samples: &mut [f32], rate_hz: u32, t60_s: f32, rng: &mut Rng) {
    let (rate_hz, before) = (rate_hz as f32, noise::power(samples));
    let dry = samples.to_vec();
    for _ in 0..(ECHOES_PER_S * t60_s) as usize {
        let delay_s = rng.f32() * t60_s;
        let level = 0.25 * normal(rng) * 10f32.powf(-3.0 * delay_s / t60_s);
        let delay = 1 + (delay_s * rate_hz) as usize;
        samples.iter_mut().skip(delay).zip(&dry).for_each(|(sample, echo)| *sample += level * echo);
    }
    let after = noise::power(samples);
    let gain = if after > 0.0 { (before / after).sqrt() } else { 1.0 };
    samples.iter_mut().for_each(|sample| *sample *= gain);
}

const TELEPHONE_HZ: u32 = 8000;

/// Samples at the rate of a telephone and back: nothing above 4 kHz remains.
fn limit_band(samples: &mut Vec<f32>, rate_hz: u32) {
    if TELEPHONE_HZ < rate_hz {
        let n_samples = samples.len();
        let narrow = play(std::mem::take(samples), rate_hz, TELEPHONE_HZ);
        *samples = play(narrow, TELEPHONE_HZ, rate_hz);
        samples.resize(n_samples, 0.0);
    }
}

#[cfg(test)]
mod tests;
