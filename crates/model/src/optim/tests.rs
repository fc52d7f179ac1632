//! Adam and the schedule against hand values, the formula and themselves on other threads.

use proptest::prelude::*;

use super::*;
use crate::config::{KappaStep, ScheduleConfig};

fn timit() -> ScheduleConfig {
    let kappa = vec![KappaStep { from_epoch: 1, value: 0.5 }, KappaStep { from_epoch: 28, value: 0.1 }];
    ScheduleConfig::Warmup { steps: 1200, dimension: 1, kappa }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found}, expected {expected}");
}

#[test]
fn the_rate_rises_to_the_end_of_warm_up_then_falls_with_the_root_of_the_step() {
    let schedule = timit();
    close(schedule.rate(1, 1), 0.5 * 1200.0_f64.powf(-1.5));
    close(schedule.rate(600, 3), 0.5 * 600.0 * 1200.0_f64.powf(-1.5));
    close(schedule.rate(1200, 6), 0.5 / 1200.0_f64.sqrt());
    close(schedule.rate(4800, 27), 0.5 / 4800.0_f64.sqrt());
}

#[test]
fn kappa_changes_at_the_first_step_of_its_epoch_and_holds_to_the_end() {
    let schedule = timit();
    close(schedule.rate(6000, 27) / schedule.rate(6000, 28), 5.0);
    close(schedule.rate(42_000, 200), 0.1 / 42_000.0_f64.sqrt());
}

#[test]
fn a_width_scales_the_rate_by_its_root() {
    let kappa = vec![KappaStep { from_epoch: 1, value: 1.5 }];
    let schedule = ScheduleConfig::Warmup { steps: 1000, dimension: 128, kappa };
    close(schedule.rate(1000, 1), 1.5 / 128.0_f64.sqrt() / 1000.0_f64.sqrt());
}

#[test]
fn a_constant_rate_stays() {
    let schedule = ScheduleConfig::Constant { rate: 1e-4 };
    assert_eq!(schedule.rate(1, 1), 1e-4);
    assert_eq!(schedule.rate(1_000_000, 80), 1e-4);
}

/// With g = 2 twice: m = 0.2, 0.38; v = 0.08, 0.1584; the first update is almost exactly the rate.
#[test]
fn two_updates_by_hand() {
    let mut adam = Adam::<f64>::new(AdamConfig::default(), 1);
    let mut values = [1.0];
    adam.update(&mut values, &[2.0], 0.01);
    close(adam.means[0], 0.2);
    close(adam.squares[0], 0.08);
    close(values[0], 1.0 - 0.01 * 0.02_f64.sqrt() / 0.1 * 0.2 / (0.08_f64.sqrt() + 1e-9));
    let before = values[0];
    adam.update(&mut values, &[2.0], 0.01);
    close(adam.means[0], 0.38);
    close(adam.squares[0], 0.1584);
    let correction = (1.0_f64 - 0.9604).sqrt() / 0.19;
    close(values[0], before - 0.01 * correction * 0.38 / (0.1584_f64.sqrt() + 1e-9));
    assert_eq!(adam.n_updates, 2);
}

#[test]
fn the_exponent_of_the_correction_may_be_any_number_of_updates() {
    for k in [0, 1, 2, 3, 10, 1000, 123_457] {
        let expected = 0.98_f64.powf(k as f64);
        // One rounding a squaring, doubled by each further one.
        assert!((power(0.98, k) - expected).abs() <= 1e-11 * expected.max(1e-300), "0.98^{k}");
    }
    assert_eq!(power(0.98, u64::MAX), 0.0);
}

#[test]
fn a_constant_gradient_moves_every_number_by_about_the_rate_each_update() {
    let mut adam = Adam::<f64>::new(AdamConfig::default(), 3);
    let mut values = [0.0; 3];
    for _ in 0..50 {
        adam.update(&mut values, &[3.0, -0.01, 0.0], 0.001);
    }
    assert!((values[0] + 0.05).abs() < 1e-6 && (values[1] - 0.05).abs() < 1e-6, "{values:?}");
    assert_eq!(values[2], 0.0);
}

#[test]
fn the_minimum_of_a_bowl_is_found() {
    let mut adam = Adam::<f32>::new(AdamConfig::default(), 2);
    let mut values = [4.0_f32, -3.0];
    for step in 1..=2000 {
        let gradient = values.map(|v| v - 1.0);
        adam.update(&mut values, &gradient, 0.5 / f64::from(step).sqrt());
    }
    assert!(values.iter().all(|v| (v - 1.0).abs() < 1e-2), "{values:?}");
}

fn random_buffer(name: &str, n: usize) -> Vec<f32> {
    let mut random = crate::random::Random::new(11, name);
    (0..n).map(|_| random.normal() as f32).collect()
}

#[test]
fn one_thread_and_many_give_the_same_bits() {
    let n = 5 * BLOCK + 17;
    let run = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let mut adam = Adam::new(AdamConfig::default(), n);
            let mut values = random_buffer("values", n);
            let mut norms = Vec::new();
            for round in 0..3 {
                let mut gradient = random_buffer(&format!("gradient {round}"), n);
                norms.push(clip_norm(&mut gradient, 100.0));
                adam.update(&mut values, &gradient, 0.01);
            }
            (values, norms, adam)
        })
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn a_saved_state_goes_on_with_the_same_bits() {
    let gradient = random_buffer("gradient", 100);
    let mut adam = Adam::new(AdamConfig::default(), 100);
    let mut values = random_buffer("values", 100);
    adam.update(&mut values, &gradient, 0.1);
    let Adam { config, means, squares, n_updates } = adam.clone();
    let (mut restored, mut restored_values) = (Adam { config, means, squares, n_updates }, values.clone());
    adam.update(&mut values, &gradient, 0.1);
    restored.update(&mut restored_values, &gradient, 0.1);
    assert_eq!((adam, values), (restored, restored_values));
}

#[test]
fn a_norm_that_is_not_finite_is_reported_and_nothing_is_scaled() {
    let mut gradient = [1.0_f32, f32::NAN, 3.0];
    assert!(clip_norm(&mut gradient, 0.1).is_nan());
    assert_eq!([gradient[0], gradient[2]], [1.0, 3.0]);
}

proptest! {
    #[test]
    fn clipping_keeps_directions_and_bounds_lengths(
        gradient in prop::collection::vec(-10.0_f64..10.0, 1..200), max_norm in 0.1_f64..50.0
    ) {
        let mut clipped = gradient.clone();
        let norm = clip_norm(&mut clipped, max_norm);
        prop_assert!((norm - gradient.iter().map(|g| g * g).sum::<f64>().sqrt()).abs() <= 1e-12 * norm);
        prop_assert!(global_norm(&clipped) <= max_norm.min(norm) * (1.0 + 1e-12));
        let factor = if norm > max_norm { max_norm / norm } else { 1.0 };
        for (before, after) in gradient.iter().zip(&clipped) {
            prop_assert!((before * factor - after).abs() <= 1e-12 * before.abs());
        }
    }

    #[test]
    fn an_update_of_one_number_does_not_see_the_others(
        gradient in prop::collection::vec(-10.0_f32..10.0, 2..50), rate in 1e-4_f64..1.0
    ) {
        let mut together = vec![1.0_f32; gradient.len()];
        Adam::new(AdamConfig::default(), gradient.len()).update(&mut together, &gradient, rate);
        for (&g, &expected) in gradient.iter().zip(&together) {
            let mut alone = [1.0_f32];
            Adam::new(AdamConfig::default(), 1).update(&mut alone, &[g], rate);
            prop_assert_eq!(alone[0].to_bits(), expected.to_bits());
        }
    }
}
