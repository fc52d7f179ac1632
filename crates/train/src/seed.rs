//! Random numbers that depend on what they are for and never on when they are drawn.

use fastrand::Rng;
use srf_base::random::scramble;

/// The generator for one place, such as (epoch, utterance): equal places give equal numbers on any thread.
pub(crate) fn generator(seed: u64, place: &[u64]) -> Rng {
    Rng::with_seed(place.iter().fold(scramble(seed), |state, part| scramble(state ^ scramble(*part))))
}

/// A number between `low` and `high`.
pub(crate) fn between(rng: &mut Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * rng.f32()
}

/// A number of a normal distribution with mean 0 and variance 1 (twelve uniform ones, no farther than 6 from 0).
pub(crate) fn normal(rng: &mut Rng) -> f32 {
    (0..12).map(|_| rng.f32()).sum::<f32>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_own_numbers() {
        let first = |seed, place: &[u64]| generator(seed, place).u64(..);
        assert_eq!(first(1, &[2, 3]), first(1, &[2, 3]));
        let all = [
            first(1, &[2, 3]),
            first(1, &[3, 2]),
            first(2, &[2, 3]),
            first(1, &[2]),
            first(1, &[]),
            first(1, &[2, 3, 0]),
        ];
        let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut rng = generator(5, &[]);
        let n = 100_000;
        let values: Vec<f32> = (0..n).map(|_| normal(&mut rng)).collect();
        let mean = values.iter().sum::<f32>() / n as f32;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / n as f32;
        // Standard errors of both estimates are 0.0032 and 0.0045: four of them.
        assert!(mean.abs() < 0.013 && (variance - 1.0).abs() < 0.018, "{mean} {variance}");
    }
}
