//! Cuts a stream of samples into overlapping frames.

use srf_base::random::scramble;

use super::config::FeaturesConfig;
use super::lanes::{Lanes, N_LANES};
use crate::I16_SCALE;

/// Samples beyond this are clamped: only corrupt files have them, and features must stay finite.
const LOUDEST: f32 = 1e9;

/// Samples that wait for their frames to be complete.
#[derive(Clone, Debug)]
pub(super) struct Framer {
    frame_samples: usize,
    shift_samples: usize,
    dither: Dither,
    /// Samples from the start of the next frame on (or a little before, see `start`).
    pending: Vec<f32>,
    /// Where in `pending` the next frame starts; may lie beyond its end when frames are further apart than long.
    start: usize,
}

impl Framer {
    pub(super) fn new(config: &FeaturesConfig) -> Self {
        Self {
            frame_samples: config.frame_samples(),
            shift_samples: config.shift_samples(),
            dither: Dither { deviation: config.dither, seed: config.dither_seed, position: 0 },
            pending: Vec::new(),
            start: 0,
        }
    }

    /// Forgets all samples.
    pub(super) fn reset(&mut self) {
        self.pending.clear();
        self.start = 0;
        self.dither.position = 0;
    }

    pub(super) fn push(&mut self, samples: &[f32]) {
        let used = self.start.min(self.pending.len());
        self.pending.drain(..used);
        self.start -= used;
        self.dither.append(samples, &mut self.pending);
    }

    /// How many frames are complete.
    pub(super) fn n_ready(&self) -> usize {
        let n_samples = self.pending.len().saturating_sub(self.start);
        n_samples.checked_sub(self.frame_samples).map_or(0, |rest| 1 + rest / self.shift_samples)
    }

    /// Takes the next frames, at most [`N_LANES`], into the lanes of `rows` (one row a sample); how many there were.
    ///
    /// Lanes without a frame are zero.
    pub(super) fn take(&mut self, rows: &mut [Lanes]) -> usize {
        let n_frames = self.n_ready().min(N_LANES);
        let at = |lane: usize| &self.pending[self.start + lane * self.shift_samples..][..self.frame_samples];
        if n_frames == N_LANES {
            let frames: [&[f32]; N_LANES] = std::array::from_fn(at);
            for (index, row) in rows.iter_mut().enumerate().take(self.frame_samples) {
                *row = Lanes(std::array::from_fn(|lane| frames[lane][index]));
            }
        } else {
            rows.fill(Lanes::ZERO);
            for lane in 0..n_frames {
                for (row, &sample) in rows.iter_mut().zip(at(lane)) {
                    row.0[lane] = sample;
                }
            }
        }
        self.start += n_frames * self.shift_samples;
        n_frames
    }
}

/// Noise that depends only on the seed and the sample's place in the utterance, not on how the samples arrive.
#[derive(Clone, Debug)]
struct Dither {
    deviation: f32,
    seed: u64,
    position: u64,
}

impl Dither {
    fn append(&mut self, samples: &[f32], pending: &mut Vec<f32>) {
        let start = self.position;
        self.position += samples.len() as u64;
        if self.deviation == 0.0 {
            pending.extend(samples.iter().copied().map(scaled));
            return;
        }
        let (seed, deviation) = (scramble(self.seed), self.deviation);
        let noise = |at: u64| deviation * normal(scramble(seed ^ at));
        pending.extend((start..).zip(samples).map(|(at, &sample)| scaled(sample) + noise(at)));
    }
}

/// A sample from -1 to 1 on the scale of 16-bit integers, which Kaldi's energies are defined on.
#[inline]
#[allow(clippy::manual_clamp, reason = "a NaN becomes finite, which `clamp` would keep")]
fn scaled(sample: f32) -> f32 {
    (sample * I16_SCALE).max(-LOUDEST).min(LOUDEST)
}

/// A nearly normal number of variance 1: the sum of four uniform ones, whose variances are 2^32 / 12 each.
fn normal(random: u64) -> f32 {
    let sum: u32 = [0, 16, 32, 48].iter().map(|shift| (random >> shift) as u32 & 0xffff).sum();
    (sum as f32 - 131_070.0) * (1.732_050_8 / 65_536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dither_has_mean_zero_and_the_deviation_asked_for() {
        let mut dither = Dither { deviation: 2.0, seed: 7, position: 0 };
        let mut noise = Vec::new();
        dither.append(&vec![0.0; 100_000], &mut noise);
        let mean = noise.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e5;
        let variance = noise.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 1e5;
        // Five times the standard error of the mean (2 / sqrt(n)) and of the variance (4 sqrt(2 / n)).
        assert!(mean.abs() < 0.032, "{mean}");
        assert!((variance - 4.0).abs() < 0.09, "{variance}");
    }
}
