//! What concerns single layers and not the front end they form.

use kernels::Conv;

use super::*;
use crate::frames::Frames;

#[test]
fn gradients_are_summed_in_the_order_of_utterances() {
    let (n, n_utterances) = (5000, 3);
    let mut parts: Vec<f32> = (0..n * n_utterances).map(|i| (i as f32 * 0.7).sin()).collect();
    let expected: Vec<f32> = (0..n).map(|i| parts[i] + parts[n + i] + parts[2 * n + i]).collect();
    sum_in_order(&mut parts, n);
    assert_eq!(parts[..n], expected);
    sum_in_order::<f32>(&mut [], n);
}

#[test]
fn halving_convolutions_give_half_the_frames_rounded_up() {
    let conv = Conv { kernel: [3, 3], stride: [2, 2], n_freq: 5, pad_freq: [1, 1], n_channels: 1, n_filters: 2 };
    let layer = ConvMaxout::<f32>::new(conv, [1, 1], 0.0, 0);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|n| layer.n_frames_out(n)), [0, 1, 1, 2, 2, 3]);
}

#[test]
fn moving_averages_follow_the_unbiased_variance_of_real_frames() {
    let mut x = Frames::<f64>::new(2, [0, 0]);
    x.resize_for([2, 1]);
    x.real_mut(0).copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    x.real_mut(1).copy_from_slice(&[5.0, 9.0]);
    let mut y = Frames::new(2, [1, 1]);
    let (mut mean, mut variance) = ([0.0, 0.0], [1.0, 1.0]);
    let mut layer = BatchNorm::new(2);
    let params = NormParams { gamma: &[1.0, 1.0], beta: &[0.0, 0.0] };
    let statistics = Statistics::Batch { moving_mean: &mut mean, moving_variance: &mut variance };
    layer.forward(params, statistics, &x, &mut y);
    // Channel 0 holds 1, 3, 5: mean 3, squared deviations 8, so 8/2 unbiased and 8/3 to normalise.
    assert!((mean[0] - 0.03).abs() < 1e-15 && (mean[1] - 0.05).abs() < 1e-15, "{mean:?}");
    assert!((variance[0] - 1.03).abs() < 1e-15 && (variance[1] - (0.99 + 0.13)).abs() < 1e-15, "{variance:?}");
    let normalised = (1.0 - 3.0) / (8.0f64 / 3.0 + 1e-3).sqrt();
    assert!((y.real(0)[0] - normalised).abs() < 1e-15);
}
