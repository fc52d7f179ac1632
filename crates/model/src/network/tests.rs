//! Networks of every architecture: against finite differences; alone, in batches and on several threads; learning;
//! memory that is used again. What only capsules have is tested with them.

use super::testing::{Case, greedy, only, worst_error};
use super::*;
use crate::config::{
    AdamConfig, CnnConfig, CnnDropout, Directions, Dropout, KappaStep, LstmConfig, LstmDropout, Merge, PerLayer,
    ScheduleConfig, SrfConfig, TransformerConfig, TransformerDropout, routed,
};
use crate::optim::Adam;

/// A network of every kind and shape with `features`, `classes` and sizes of about `size`.
pub(crate) fn networks(features: usize, classes: usize, size: usize, rate: f64) -> Vec<ModelConfig> {
    let capsules = capsule_networks(features, classes, size, rate).into_iter().map(ModelConfig::Srf);
    other_networks(features, classes, size, rate).into_iter().chain(capsules).collect()
}

/// Those without capsules.
fn other_networks(features: usize, classes: usize, size: usize, rate: f64) -> Vec<ModelConfig> {
    let dropout = LstmDropout { conv: rate, input: rate, between: rate };
    let lstm = LstmConfig { features, filters: size, layers: 2, cells: size, dropout, ..LstmConfig::new(classes) };
    let dropout = CnnDropout { conv: rate, input: rate, between: rate };
    let cnn = CnnConfig {
        features,
        filters: size,
        layers: 3,
        narrow_layers: 1,
        narrow_filters: size,
        wide_filters: size + 1,
        dense_width: 2 * features,
        dropout,
        ..CnnConfig::new(classes)
    };
    let dropout = TransformerDropout { conv: rate, input: rate, attention: rate, inner: rate, residual: rate };
    let transformer = TransformerConfig {
        features,
        filters: size,
        layers: 2,
        width: 4 * size,
        heads: 2,
        inner: 3 * size,
        dropout,
        ..TransformerConfig::new(classes)
    };
    let forward = Directions::Forward;
    vec![
        ModelConfig::Lstm(lstm.clone()),
        ModelConfig::Lstm(LstmConfig { merge: Merge::Average, conv_stack: true, ..lstm.clone() }),
        ModelConfig::Lstm(LstmConfig { directions: forward, ..lstm.clone() }),
        ModelConfig::Lstm(LstmConfig { directions: forward, conv_stack: true, ..lstm }),
        ModelConfig::Cnn(cnn.clone()),
        ModelConfig::Cnn(CnnConfig { conv_stack: true, pool: 1, ..cnn }),
        ModelConfig::Transformer(transformer.clone()),
        ModelConfig::Transformer(TransformerConfig {
            conv_stack_statistics: false,
            distance_penalty: false,
            heads: 1,
            ..transformer
        }),
    ]
}

/// Capsules with every routing: layers of different heights, depths and windows.
fn capsule_networks(features: usize, classes: usize, size: usize, rate: f64) -> Vec<SrfConfig> {
    routed(&SrfConfig {
        features,
        filters: size,
        layers: 3,
        primary_height: size,
        hidden_height: PerLayer::Each(vec![size + 1, size - 1]),
        primary_depth: 8,
        hidden_depth: PerLayer::Each(vec![3, 5]),
        class_depth: 8,
        window_left: PerLayer::Each(vec![1, 0, 2]),
        dropout: Dropout { conv: rate, input: rate, between: rate },
        ..SrfConfig::new(classes)
    })
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
    for config in other_networks(6, 5, 3, 0.3) {
        let mut case = Case::<f64>::new(&config, 2);
        let x = case.batch(3, &[26, 9, 13, 0]);
        let values = case.values.clone();
        for mode in modes {
            case.values.clone_from(&values);
            let (error, name) = worst_error(&mut case, mode, &x, &labels);
            // Differences of a loss near 10 are good to 1e-10; the largest gradient of some tensors is near 0.1.
            assert!(error < 1e-8, "{name} is off by {error:e}: {config:?} {mode:?}");
        }
    }
}

#[test]
fn an_utterance_gives_the_same_bits_alone_in_any_batch_and_in_any_order() {
    for config in networks(23, 21, 19, 0.0) {
        let mut case = Case::<f32>::new(&config, 4);
        let x = case.batch(5, &[37, 0, 90, 1, 8, 61, 30, 31]);
        let together = case.logits(&x);
        assert!(together.iter().flatten().all(|x| x.is_finite()));
        let n_slices = |n: usize| n.div_ceil(case.net.frames_per_slice());
        assert!(together.iter().zip(x.lengths()).all(|(logits, &n)| logits.len() == n_slices(n) * 21), "{config:?}");
        for members in [vec![0], vec![1], vec![2], vec![3], vec![4], vec![5, 2], vec![6, 5, 4, 3, 2, 1, 0, 7]] {
            let found = case.logits(&only(&x, &members));
            let expected: Vec<Vec<f32>> = members.iter().map(|&member| together[member].clone()).collect();
            assert!(found == expected, "{members:?} of {config:?}");
        }
    }
}

#[test]
fn one_thread_and_many_give_the_same_bits_in_training() {
    let labels: [Labels<'_>; 5] = [&[1, 2], &[3], &[4, 4, 5], &[], &[9, 1]];
    let names = [1, 2, 3, 4, 5];
    for config in networks(23, 21, 19, 0.3) {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut case = Case::<f32>::new(&config, 4);
                let x = case.batch(6, &[41, 17, 64, 3, 29]);
                let dropout = Some(DropoutSeed { seed: 8, utterances: &names });
                let mode = Mode { uses_batch_statistics: true, dropout, ..Mode::default() };
                case.run(mode, &x, &labels)
            })
        };
        let one = run(1);
        assert!(one.mean.unwrap().is_finite() && one.gradient.iter().all(|g| g.is_finite()));
        for n_threads in [2, 3] {
            assert!(one == run(n_threads), "{n_threads} threads: {config:?}");
        }
    }
}

#[test]
fn nothing_of_a_larger_batch_is_left_in_the_next_one() {
    let labels: [Labels<'_>; 3] = [&[1, 2], &[], &[4, 4, 5]];
    let names = [5, 6, 7];
    let dropout = Some(DropoutSeed { seed: 8, utterances: &names });
    let mode = Mode { uses_batch_statistics: true, dropout, ..Mode::default() };
    for config in networks(23, 21, 19, 0.3) {
        let mut used = Case::<f32>::new(&config, 4);
        let values = used.values.clone();
        let x = used.batch(6, &[41, 0, 29]);
        let mut poison = used.batch(6, &[90, 70, 41, 60]);
        poison.each_real_mut().into_iter().for_each(|frames| frames.fill(f32::NAN));
        let spoilt = used.run(Mode { dropout: None, ..mode }, &poison, &[&[1], &[2], &[], &[3]]);
        assert!(spoilt.logits.iter().flatten().any(|x| x.is_nan()));
        used.values.clone_from(&values);
        let after = used.run(mode, &x, &labels);
        let fresh = Case::<f32>::new(&config, 4).run(mode, &x, &labels);
        assert!(fresh.gradient.iter().all(|g| g.is_finite()));
        assert!(after == fresh, "{config:?}");
    }
}

#[test]
fn a_batch_without_any_loss_has_no_mean_and_no_gradient() {
    for config in networks(6, 5, 3, 0.0) {
        let mut case = Case::<f64>::new(&config, 6);
        let x = case.batch(7, &[8, 12]);
        let outcome = case.run(Mode::default(), &x, &[&[1; 13], &[7]]);
        assert_eq!(outcome.mean, None);
        assert!(outcome.gradient.iter().all(|&g| g == 0.0), "{config:?}");
        let nothing = case.run(Mode { uses_batch_statistics: true, ..Mode::default() }, &case.batch(7, &[]), &[]);
        assert_eq!((nothing.mean, nothing.losses.len()), (None, 0));
        assert!(nothing.gradient.iter().all(|&g| g == 0.0), "{config:?}");
    }
}

#[test]
fn two_utterances_are_learnt_by_heart() {
    let labels: [Labels<'_>; 2] = [&[3, 1, 1, 7, 2, 6], &[5, 2, 4, 4]];
    let schedule =
        ScheduleConfig::Warmup { steps: 40, dimension: 1, kappa: vec![KappaStep { from_epoch: 1, value: 0.1 }] };
    for config in networks(10, 9, 12, 0.0) {
        let mut case = Case::<f32>::new(&config, 8);
        let x = case.batch(9, &[70, 52]);
        let mut adam = Adam::new(AdamConfig::default(), case.layout.n_trainable());
        let mut losses = Vec::new();
        for step in 1..=300 {
            let outcome = case.run(Mode { uses_batch_statistics: true, ..Mode::default() }, &x, &labels);
            let trainable = &mut case.values[..case.layout.n_trainable()];
            adam.update(trainable, &outcome.gradient, schedule.rate(step, 1));
            losses.push(outcome.mean.unwrap());
        }
        let found: Vec<Vec<u32>> = case.logits(&x).iter().map(|logits| greedy(logits, 9)).collect();
        assert_eq!(found, labels, "losses {:?} to {:?}: {config:?}", &losses[..3], &losses[losses.len() - 3..]);
    }
}
