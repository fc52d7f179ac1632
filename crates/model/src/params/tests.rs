//! Layouts: names, shapes, order, and agreement with the arithmetic for any network.

use proptest::prelude::*;

use super::*;
use crate::config::{SrfConfig, any_srf};
use crate::summary::srf_parameters;

fn srf_7l() -> (SrfParams, Layout) {
    SrfParams::new(&SrfConfig::new(63))
}

#[test]
fn tensors_have_their_names_and_shapes() {
    let (_, layout) = srf_7l();
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
    let (slots, layout) = srf_7l();
    assert_eq!(layout.n_values() - layout.n_trainable(), 256);
    for tensor in layout.tensors() {
        let is_statistic = tensor.name.contains(".moving_");
        assert_eq!(is_statistic, tensor.slot.offset >= layout.n_trainable(), "{}", tensor.name);
    }
    assert_eq!(slots.slicer.bn2.moving_var.range().end, layout.n_values());
}

#[test]
fn slots_point_at_the_tensors_they_are_named_after() {
    let (slots, layout) = srf_7l();
    let pairs = [
        (slots.slicer.conv1.a.kernel, "conv1.a.kernel"),
        (slots.slicer.conv2.b.bias, "conv2.b.bias"),
        (slots.slicer.bn1.gamma, "bn1.gamma"),
        (slots.slicer.bn1.moving_mean, "bn1.moving_mean"),
        (slots.slicer.bn2.beta, "bn2.beta"),
        (slots.proj.kernel, "proj.kernel"),
        (slots.encaps.b.kernel, "encaps.b.kernel"),
        (slots.ln_in.beta, "ln_in.beta"),
        (slots.caps[0].weight, "caps1.W"),
        (slots.caps[6].bias, "caps7.b"),
        (slots.ln_caps[2].gamma, "ln_caps3.gamma"),
        (slots.ln_out.gamma, "ln_out.gamma"),
    ];
    for (slot, name) in pairs {
        assert_eq!(slot, layout.find(name).unwrap().slot, "{name}");
    }
}

#[test]
fn slots_can_be_written_side_by_side() {
    let (slots, layout) = srf_7l();
    let mut gradient = vec![0.0_f32; layout.n_trainable()];
    let [bias, weight] = Slot::disjoint_mut([slots.caps[1].bias, slots.caps[1].weight], &mut gradient);
    bias.fill(2.0);
    weight.fill(1.0);
    assert_eq!(gradient.iter().sum::<f32>(), (90 * 30 * 8 * 8 + 2 * 90 * 30 * 8) as f32);
}

#[test]
fn parameters_are_found_by_name() {
    let mut params = Params::<f64>::zeros(Arc::new(srf_7l().1));
    params.tensor_mut("ln_out.beta").unwrap()[3] = 1.5;
    assert_eq!(params.tensor("ln_out.beta").unwrap()[3], 1.5);
    assert_eq!(params.tensor("ln_out.alpha"), None);
    assert_eq!(params.trainable().len() + 256, params.values.len());
}

proptest! {
    #[test]
    fn the_arithmetic_counts_what_is_laid_out(srf in any_srf()) {
        let (_, layout) = SrfParams::new(&srf);
        let counted = srf_parameters(&srf);
        prop_assert_eq!(layout.n_values() as u64, counted.total);
        prop_assert_eq!(layout.n_trainable() as u64, counted.trainable);
    }

    #[test]
    fn tensors_lie_end_to_end_under_names_of_their_own(srf in any_srf()) {
        let (_, layout) = SrfParams::new(&srf);
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
