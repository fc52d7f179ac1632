//! What concerns single layers and not the front end they form.

use srf_kernels::Conv;
use srf_kernels::check::{dot, gradient_error};
use srf_kernels::routing::{GradientPaths, Router, Routing, Workspace};

use super::*;
use crate::frames::Frames;
use crate::random::Random;

/// Lengths of the utterances that gradients are checked on; one has no frames.
const LENGTHS: [usize; 4] = [5, 0, 1, 3];

fn random_values(name: &str, n: usize) -> Vec<f64> {
    let mut random = Random::new(1, name);
    (0..n).map(|_| random.normal()).collect()
}

fn random_frames(name: &str, width: usize, margin: [usize; 2]) -> Frames<f64> {
    let mut frames = Frames::new(width, margin);
    frames.resize_for(LENGTHS);
    fill(&mut frames, &random_values(name, LENGTHS.iter().sum::<usize>() * width));
    frames
}

/// Writes the real frames of all utterances.
fn fill(frames: &mut Frames<f64>, mut values: &[f64]) {
    for frames in frames.each_real_mut() {
        let (some, rest) = values.split_at(frames.len());
        frames.copy_from_slice(some);
        values = rest;
    }
}

/// The real frames of all utterances.
fn real(frames: &Frames<f64>) -> Vec<f64> {
    (0..frames.n_utterances()).flat_map(|utterance| frames.real(utterance).to_vec()).collect()
}

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

#[test]
fn gradients_of_lengths_equal_finite_differences() {
    let (height, depth) = (3, 4);
    let x = random_frames("x", height * depth, [2, 1]);
    let grad_y = random_frames("dy", height, [0, 0]);
    let layer = Lengths::new(depth);
    let mut y = Frames::new(height, [0, 0]);
    layer.forward(&x, &mut y);
    let first: f64 = x.real(0)[..depth].iter().map(|x| x * x).sum();
    assert!((y.real(0)[0] - first.sqrt()).abs() < 1e-6, "{} {first}", y.real(0)[0]);
    let mut grad_x = Frames::new(height * depth, [2, 1]);
    layer.backward(&x, &y, &grad_y, &mut grad_x);
    let error = gradient_error(&real(&x), &real(&grad_x), |moved| {
        let mut x = x.clone();
        fill(&mut x, moved);
        layer.forward(&x, &mut y);
        dot(&real(&y), &real(&grad_y))
    });
    assert!(error < 1e-8, "{error}");
}

#[test]
fn dropout_drops_the_same_values_of_an_utterance_on_both_ways_and_in_any_batch() {
    let names = [11, 12, 13, 14];
    let draw = Some(Draw { seed: 4, utterances: &names });
    let layer = Dropout::new(0.4, 7);
    let (x, grad_y) = (random_frames("x", 20, [1, 2]), random_frames("dy", 20, [1, 2]));
    let (mut y, mut grad_x) = (x.clone(), grad_y.clone());
    layer.apply(draw, &mut y);
    layer.apply(draw, &mut grad_x);
    let error = gradient_error(&real(&x), &real(&grad_x), |moved| {
        fill(&mut y, moved);
        layer.apply(draw, &mut y);
        dot(&real(&y), &real(&grad_y))
    });
    // The loss is linear: nothing but rounding, 1e-16 of a loss of some tens at steps of 1e-5.
    assert!(error < 1e-9, "{error}");
    let n_dropped = real(&grad_x).iter().filter(|&&g| g == 0.0).count();
    // 180 draws at 0.4: 72, and five standard deviations of 6.6.
    assert!((39..=105).contains(&n_dropped), "{n_dropped}");
    let mut alone = Frames::new(20, [0, 0]);
    alone.resize_for([LENGTHS[3]]);
    alone.real_mut(0).copy_from_slice(grad_y.real(3));
    layer.apply(Some(Draw { seed: 4, utterances: &names[3..] }), &mut alone);
    assert_eq!(alone.real(0), grad_x.real(3));
    alone.real_mut(0).copy_from_slice(grad_y.real(3));
    Dropout::new(0.4, 8).apply(Some(Draw { seed: 4, utterances: &names[3..] }), &mut alone);
    assert_ne!(alone.real(0), grad_x.real(3), "another layer drops others");
    alone.real_mut(0).copy_from_slice(grad_x.real(3));
    layer.apply(None, &mut alone);
    assert_eq!(alone.real(0), grad_x.real(3), "inference drops nothing");
}

/// Three slices a window of 3 capsules of 2 values, to 4 of 3.
const ROUTING: Routing = Routing {
    n_in: 9,
    n_out: 4,
    depth_in: 2,
    depth_out: 3,
    stride: 6,
    n_iterations: 2,
    is_sequential: true,
    has_padding_class: true,
};

#[test]
fn gradients_of_capsules_equal_finite_differences() {
    let n_weights = ROUTING.n_in * ROUTING.n_out * ROUTING.depth_out * ROUTING.depth_in;
    let n_biases = n_weights / ROUTING.depth_in;
    for (is_sequential, n_iterations) in [(true, 1), (true, 2), (false, 2)] {
        let routing = Routing { is_sequential, n_iterations, ..ROUTING };
        let mut layer = Capsules::<f64>::new(Router::new(routing, None), GradientPaths::FULL);
        let (x, grad_y) = (random_frames("x", 6, [2, 0]), random_frames("dy", 12, [0, 0]));
        let [weight, bias] = [random_values("W", n_weights), random_values("b", n_biases)];
        let (mut y, mut grad_x, mut workspace) = (Frames::new(12, [0, 0]), Frames::new(6, [2, 0]), Workspace::new());
        layer.forward(CapsuleParams { weight: &weight, bias: &bias, own: &[] }, &x, &mut y, &mut workspace, &mut []);
        // Gradients are added to what is there.
        let (mut d_weight, mut d_bias) = (vec![1.0; n_weights], vec![1.0; n_biases]);
        let gradient = CapsuleGradient { weight: &mut d_weight, bias: &mut d_bias, own: &mut [] };
        layer.backward(&x, &y, &grad_y, gradient, &mut grad_x, &mut workspace);
        let of_params = d_weight.iter().chain(&d_bias).map(|g| g - 1.0);
        let slopes: Vec<f64> = of_params.chain(real(&grad_x)).collect();
        let error = gradient_error(&[weight, bias, real(&x)].concat(), &slopes, |moved| {
            let (weight, rest) = moved.split_at(n_weights);
            let (bias, frames) = rest.split_at(n_biases);
            let mut x = x.clone();
            fill(&mut x, frames);
            layer.forward(CapsuleParams { weight, bias, own: &[] }, &x, &mut y, &mut workspace, &mut []);
            dot(&real(&y), &real(&grad_y))
        });
        assert!(error < 1e-8, "{routing:?}: {error}");
    }
}

#[test]
fn decisions_are_kept_for_every_utterance_and_couplings_sum_to_one() {
    let Routing { n_in, n_out, depth_in, depth_out, .. } = ROUTING;
    let mut layer = Capsules::<f64>::new(Router::new(ROUTING, None), GradientPaths::FULL);
    let x = random_frames("x", 6, [1, 1]);
    let weight = random_values("W", n_in * n_out * depth_out * depth_in);
    let bias = random_values("b", n_in * n_out * depth_out);
    let params = CapsuleParams { weight: &weight, bias: &bias, own: &[] };
    let mut y = Frames::new(12, [0, 0]);
    let mut decisions = vec![Decisions::default(); LENGTHS.len()];
    layer.forward(params, &x, &mut y, &mut Workspace::new(), &mut decisions);
    for (Decisions { couplings, agreements }, n_slices) in decisions.iter().zip(LENGTHS) {
        assert_eq!([couplings.len(), agreements.len()], [n_slices * n_in * n_out; 2]);
        for (couplings, agreements) in couplings.chunks(n_out).zip(agreements.chunks(n_out)) {
            let sum: f64 = couplings.iter().sum();
            assert!((sum - 1.0).abs() < 1e-14, "{sum}");
            assert_eq!(couplings[0], 0.0, "nothing is routed to the padding class");
            // A coupling is the softmax of its agreements.
            let ratio = (agreements[1] - agreements[2]).exp();
            assert!((couplings[1] / couplings[2] / ratio - 1.0).abs() < 1e-12, "{couplings:?} {agreements:?}");
        }
    }
    let with_decisions = real(&y);
    layer.forward(params, &x, &mut y, &mut Workspace::new(), &mut []);
    assert_eq!(real(&y), with_decisions, "looking changes nothing");
}
