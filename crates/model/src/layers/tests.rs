//! Single layers.

use srf_kernels::Conv;
use srf_kernels::check::{dot, gradient_error};

use super::*;
use crate::config::{CapsuleShape, Routing, SrfConfig};
use crate::params::{Layout, Plan};
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
        let (part, rest) = values.split_at(frames.len());
        frames.copy_from_slice(part);
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
    let layer = ConvMaxout::<f32>::new(Plan::new(1).layer("conv", &[]), conv, [1, 1], (0.0, 0));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|n| layer.n_frames_out(n)), [0, 1, 1, 2, 2, 3]);
}

#[test]
fn gradients_of_convolutions_over_several_blocks_of_time_equal_finite_differences() {
    let halving = Conv { kernel: [3, 3], stride: [2, 2], n_freq: 2, pad_freq: [0, 1], n_channels: 1, n_filters: 2 };
    let keeping = Conv { kernel: [5, 3], stride: [1, 1], pad_freq: [1, 1], n_filters: 1, ..halving };
    for (conv, pad_time) in [(halving, [1, 1]), (keeping, [2, 2])] {
        let mut plan = Plan::new(1);
        let mut layer = ConvMaxout::<f64>::new(plan.layer("conv", &[]), conv, pad_time, (0.3, 2));
        let params = random_values("kernels", plan.finish().n_trainable());
        let mut x = Frames::new(2, pad_time);
        x.resize_for([150, 0, 131]);
        let inputs = random_values("x", 2 * 281);
        fill(&mut x, &inputs);
        let mode = Mode { dropout: Some(DropoutSeed { seed: 1, utterances: &[4, 5, 6] }), ..Mode::default() };
        let mut workspace = Workspace::default();
        let mut y = Frames::new(conv.width_out(), [0, 0]);
        let pass = Forward { params: &params, statistics: &mut [], mode, workspace: &mut workspace };
        layer.forward(&pass, &x, &mut y);
        let mut d_y = y.clone();
        let weights = random_values("dy", real(&y).len());
        fill(&mut d_y, &weights);
        let (mut gradient, mut d_x) = (vec![0.0; params.len()], Frames::new(2, [0, 0]));
        let pass = &mut Backward { params: &params, gradient: &mut gradient, mode, workspace: &mut workspace };
        layer.backward(pass, &x, &d_y, Some(&mut d_x));
        let slopes = [gradient, real(&d_x)].concat();
        let error = gradient_error(&[params.clone(), inputs].concat(), &slopes, |moved| {
            let (params, inputs) = moved.split_at(params.len());
            let mut x = x.clone();
            fill(&mut x, inputs);
            let pass = Forward { params, statistics: &mut [], mode, workspace: &mut workspace };
            layer.forward(&pass, &x, &mut y);
            dot(&real(&y), &weights)
        });
        // Differences of a loss near 100 are good to 1e-9 of gradients near 10.
        assert!(error < 1e-8, "{conv:?}: {error}");
    }
}

#[test]
fn moving_averages_follow_the_unbiased_variance_of_real_frames() {
    let mut x = Frames::<f64>::new(2, [0, 0]);
    x.resize_for([2, 1]);
    x.real_mut(0).copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    x.real_mut(1).copy_from_slice(&[5.0, 9.0]);
    let mut y = Frames::new(2, [1, 1]);
    let mut layer = BatchNorm::new(Plan::new(1).layer("bn", &[]), 2);
    let (params, mut statistics) = ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]);
    let mode = Mode { uses_batch_statistics: true, ..Mode::default() };
    let mut workspace = Workspace::default();
    let pass = &mut Forward { params: &params, statistics: &mut statistics, mode, workspace: &mut workspace };
    layer.forward(pass, &x, &mut y);
    let [mean, variance] = [&statistics[..2], &statistics[2..]];
    // Channel 0 holds 1, 3, 5: mean 3, squared deviations 8, so 8/2 unbiased and 8/3 to normalize.
    assert!((mean[0] - 0.03).abs() < 1e-15 && (mean[1] - 0.05).abs() < 1e-15, "{mean:?}");
    assert!((variance[0] - 1.03).abs() < 1e-15 && (variance[1] - (0.99 + 0.13)).abs() < 1e-15, "{variance:?}");
    let normalized = (1.0 - 3.0) / (8.0f64 / 3.0 + 1e-3).sqrt();
    assert!((y.real(0)[0] - normalized).abs() < 1e-15);
}

#[test]
fn gradients_of_lengths_equal_finite_differences() {
    let (height, depth) = (3, 4);
    let x = random_frames("x", height * depth, [2, 1]);
    let d_y = random_frames("dy", height, [0, 0]);
    let layer = Lengths::new(depth);
    let mut y = Frames::new(height, [0, 0]);
    layer.forward(&x, &mut y);
    let first: f64 = x.real(0)[..depth].iter().map(|x| x * x).sum();
    assert!((y.real(0)[0] - first.sqrt()).abs() < 1e-6, "{} {first}", y.real(0)[0]);
    let mut d_x = Frames::new(height * depth, [2, 1]);
    layer.backward(&x, &y, &d_y, &mut d_x);
    let error = gradient_error(&real(&x), &real(&d_x), |moved| {
        let mut x = x.clone();
        fill(&mut x, moved);
        layer.forward(&x, &mut y);
        dot(&real(&y), &real(&d_y))
    });
    assert!(error < 1e-8, "{error}");
}

#[test]
fn dropout_drops_the_same_values_of_an_utterance_in_both_passes_and_in_any_batch() {
    let names = [11, 12, 13, 14];
    let mode_of = |utterances| Mode { dropout: Some(DropoutSeed { seed: 4, utterances }), ..Mode::default() };
    let mode = mode_of(&names[..]);
    let layer = Dropout::new(0.4, 7);
    let (x, d_y) = (random_frames("x", 20, [1, 2]), random_frames("dy", 20, [1, 2]));
    let (mut y, mut d_x) = (x.clone(), d_y.clone());
    layer.apply(mode, &mut y);
    layer.apply(mode, &mut d_x);
    let error = gradient_error(&real(&x), &real(&d_x), |moved| {
        fill(&mut y, moved);
        layer.apply(mode, &mut y);
        dot(&real(&y), &real(&d_y))
    });
    // The loss is linear: nothing but rounding, 1e-16 of a loss of some tens at steps of 1e-5.
    assert!(error < 1e-9, "{error}");
    let n_dropped = real(&d_x).iter().filter(|&&g| g == 0.0).count();
    // 180 draws at 0.4: 72, and five standard deviations of 6.6.
    assert!((39..=105).contains(&n_dropped), "{n_dropped}");
    let mut alone = Frames::new(20, [0, 0]);
    alone.resize_for([LENGTHS[3]]);
    alone.real_mut(0).copy_from_slice(d_y.real(3));
    layer.apply(mode_of(&names[3..]), &mut alone);
    assert_eq!(alone.real(0), d_x.real(3));
    alone.real_mut(0).copy_from_slice(d_y.real(3));
    Dropout::new(0.4, 8).apply(mode_of(&names[3..]), &mut alone);
    assert_ne!(alone.real(0), d_x.real(3), "another layer drops others");
    alone.real_mut(0).copy_from_slice(d_x.real(3));
    layer.apply(Mode::default(), &mut alone);
    assert_eq!(alone.real(0), d_x.real(3), "inference drops nothing");
}

/// Windows of three slices of 3 capsules of 2 values, to 4 classes of 3.
const SHAPE: CapsuleShape = CapsuleShape {
    window_left: 2,
    window_right: 0,
    in_height: 3,
    in_depth: 2,
    out_height: 4,
    out_depth: 3,
    is_last: true,
};

fn capsules(routing: Routing, iterations: usize) -> (Capsules<f64>, Layout) {
    let mut plan = Plan::new(1);
    let config = SrfConfig { routing, iterations, ..SrfConfig::new(4) };
    let layer = Capsules::new(plan.layer("caps", &[]), &config, SHAPE);
    (layer, plan.finish())
}

fn forward(layer: &mut Capsules<f64>, params: &[f64], mode: Mode<'_>, x: &Frames<f64>, y: &mut Frames<f64>) {
    let mut workspace = Workspace::default();
    layer.forward(&mut Forward { params, statistics: &mut [], mode, workspace: &mut workspace }, x, y);
}

#[test]
fn gradients_of_capsules_equal_finite_differences() {
    for (routing, iterations) in [(Routing::Sdr, 1), (Routing::Sdr, 2), (Routing::Dr, 2)] {
        let (mut layer, layout) = capsules(routing, iterations);
        let (x, d_y) = (random_frames("x", 6, [2, 0]), random_frames("dy", 12, [0, 0]));
        let params = random_values("W and b", layout.n_trainable());
        let (mut y, mut d_x) = (Frames::new(12, [0, 0]), Frames::new(6, [2, 0]));
        let mode = Mode::default();
        forward(&mut layer, &params, mode, &x, &mut y);
        // Gradients are added to what is there.
        let mut gradient = vec![1.0; params.len()];
        let mut workspace = Workspace::default();
        let pass = &mut Backward { params: &params, gradient: &mut gradient, mode, workspace: &mut workspace };
        layer.backward(pass, &x, &y, &d_y, &mut d_x);
        let slopes: Vec<f64> = gradient.iter().map(|g| g - 1.0).chain(real(&d_x)).collect();
        let error = gradient_error(&[params.clone(), real(&x)].concat(), &slopes, |moved| {
            let (params, frames) = moved.split_at(layout.n_trainable());
            let mut x = x.clone();
            fill(&mut x, frames);
            forward(&mut layer, params, mode, &x, &mut y);
            dot(&real(&y), &real(&d_y))
        });
        assert!(error < 1e-8, "{routing:?} {iterations}: {error}");
    }
}

#[test]
fn decisions_are_kept_for_every_utterance_and_couplings_sum_to_one() {
    let (mut layer, layout) = capsules(Routing::Sdr, 2);
    let (n_in, n_out) = (SHAPE.n_inputs(), SHAPE.out_height);
    let x = random_frames("x", 6, [1, 1]);
    let params = random_values("W and b", layout.n_trainable());
    let mut y = Frames::new(12, [0, 0]);
    forward(&mut layer, &params, Mode { keeps_decisions: true, ..Mode::default() }, &x, &mut y);
    assert_eq!(layer.decisions().len(), LENGTHS.len());
    for (Decisions { couplings, agreements }, n_slices) in layer.decisions().iter().zip(LENGTHS) {
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
    forward(&mut layer, &params, Mode::default(), &x, &mut y);
    assert_eq!(real(&y), with_decisions, "keeping decisions changes nothing");
    assert!(layer.decisions().is_empty());
}
