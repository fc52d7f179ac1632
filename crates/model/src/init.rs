//! The model before training: a layout and a seed in, its numbers out.
//!
//! Every tensor is drawn from its own stream ([`Random`]), named after the tensor: its numbers depend on the seed, on
//! its name and on its initialiser, not on what else the model holds.

use std::sync::Arc;

use srf_kernels::Element;

use crate::params::{Init, Layout, Params};
use crate::random::Random;

/// Draws all tensors of a model.
pub fn initialise<E: Element>(layout: Arc<Layout>, seed: u64) -> Params<E> {
    let mut params = Params::zeros(layout);
    for tensor in params.layout.tensors() {
        let values = tensor.slot.of_mut(&mut params.values);
        fill(values, tensor.init, Random::new(seed, &tensor.name));
    }
    params
}

fn fill<E: Element>(values: &mut [E], init: Init, mut random: Random) {
    match init {
        Init::Zeros => values.fill(E::ZERO),
        Init::Ones => values.fill(E::ONE),
        Init::FanAvg { fan_in, fan_out } => {
            let limit = fan_avg_limit(fan_in, fan_out);
            values.fill_with(|| E::from_f64(limit * (2.0 * random.uniform() - 1.0)));
        }
        Init::Normal { deviation } => values.fill_with(|| E::from_f64(deviation * random.normal())),
        Init::Orthogonal { rows } => {
            let drawn = orthogonal(rows, values.len() / rows.max(1), random);
            values.iter_mut().zip(drawn).for_each(|(value, drawn)| *value = E::from_f64(drawn));
        }
        Init::ForgetOne => {
            values.fill(E::ZERO);
            let quarter = values.len() / 4;
            values[quarter..2 * quarter].fill(E::ONE);
        }
    }
}

/// The largest magnitude: sqrt(3 / n) for n the mean of both fans (Glorot and Bengio, 2010).
fn fan_avg_limit(fan_in: usize, fan_out: usize) -> f64 {
    (6.0 / (fan_in + fan_out) as f64).sqrt()
}

/// `rows` random directions at right angles, uniform over all such sets (Saxe, McClelland and Ganguli, 2014).
///
/// What a normal row has in common with those before it is taken off, and the rest is scaled to length 1; normal rows
/// four times as long as they are many are far from parallel, so one pass is good to the last digits.
fn orthogonal(rows: usize, width: usize, mut random: Random) -> Vec<f64> {
    let mut matrix: Vec<f64> = (0..rows * width).map(|_| random.normal()).collect();
    for index in 0..rows {
        let (done, rest) = matrix.split_at_mut(index * width);
        let row = &mut rest[..width];
        for other in done.chunks_exact(width) {
            let common = dot(other, row);
            row.iter_mut().zip(other).for_each(|(x, &other)| *x -= common * other);
        }
        let length = dot(row, row).sqrt();
        row.iter_mut().for_each(|x| *x /= length);
    }
    matrix
}

/// In sixteen running sums, so that it is fast and has the same bits everywhere.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Initialiser, LstmConfig, ModelConfig, SrfConfig};

    fn layout(initialiser: Initialiser) -> Arc<Layout> {
        let srf = SrfConfig { layers: 2, initialiser, ..SrfConfig::new(63) };
        Arc::new(Layout::new(&ModelConfig::Srf(srf)))
    }

    fn moments(values: &[f32]) -> (f64, f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance, values.iter().fold(0.0, |largest, v| f64::max(largest, f64::from(v.abs()))))
    }

    #[test]
    fn fan_avg_fills_its_range_with_its_variance() {
        let params = initialise::<f32>(layout(Initialiser::FanAvg), 5);
        // Fans by hand: taps times channels; a pair's depths for a capsule layer.
        let limits = [
            ("conv1.a.kernel", 6.0 / (9.0 + 9.0 * 64.0)),
            ("conv2.b.kernel", 6.0 / (2.0 * 9.0 * 64.0)),
            ("proj.kernel", 6.0 / (31.0 * 64.0 + 60.0)),
            ("encaps.a.kernel", 6.0 / (9.0 + 9.0 * 8.0)),
            ("caps1.W", 6.0 / 16.0),
            ("caps2.W", 6.0 / 16.0),
        ];
        for (name, squared_limit) in limits {
            let values = params.tensor(name).unwrap();
            let (mean, variance, largest) = moments(values);
            let (n, limit) = (values.len() as f64, f64::sqrt(squared_limit));
            // Five standard errors of the mean and of the variance of a uniform number.
            assert!(mean.abs() < 5.0 * limit / (3.0 * n).sqrt(), "{name}: mean {mean}");
            let error = 5.0 * squared_limit * (4.0 / 45.0 / n).sqrt();
            assert!((variance - squared_limit / 3.0).abs() < error, "{name}: variance {variance}");
            assert!(largest <= limit * (1.0 + 1e-7), "{name}: {largest} beyond {limit}");
            // n uniform numbers all miss the outermost 20 / n of the range with probability e^-20.
            assert!(largest > limit * (1.0 - 20.0 / n), "{name}: {largest} far below {limit}");
        }
    }

    #[test]
    fn normal_draws_weights_and_biases_of_capsules_only() {
        let params = initialise::<f32>(layout(Initialiser::Normal), 5);
        for name in ["caps1.W", "caps1.b", "caps2.W", "caps2.b"] {
            let values = params.tensor(name).unwrap();
            let (mean, variance, largest) = moments(values);
            let n = values.len() as f64;
            assert!(mean.abs() < 5.0 * 0.1 / n.sqrt(), "{name}: mean {mean}");
            assert!((variance - 0.01).abs() < 5.0 * 0.01 * (2.0 / n).sqrt(), "{name}: variance {variance}");
            assert!(largest > 0.3, "{name}: no tails, the largest is {largest}");
        }
        let plain = initialise::<f32>(layout(Initialiser::FanAvg), 5);
        assert_eq!(params.tensor("proj.kernel"), plain.tensor("proj.kernel"));
    }

    #[test]
    fn biases_shifts_and_means_are_0_scales_and_variances_are_1() {
        let params = initialise::<f32>(layout(Initialiser::FanAvg), 5);
        for tensor in params.layout.tensors() {
            let values = tensor.slot.of(&params.values);
            match tensor.name.rsplit('.').next().unwrap() {
                "bias" | "b" | "beta" | "moving_mean" => assert!(values.iter().all(|&v| v == 0.0), "{}", tensor.name),
                "gamma" | "moving_var" => assert!(values.iter().all(|&v| v == 1.0), "{}", tensor.name),
                _ => assert!(values.iter().any(|&v| v != 0.0), "{}", tensor.name),
            }
        }
    }

    #[test]
    fn recurrent_rows_stand_at_right_angles_and_forget_gates_start_open() {
        let lstm = LstmConfig { layers: 1, cells: 21, ..LstmConfig::new(5) };
        let params = initialise::<f64>(Arc::new(Layout::new(&ModelConfig::Lstm(lstm))), 3);
        let recurrent = params.tensor("lstm1.bwd.recurrent_kernel").unwrap();
        for (i, a) in recurrent.chunks(84).enumerate() {
            for (j, b) in recurrent.chunks(84).enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-13, "{i} {j}: {product}");
            }
        }
        let bias = params.tensor("lstm1.fwd.bias").unwrap();
        assert!((0..84).all(|k| bias[k] == f64::from(u8::from((21..42).contains(&k)))), "{bias:?}");
    }

    #[test]
    fn a_seed_gives_the_same_bits_and_another_seed_others() {
        let draw = |seed| initialise::<f32>(layout(Initialiser::FanAvg), seed).values;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_tensor_does_not_depend_on_the_rest_of_the_model() {
        let draw = |layers| {
            let srf = SrfConfig { layers, ..SrfConfig::new(63) };
            initialise::<f32>(Arc::new(Layout::new(&ModelConfig::Srf(srf))), 9)
        };
        let (two, five) = (draw(2), draw(5));
        assert_eq!(two.tensor("caps1.W"), five.tensor("caps1.W"));
        assert_ne!(five.tensor("caps2.W"), five.tensor("caps3.W"));
    }
}
