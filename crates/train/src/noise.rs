//! Adds noise at a signal-to-noise ratio.

use fastrand::Rng;

use crate::seed::normal;

/// Adds noise `snr_db` below the mean power of `samples`.
///
/// `colour` is 0 for white noise; towards 1 the low frequencies prevail, as they do in rooms and streets.
/// Silence stays silence: there is no power to be below.
pub(crate) fn add(samples: &mut [f32], snr_db: f32, colour: f32, rng: &mut Rng) {
    let signal = power(samples);
    if signal == 0.0 {
        return;
    }
    let noise = coloured(samples.len(), colour, rng);
    let gain = (signal / power(&noise).max(f32::MIN_POSITIVE) / 10f32.powf(snr_db / 10.0)).sqrt();
    for (sample, noise) in samples.iter_mut().zip(noise) {
        *sample += gain * noise;
    }
}

/// The mean square.
pub(crate) fn power(samples: &[f32]) -> f32 {
    let sum: f64 = samples.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (sum / samples.len().max(1) as f64) as f32
}

fn coloured(n_samples: usize, colour: f32, rng: &mut Rng) -> Vec<f32> {
    let mut state = 0.0;
    let next = |_| {
        state = colour * state + normal(rng);
        state
    };
    (0..n_samples).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_one_asked_for() {
        for (snr_db, colour) in [(0.0, 0.0), (10.0, 0.9), (30.0, 0.5)] {
            let clean: Vec<f32> = (0..16_000).map(|i| 3000.0 * (i as f32 * 0.1).sin()).collect();
            let mut noisy = clean.clone();
            add(&mut noisy, snr_db, colour, &mut Rng::with_seed(3));
            let noise: Vec<f32> = noisy.iter().zip(&clean).map(|(a, b)| a - b).collect();
            let found_db = 10.0 * (power(&clean) / power(&noise)).log10();
            // The gain is exact; what remains is the rounding of the sums.
            assert!((found_db - snr_db).abs() < 0.01, "{found_db}");
        }
    }

    #[test]
    fn silence_and_nothing_stay_as_they_are() {
        let mut silence = vec![0.0; 100];
        add(&mut silence, 10.0, 0.5, &mut Rng::with_seed(3));
        assert_eq!(silence, vec![0.0; 100]);
        add(&mut [], 10.0, 0.5, &mut Rng::with_seed(3));
    }
}
