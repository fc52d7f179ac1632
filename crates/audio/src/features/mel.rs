//! The mel filterbank: energies of overlapping triangular bins of a power spectrum.

use super::config::{FeaturesConfig, FeaturesConfigError};
use super::lanes::Lanes;

/// Bins evenly spaced in mel = 1127 ln(1 + f / 700), each a triangle from its left neighbour's centre to its right's.
#[derive(Clone, Debug)]
pub(super) struct MelBank {
    bins: Vec<Bin>,
}

#[derive(Clone, Debug)]
struct Bin {
    /// The first point of the spectrum with any weight.
    first: usize,
    weights: Vec<f32>,
}

fn mel(hz: f64) -> f64 {
    1127.0 * (1.0 + hz / 700.0).ln()
}

impl MelBank {
    /// For a spectrum of `n_points` from 0 up to half the sample rate.
    pub(super) fn new(config: &FeaturesConfig, n_points: usize) -> Result<Self, FeaturesConfigError> {
        let mel_bins = config.mel_bins;
        let low = mel(config.low_hz);
        let step = (mel(config.upper_hz()) - low) / (mel_bins + 1) as f64;
        let point_hz = f64::from(config.sample_rate_hz) / 2.0 / n_points as f64;
        let bins = (0..mel_bins).map(|bin| {
            let left = low + bin as f64 * step;
            let weight = |point: usize| 1.0 - ((mel(point_hz * point as f64) - left) / step - 1.0).abs();
            let points: Vec<usize> = (0..n_points).filter(|point| weight(*point) > 0.0).collect();
            let first = *points.first().ok_or(FeaturesConfigError::EmptyBin { bin, mel_bins, n_points })?;
            Ok(Bin { first, weights: points.iter().map(|point| weight(*point) as f32).collect() })
        });
        Ok(Self { bins: bins.collect::<Result<_, _>>()? })
    }

    /// The logarithm of each bin's energy.
    pub(super) fn apply(&self, power: &[Lanes], log_energies: &mut [Lanes]) {
        for (bin, log_energy) in self.bins.iter().zip(log_energies) {
            let points = &power[bin.first..][..bin.weights.len()];
            let mut energy = Lanes::ZERO;
            for (point, weight) in points.iter().zip(&bin.weights) {
                energy += *point * *weight;
            }
            *log_energy = energy.max(f32::EPSILON).ln();
        }
    }
}
