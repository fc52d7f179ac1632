//! What only capsules have: gradients for every routing and window, where they pass, labels without a loss, dropout, a
//! loss curve to the bit. What all networks have in common is tested in [`crate::network`].

use srf_kernels::CtcLoss;

use super::*;
use crate::config::{AdamConfig, Dropout, Gradient, KappaStep, ModelConfig, PerLayer, Routing, ScheduleConfig, routed};
use crate::network::testing::{Case, only, worst_error};
use crate::network::{DropoutSeed, Labels, Mode};
use crate::optim::Adam;

fn case<E: Element>(config: SrfConfig, seed: u64) -> Case<E> {
    Case::new(&ModelConfig::Srf(config), seed)
}

/// Three layers of different heights, depths and windows, small enough to move every tensor.
fn small(routing: Routing, iterations: usize, windows: [(usize, usize); 3]) -> SrfConfig {
    SrfConfig {
        features: 6,
        filters: 2,
        layers: 3,
        primary_height: 3,
        hidden_height: PerLayer::Each(vec![4, 2]),
        primary_depth: 2,
        hidden_depth: PerLayer::Each(vec![3, 4]),
        class_depth: 2,
        window_left: PerLayer::Each(windows.map(|(left, _)| left).to_vec()),
        window_right: PerLayer::Each(windows.map(|(_, right)| right).to_vec()),
        routing,
        iterations,
        gradient: Gradient::default(),
        dropout: Dropout { conv: 0.2, input: 0.2, between: 0.3 },
        ..SrfConfig::new(5)
    }
}

/// More than one block of capsules and filters, none of them whole.
fn wide() -> SrfConfig {
    SrfConfig {
        features: 23,
        filters: 18,
        layers: 2,
        primary_height: 9,
        hidden_height: PerLayer::Same(19),
        primary_depth: 8,
        hidden_depth: PerLayer::Same(5),
        class_depth: 8,
        ..SrfConfig::new(21)
    }
}

#[test]
fn gradients_of_every_tensor_equal_finite_differences() {
    let (names, labels): ([u64; 4], [Labels<'_>; 4]) = ([7, 3, 9, 1], [&[1, 1, 3], &[], &[2], &[]]);
    let dropout = Some(DropoutSeed { seed: 5, utterances: &names });
    let modes = [
        Mode::default(),
        Mode { uses_batch_statistics: true, ..Mode::default() },
        Mode { uses_batch_statistics: true, dropout, ..Mode::default() },
    ];
    let every_window = [[(1, 1), (1, 1), (1, 1)], [(2, 0), (1, 1), (0, 0)], [(0, 1), (2, 0), (1, 2)]];
    let pairs = every_window.into_iter().flat_map(|windows| modes.map(|mode| (windows, mode)));
    for (n, (windows, mode)) in pairs.enumerate() {
        let configs = routed(&small(Routing::Sdr, 1, windows)).into_iter().enumerate();
        // SDR and DR with every pair of windows and mode, every other one with one.
        for (_, config) in configs.filter(|(index, _)| *index < 3 || index % 9 == n) {
            let mut case = case::<f64>(config.clone(), 2);
            let x = case.batch(3, &[26, 9, 13, 0]);
            let (error, name) = worst_error(&mut case, mode, &x, &labels);
            // Differences of a loss near 10 are good to 1e-10; the largest gradient of some tensors is near 0.1.
            assert!(error < 1e-8, "{name} is off by {error:e}: {config:?} {mode:?}");
        }
    }
}

#[test]
fn utterances_without_a_loss_are_reported_and_change_nothing() {
    let mut case = case::<f64>(small(Routing::Sdr, 1, [(1, 1); 3]), 6);
    let x = case.batch(7, &[16, 12, 20, 9, 0]);
    let labels: [Labels<'_>; 5] = [&[1, 2], &[3, 3, 1], &[2, 4], &[5], &[1]];
    let outcome = case.run(Mode::default(), &x, &labels);
    let CtcLoss::Value(value) = outcome.losses[0] else { panic!("{:?}", outcome.losses) };
    let expected = [
        CtcLoss::Infeasible { n_frames_needed: 4 },
        CtcLoss::BadLabel { position: 1 },
        CtcLoss::BadLabel { position: 0 },
        CtcLoss::Infeasible { n_frames_needed: 1 },
    ];
    assert_eq!(outcome.losses[1..], expected);
    assert_eq!(outcome.mean, Some(value));
    assert!((1..5).all(|utterance| case.net.loss(&labels).gradient().real(utterance).iter().all(|&g| g == 0.0)));
    let alone = case.run(Mode::default(), &only(&x, &[0]), &labels[..1]);
    assert_eq!(alone.mean, outcome.mean);
    let largest = alone.gradient.iter().fold(0.0f64, |largest, g| largest.max(g.abs()));
    for (found, expected) in outcome.gradient.iter().zip(&alone.gradient) {
        // Further zeros may be summed in other groups.
        assert!((found - expected).abs() <= 1e-13 * largest, "{found} {expected}");
    }
}

/// Trains on one batch and gives the mean loss of every step.
fn train(case: &mut Case<f32>, seed: u64, x: &Frames<f32>, labels: &[Labels<'_>], n_steps: u64) -> Vec<f64> {
    let kappa = vec![KappaStep { from_epoch: 1, value: 0.2 }];
    let schedule = ScheduleConfig::Warmup { steps: 40, dimension: 1, kappa };
    let mut adam = Adam::new(AdamConfig::default(), case.layout.n_trainable());
    let names: Vec<u64> = (0..labels.len() as u64).collect();
    (1..=n_steps)
        .map(|step| {
            let dropout = Some(DropoutSeed { seed: seed ^ step, utterances: &names });
            let outcome = case.run(Mode { uses_batch_statistics: true, dropout, ..Mode::default() }, x, labels);
            let trainable = &mut case.values[..case.layout.n_trainable()];
            adam.update(trainable, &outcome.gradient, schedule.rate(step, 1));
            outcome.mean.unwrap()
        })
        .collect()
}

fn learner(dropout: f64) -> SrfConfig {
    SrfConfig {
        features: 10,
        filters: 8,
        layers: 2,
        primary_height: 12,
        hidden_height: PerLayer::Same(10),
        dropout: Dropout { conv: dropout, input: dropout, between: dropout },
        ..SrfConfig::new(9)
    }
}

#[test]
fn a_loss_curve_is_reproduced_from_its_seed_to_the_bit() {
    let run = |seed: u64| {
        let mut case = case::<f32>(learner(0.2), seed);
        let x = case.batch(9, &[70, 52, 33]);
        train(&mut case, seed, &x, &[&[3, 1, 1], &[5, 2], &[8, 8]], 10)
    };
    let curve = run(3);
    assert_eq!(curve, run(3));
    assert_ne!(curve, run(4));
    assert!(curve[9] < curve[0], "{curve:?}");
}

#[test]
fn gradients_pass_where_the_configuration_lets_them() {
    let gradient = |routing: Routing, iterations: usize, through_iterations: bool, through_time: bool| {
        let gradient = Gradient { through_iterations, through_time };
        let mut case = case::<f64>(SrfConfig { gradient, ..small(routing, iterations, [(1, 1); 3]) }, 2);
        let x = case.batch(3, &[26, 9]);
        case.run(Mode::default(), &x, &[&[1, 3], &[2]]).gradient
    };
    for (routing, iterations, has_iterations, has_time) in [
        (Routing::Sdr, 1, false, true),
        (Routing::Sdr, 2, true, true),
        (Routing::Dr, 2, true, false),
        (Routing::Em, 2, true, true),
        (Routing::SelfRouting, 1, false, true),
        (Routing::Inverted, 2, true, true),
    ] {
        let full = gradient(routing, iterations, true, true);
        assert_eq!(gradient(routing, iterations, false, true) != full, has_iterations, "{routing:?} {iterations}");
        assert_eq!(gradient(routing, iterations, true, false) != full, has_time, "{routing:?} {iterations}");
    }
}

#[test]
fn every_layer_drops_values_of_its_own() {
    let dropout = Dropout { conv: 0.0, input: 0.5, between: 0.5 };
    let hidden_height = PerLayer::Same(9);
    let config = SrfConfig { layers: 3, hidden_height, hidden_depth: PerLayer::Same(8), dropout, ..wide() };
    let mut case = case::<f32>(config, 2);
    let x = case.batch(3, &[40]);
    let dropout = Some(DropoutSeed { seed: 1, utterances: &[6] });
    case.net.forward(&mut case.values, Mode { dropout, ..Mode::default() }, &x);
    let kept = |frames: &Frames<f32>| frames.real(0).iter().map(|&x| x != 0.0).collect::<Vec<bool>>();
    let layers = ["ln_in", "ln_caps1", "ln_caps2"].map(|layer| kept(case.net.activation(layer).unwrap()));
    assert!(layers[0] != layers[1] && layers[1] != layers[2] && layers[0] != layers[2]);
    // 720 values at a rate of a half: five standard deviations are 67.
    for kept in layers {
        let n_kept = kept.iter().filter(|&&is_kept| is_kept).count();
        assert!(kept.len() == 720 && n_kept.abs_diff(360) < 67, "{n_kept} of {}", kept.len());
    }
}
