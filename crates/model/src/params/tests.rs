//! Layouts: names, shapes, order and counts of any network; initial values.

use proptest::prelude::*;

use super::*;
use crate::config::{CnnConfig, Initializer, LstmConfig, SrfConfig, TransformerConfig, any_srf};

fn srf_7l() -> Layout {
    srf_layout(&SrfConfig::new(63))
}

fn srf_layout(config: &SrfConfig) -> Layout {
    Layout::new(&ModelConfig::Srf(config.clone()))
}

#[test]
fn tensors_have_their_names_and_shapes() {
    let layout = srf_7l();
    let shape = |name: &str| layout.find(name).unwrap_or_else(|| panic!("no `{name}`")).shape.clone();
    assert_eq!(shape("conv1.a.kernel"), [3, 3, 1, 64]);
    assert_eq!(shape("conv2.b.kernel"), [3, 3, 64, 64]);
    assert_eq!(shape("conv2.b.bias"), [64]);
    assert_eq!(shape("bn2.moving_var"), [64]);
    assert_eq!(shape("proj.kernel"), [1984, 60]);
    assert_eq!(shape("encaps.a.kernel"), [3, 3, 1, 8]);
    assert_eq!(shape("ln_in.gamma"), [480]);
    assert_eq!(shape("caps1.W"), [180, 30, 8, 8]);
    assert_eq!(shape("caps2.b"), [90, 30, 8]);
    assert_eq!(shape("caps7.W"), [90, 63, 8, 8]);
    assert_eq!(shape("ln_caps7.beta"), [504]);
    assert_eq!(shape("ln_out.gamma"), [63]);
    assert_eq!(layout.tensors().len(), 3 * 4 + 2 * 4 + 2 + 2 + 7 * 4 + 2);
}

#[test]
fn statistics_come_last_and_nothing_else_does() {
    let layout = srf_7l();
    assert_eq!(layout.n_values() - layout.n_trainable(), 256);
    for tensor in layout.tensors() {
        let is_statistic = tensor.name.contains(".moving_");
        assert_eq!(is_statistic, tensor.slot.offset >= layout.n_trainable(), "{}", tensor.name);
    }
    assert_eq!(layout.find("bn2.moving_var").unwrap().slot.range().end, layout.n_values());
}

#[test]
fn slots_point_at_the_tensors_they_are_named_after() {
    let mut plan = Plan::new(3);
    let mut block = plan.layer("block", &[4]);
    let kernel = block.part("a").kernel("kernel", &[5, 2, 3, 4]);
    let mean = block.statistic("mean", &[4], Init::Zeros);
    let bias = block.part("a").trainable("bias", &[4], Init::Zeros);
    let other = plan.layer("other", &[2]).statistic("mean", &[2], Init::Ones);
    let layout = plan.finish();
    for (slot, name) in [(kernel, "block.a.kernel"), (bias, "block.a.bias")] {
        assert_eq!(slot, layout.find(name).unwrap().slot, "{name}");
    }
    // Slots of statistics count from the end of what is trained.
    for (slot, name) in [(mean, "block.mean"), (other, "other.mean")] {
        let found = layout.find(name).unwrap().slot;
        assert_eq!((slot.offset + layout.n_trainable(), slot.len), (found.offset, found.len), "{name}");
    }
    assert_eq!(layout.find("block.a.kernel").unwrap().init, Init::FanAvg { fan_in: 30, fan_out: 40 });
    let sizes: Vec<u64> = layout.layers().iter().map(|layer| layer.parameters).collect();
    assert_eq!((sizes, layout.n_values()), (vec![0, 128, 2], 130));
}

#[test]
fn slots_can_be_written_side_by_side() {
    let layout = srf_7l();
    let mut gradient = vec![0.0_f32; layout.n_trainable()];
    let slots = ["caps2.b", "caps2.W"].map(|name| layout.find(name).unwrap().slot);
    let [bias, weight] = Slot::disjoint_mut(slots, &mut gradient);
    bias.fill(2.0);
    weight.fill(1.0);
    assert_eq!(gradient.iter().sum::<f32>(), (90 * 30 * 8 * 8 + 2 * 90 * 30 * 8) as f32);
}

#[test]
fn products_are_those_of_a_count_by_hand() {
    let srf = srf_7l();
    let stack = 2 * 62 * 9 * 128 + 31 * 9 * 64 * 128;
    let primary = 1984 * 60 + 60 * 9 * 16;
    let votes = 180 * 8 * 30 * 8 + 5 * 90 * 8 * 30 * 8 + 90 * 8 * 63 * 8;
    assert_eq!(srf.flops(41), 2 * 11 * (stack + primary + votes));
    let lstm = Layout::new(&ModelConfig::Lstm(LstmConfig { layers: 2, cells: 10, ..LstmConfig::new(7) }));
    assert_eq!(lstm.flops(3), 2 * 3 * (2 * 40 * (123 + 10) + 2 * 40 * (20 + 10) + 20 * 7));
    let cnn = CnnConfig { layers: 2, narrow_layers: 1, dense_layers: 0, dense_width: 82, ..CnnConfig::new(7) };
    let cnn = Layout::new(&ModelConfig::Cnn(cnn));
    assert_eq!(cnn.flops(3), 2 * 3 * (123 * 15 * 128 + 41 * 15 * 64 * 8 + 164 * 14));
    let transformer = TransformerConfig { layers: 2, width: 8, inner: 16, ..TransformerConfig::new(7) };
    let transformer = Layout::new(&ModelConfig::Transformer(transformer));
    let block = 8 * (4 * 8 + 2 * 11 + 2 * 16);
    assert_eq!(transformer.flops(41), 2 * 11 * (stack + 1984 * 8 + 2 * block + 8 * 7));
}

#[test]
fn parameters_are_found_by_name() {
    let mut params = Params::<f64>::zeros(Arc::new(srf_7l()));
    params.tensor_mut("ln_out.beta").unwrap()[3] = 1.5;
    assert_eq!(params.tensor("ln_out.beta").unwrap()[3], 1.5);
    assert_eq!(params.tensor("ln_out.alpha"), None);
    assert_eq!(params.trainable().len() + 256, params.values.len());
}

proptest! {
    #[test]
    fn layers_have_all_the_numbers_of_the_model(srf in any_srf()) {
        let layout = srf_layout(&srf);
        let of_tensors: usize = layout.tensors().iter().map(|tensor| tensor.slot.len).sum();
        let of_layers: u64 = layout.layers().iter().map(|layer| layer.parameters).sum();
        prop_assert_eq!((layout.n_values(), layout.n_values() as u64), (of_tensors, of_layers));
        prop_assert_eq!(layout.n_trainable() + 4 * srf.filters, layout.n_values());
    }

    #[test]
    fn tensors_lie_end_to_end_under_names_of_their_own(srf in any_srf()) {
        let layout = srf_layout(&srf);
        let mut end = 0;
        for tensor in layout.tensors() {
            prop_assert_eq!(tensor.slot.offset, end);
            prop_assert_eq!(tensor.slot.len, tensor.shape.iter().product::<usize>());
            prop_assert_eq!(layout.find(&tensor.name), Some(tensor));
            end = tensor.slot.range().end;
        }
        prop_assert_eq!(end, layout.n_values());
    }
}

fn layout(initializer: Initializer) -> Arc<Layout> {
    let srf = SrfConfig { layers: 2, initializer, ..SrfConfig::new(63) };
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
    let params = Params::<f32>::initialize(layout(Initializer::FanAvg), 5);
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
    let params = Params::<f32>::initialize(layout(Initializer::Normal), 5);
    for name in ["caps1.W", "caps1.b", "caps2.W", "caps2.b"] {
        let values = params.tensor(name).unwrap();
        let (mean, variance, largest) = moments(values);
        let n = values.len() as f64;
        assert!(mean.abs() < 5.0 * 0.1 / n.sqrt(), "{name}: mean {mean}");
        assert!((variance - 0.01).abs() < 5.0 * 0.01 * (2.0 / n).sqrt(), "{name}: variance {variance}");
        assert!(largest > 0.3, "{name}: no tails, the largest is {largest}");
    }
    let plain = Params::<f32>::initialize(layout(Initializer::FanAvg), 5);
    assert_eq!(params.tensor("proj.kernel"), plain.tensor("proj.kernel"));
}

#[test]
fn biases_shifts_and_means_are_0_scales_and_variances_are_1() {
    let params = Params::<f32>::initialize(layout(Initializer::FanAvg), 5);
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
    let params = Params::<f64>::initialize(Arc::new(Layout::new(&ModelConfig::Lstm(lstm))), 3);
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
    let draw = |seed| Params::<f32>::initialize(layout(Initializer::FanAvg), seed).values;
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn a_tensor_does_not_depend_on_the_rest_of_the_model() {
    let draw = |layers| {
        let srf = SrfConfig { layers, ..SrfConfig::new(63) };
        Params::<f32>::initialize(Arc::new(Layout::new(&ModelConfig::Srf(srf))), 9)
    };
    let (two, five) = (draw(2), draw(5));
    assert_eq!(two.tensor("caps1.W"), five.tensor("caps1.W"));
    assert_ne!(five.tensor("caps2.W"), five.tensor("caps3.W"));
}
