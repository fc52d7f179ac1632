//! What features to compute: plain data in, checked counts out.

use serde::{Deserialize, Serialize};

use super::cmvn::CmvnConfig;

/// Settings of the front end; the defaults are the 123 values a frame at 16 kHz that Kaldi gives with
/// `--num-mel-bins=40 --use-energy=true` and `add-deltas`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeaturesConfig {
    /// Samples a second; a recording of another rate is resampled to it.
    pub rate_hz: u32,
    /// Length of a frame in milliseconds.
    pub frame_ms: f64,
    /// From the start of one frame to the start of the next, in milliseconds.
    pub shift_ms: f64,
    /// Standard deviation of the noise added to the samples, on their 16-bit scale; 0 adds none.
    pub dither: f32,
    /// The noise is the same for the same seed.
    pub dither_seed: u64,
    /// Whether each frame's mean is taken away first.
    pub remove_dc: bool,
    /// Each sample loses this much of the one before it.
    pub preemphasis: f32,
    /// What a frame is multiplied by.
    pub window: WindowShape,
    /// Mel bins a frame.
    pub n_mels: usize,
    /// Where the lowest bin starts.
    pub low_hz: f64,
    /// Where the highest bin ends; 0 or less counts down from half the sample rate.
    pub high_hz: f64,
    /// Whether the frame's log energy comes before the mel bins.
    pub use_energy: bool,
    /// Log energies are not below the logarithm of this; 0 leaves only the smallest positive step of a float.
    pub energy_floor: f32,
    /// How many times deltas are taken; 0 gives static values only.
    pub delta_order: usize,
    /// Frames to either side that a delta looks at.
    pub delta_window_frames: usize,
    /// Normalisation of what the steps above give.
    pub cmvn: CmvnConfig,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        Self {
            rate_hz: 16_000,
            frame_ms: 25.0,
            shift_ms: 10.0,
            dither: 1.0,
            dither_seed: 0,
            remove_dc: true,
            preemphasis: 0.97,
            window: WindowShape::Povey,
            n_mels: 40,
            low_hz: 20.0,
            high_hz: 0.0,
            use_energy: true,
            energy_floor: 0.0,
            delta_order: 2,
            delta_window_frames: 2,
            cmvn: CmvnConfig::default(),
        }
    }
}

/// The shape of the window over N samples, x being the angle from 0 to 2 pi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeaturesConfigError {
    /// A setting is outside its range.
    #[error("features: `{field}` is {found}, expected {expected}")]
    Value {
        /// The setting.
        field: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        expected: String,
    },
    /// A mel bin falls between two points of the spectrum.
    #[error("features: mel bin {bin} of {n_mels} is too narrow for a spectrum of {n_points} points")]
    EmptyBin {
        /// The bin, from 0.
        bin: usize,
        /// How many were asked for.
        n_mels: usize,
        /// Points of the spectrum.
        n_points: usize,
    },
}

/// A frame longer than this is a slip of the pen.
const MAX_FRAME_SAMPLES: usize = 1 << 16;
const MAX_MELS: usize = 1 << 10;
const MAX_DELTA_ORDER: usize = 4;
const MAX_DELTA_WINDOW: usize = 16;

impl FeaturesConfig {
    /// Samples a frame; a fraction of a sample is dropped.
    pub fn frame_samples(&self) -> usize {
        samples(self.rate_hz, self.frame_ms)
    }

    /// Samples from the start of one frame to the start of the next.
    pub fn shift_samples(&self) -> usize {
        samples(self.rate_hz, self.shift_ms)
    }

    /// Values a frame before deltas.
    pub fn n_static(&self) -> usize {
        self.n_mels + usize::from(self.use_energy)
    }

    /// Values a frame.
    pub fn n_dims(&self) -> usize {
        self.n_static() * (1 + self.delta_order)
    }

    /// How many frames after a frame must be known before its deltas are.
    pub fn look_ahead_frames(&self) -> usize {
        self.delta_order * self.delta_window_frames
    }

    /// Frames that `n_samples` samples give: only whole ones count.
    pub fn n_frames(&self, n_samples: usize) -> usize {
        n_samples.checked_sub(self.frame_samples()).map_or(0, |rest| 1 + rest / self.shift_samples())
    }

    /// The upper end of the highest bin.
    pub(super) fn upper_hz(&self) -> f64 {
        if self.high_hz > 0.0 { self.high_hz } else { f64::from(self.rate_hz) / 2.0 + self.high_hz }
    }

    /// Whether every setting is in its range.
    pub fn check(&self) -> Result<(), FeaturesConfigError> {
        let value = |is_good, field, found: String, expected: String| {
            if is_good { Ok(()) } else { Err(FeaturesConfigError::Value { field, found, expected }) }
        };
        let nyquist_hz = f64::from(self.rate_hz) / 2.0;
        let rates = 1_000..=768_000;
        value(rates.contains(&self.rate_hz), "rate_hz", self.rate_hz.to_string(), "1000 to 768000".to_owned())?;
        let is_good = (2..=MAX_FRAME_SAMPLES).contains(&self.frame_samples());
        value(is_good, "frame_ms", self.frame_ms.to_string(), format!("2 to {MAX_FRAME_SAMPLES} samples"))?;
        let is_good = (1..=MAX_FRAME_SAMPLES).contains(&self.shift_samples());
        value(is_good, "shift_ms", self.shift_ms.to_string(), format!("1 to {MAX_FRAME_SAMPLES} samples"))?;
        let is_good = self.dither.is_finite() && self.dither >= 0.0;
        value(is_good, "dither", self.dither.to_string(), "0 or more".to_owned())?;
        let is_good = (0.0..=1.0).contains(&self.preemphasis);
        value(is_good, "preemphasis", self.preemphasis.to_string(), "0 to 1".to_owned())?;
        value((1..=MAX_MELS).contains(&self.n_mels), "n_mels", self.n_mels.to_string(), format!("1 to {MAX_MELS}"))?;
        let is_good = self.low_hz >= 0.0 && self.low_hz < self.upper_hz();
        value(is_good, "low_hz", self.low_hz.to_string(), "at least 0 and below high_hz".to_owned())?;
        let is_good = self.upper_hz() <= nyquist_hz;
        value(is_good, "high_hz", self.high_hz.to_string(), format!("at most half the rate, {nyquist_hz}"))?;
        let is_good = self.energy_floor.is_finite() && self.energy_floor >= 0.0;
        value(is_good, "energy_floor", self.energy_floor.to_string(), "0 or more".to_owned())?;
        let is_good = self.delta_order <= MAX_DELTA_ORDER;
        value(is_good, "delta_order", self.delta_order.to_string(), format!("at most {MAX_DELTA_ORDER}"))?;
        let is_good = (1..=MAX_DELTA_WINDOW).contains(&self.delta_window_frames);
        let expected = format!("1 to {MAX_DELTA_WINDOW}");
        value(is_good, "delta_window_frames", self.delta_window_frames.to_string(), expected)?;
        self.cmvn.check()
    }
}

fn samples(rate_hz: u32, span_ms: f64) -> usize {
    // The tiny addition keeps 16000 x 0.025 from becoming 399.99...
    (f64::from(rate_hz) * span_ms / 1000.0 + 1e-6) as usize
}
