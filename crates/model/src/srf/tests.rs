//! Whole networks: against finite differences; alone, in batches and on several threads; labels without a loss; learning;
//! memory that is used again.

use std::sync::Arc;

use kernels::CtcLoss;
use kernels::check::gradient_error;

use super::*;
use crate::config::{AdamConfig, Dropout, Gradient, KappaStep, PerLayer, Routing, ScheduleConfig, routed};
use crate::init::initialise;
use crate::layers::Draw;
use crate::optim::Adam;
use crate::random::Random;

/// A network with its parameters.
struct Case<E> {
    config: SrfConfig,
    net: Srf<E>,
    layout: Arc<Layout>,
    values: Vec<E>,
}

/// What a pass over a batch gives.
#[derive(Clone, Debug, PartialEq)]
struct Outcome<E> {
    logits: Vec<Vec<E>>,
    losses: Vec<CtcLoss>,
    mean: Option<f64>,
    gradient: Vec<E>,
    /// Parameters and moving statistics after the pass.
    values: Vec<E>,
}

impl<E: Element> Case<E> {
    /// Random numbers in every tensor: what starts at zero would hide a gradient.
    fn new(config: &SrfConfig, seed: u64) -> Self {
        config.validate().unwrap();
        let (net, layout) = Srf::new(config);
        let layout = Arc::new(layout);
        let mut values = initialise(Arc::clone(&layout), seed).values;
        let mut random = Random::new(seed, "tests of srf");
        for value in &mut values {
            *value += E::from_f64(0.4 * random.uniform() - 0.2);
        }
        Self { config: config.clone(), net, layout, values }
    }

    fn batch(&self, seed: u64, lengths: &[usize]) -> Frames<E> {
        let mut x = Frames::new(self.config.features, Srf::<E>::MARGIN);
        x.resize_for(lengths.iter().copied());
        for (utterance, frames) in x.each_real_mut().into_iter().enumerate() {
            let mut random = Random::new(seed, &format!("utterance {utterance}"));
            frames.fill_with(|| E::from_f64(random.normal()));
        }
        x
    }

    fn logits(&mut self, x: &Frames<E>) -> Vec<Vec<E>> {
        each(self.net.forward(&mut self.values, Mode::default(), x))
    }

    fn run(&mut self, mode: Mode<'_>, x: &Frames<E>, labels: &[Labels<'_>]) -> Outcome<E> {
        let mut gradient = vec![E::ZERO; self.layout.n_trainable()];
        let logits = each(self.net.forward(&mut self.values, mode, x));
        let loss = self.net.loss(labels);
        let (losses, mean) = (loss.losses.clone(), loss.mean());
        self.net.backward(&self.values, mode, x, &mut gradient);
        Outcome { logits, losses, mean, gradient, values: self.values.clone() }
    }
}

/// Each utterance's values.
fn each<E: Element>(frames: &Frames<E>) -> Vec<Vec<E>> {
    (0..frames.n_utterances()).map(|utterance| frames.real(utterance).to_vec()).collect()
}

/// The utterances `members` of `x`, in that order.
fn only<E: Element>(x: &Frames<E>, members: &[usize]) -> Frames<E> {
    let mut some = Frames::new(x.width(), x.margin());
    some.resize_for(members.iter().map(|&member| x.lengths()[member]));
    for (utterance, &member) in members.iter().enumerate() {
        some.real_mut(utterance).copy_from_slice(x.real(member));
    }
    some
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

/// Indices spread over a tensor of `len` values, its first and its last among them.
fn sample(len: usize) -> Vec<usize> {
    const MOST: usize = 5;
    if len <= MOST { (0..len).collect() } else { (0..MOST).map(|i| i * (len - 1) / (MOST - 1)).collect() }
}

/// The largest error over the tensors, each relative to its largest gradient, and the name of that tensor.
fn worst_error(case: &mut Case<f64>, mode: Mode<'_>, x: &Frames<f64>, labels: &[Labels<'_>]) -> (f64, String) {
    let values = case.values.clone();
    let gradient = case.run(mode, x, labels).gradient;
    let layout = Arc::clone(&case.layout);
    let mut worst = (0.0, String::new());
    for tensor in layout.tensors().iter().filter(|tensor| tensor.slot.offset < layout.n_trainable()) {
        let indices: Vec<usize> = sample(tensor.slot.len).iter().map(|i| tensor.slot.offset + i).collect();
        let [at, slope] = [&values, &gradient].map(|all| indices.iter().map(|&i| all[i]).collect::<Vec<f64>>());
        let error = gradient_error(&at, &slope, |moved| {
            case.values.clone_from(&values);
            indices.iter().zip(moved).for_each(|(&index, &value)| case.values[index] = value);
            case.net.forward(&mut case.values, mode, x);
            case.net.loss(labels).mean().unwrap()
        });
        if error >= worst.0 {
            worst = (error, tensor.name.clone());
        }
    }
    worst
}

#[test]
fn gradients_of_every_tensor_equal_finite_differences() {
    let (names, labels): ([u64; 4], [Labels<'_>; 4]) = ([7, 3, 9, 1], [&[1, 1, 3], &[], &[2], &[]]);
    let draw = Some(Draw { seed: 5, utterances: &names });
    let modes = [
        Mode::default(),
        Mode { uses_batch_statistics: true, ..Mode::default() },
        Mode { uses_batch_statistics: true, draw, ..Mode::default() },
    ];
    let every_window = [[(1, 1), (1, 1), (1, 1)], [(2, 0), (1, 1), (0, 0)], [(0, 1), (2, 0), (1, 2)]];
    let pairs = every_window.into_iter().flat_map(|windows| modes.map(|mode| (windows, mode)));
    for (n, (windows, mode)) in pairs.enumerate() {
        let configs = routed(&small(Routing::Sdr, 1, windows)).into_iter().enumerate();
        // SDR and DR with every pair of windows and mode, each of the family with one.
        for (_, config) in configs.filter(|(index, _)| *index < 3 || index % 9 == n) {
            let mut case = Case::<f64>::new(&config, 2);
            let x = case.batch(3, &[26, 9, 13, 0]);
            let (error, name) = worst_error(&mut case, mode, &x, &labels);
            // Differences of a loss near 10 are good to 1e-10; the largest gradient of some tensors is near 0.1.
            assert!(error < 1e-8, "{name} is off by {error:e}: {config:?} {mode:?}");
        }
    }
}

#[test]
fn an_utterance_gives_the_same_bits_alone_in_any_batch_and_in_any_order() {
    for config in routed(&wide()) {
        let mut case = Case::<f32>::new(&config, 4);
        let x = case.batch(5, &[37, 0, 90, 1, 8, 61]);
        let alone: Vec<Vec<f32>> = (0..6).map(|n| case.logits(&only(&x, &[n])).remove(0)).collect();
        assert_eq!(alone.iter().map(|logits| logits.len() / 21).collect::<Vec<_>>(), [10, 0, 23, 1, 2, 16]);
        for members in [&[0, 1, 2, 3, 4, 5][..], &[5, 4, 3, 2, 1, 0], &[3, 3, 2], &[1, 1], &[4, 0, 5, 2, 0]] {
            let together = case.logits(&only(&x, members));
            for (logits, &member) in together.iter().zip(members) {
                assert_eq!(logits, &alone[member], "{member} of {members:?}, {config:?}");
            }
        }
    }
}

#[test]
fn one_thread_and_many_give_the_same_bits_in_training() {
    let labels: [Labels<'_>; 5] = [&[1, 2], &[3], &[4, 4, 5], &[], &[9, 1]];
    let names = [1, 2, 3, 4, 5];
    for config in routed(&wide()) {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut case = Case::<f32>::new(&config, 4);
                let x = case.batch(6, &[41, 17, 64, 3, 29]);
                let draw = Some(Draw { seed: 8, utterances: &names });
                let mode = Mode { uses_batch_statistics: true, draw, ..Mode::default() };
                case.run(mode, &x, &labels)
            })
        };
        let one = run(1);
        assert!(one.mean.unwrap().is_finite() && one.gradient.iter().all(|g| g.is_finite()));
        for n_threads in [2, 3] {
            let many = run(n_threads);
            assert_eq!(one.logits, many.logits, "{n_threads} threads, {config:?}");
            assert_eq!(one.losses, many.losses, "{n_threads} threads, {config:?}");
            assert_eq!(one.gradient, many.gradient, "{n_threads} threads, {config:?}");
            assert_eq!(one.values, many.values, "{n_threads} threads, {config:?}");
        }
    }
}

#[test]
fn utterances_without_a_loss_are_told_and_change_nothing() {
    let mut case = Case::<f64>::new(&small(Routing::Sdr, 1, [(1, 1); 3]), 6);
    let x = case.batch(7, &[16, 12, 20, 9, 0]);
    let labels: [Labels<'_>; 5] = [&[1, 2], &[3, 3, 1], &[2, 4], &[5], &[1]];
    let outcome = case.run(Mode::default(), &x, &labels);
    let CtcLoss::Value(value) = outcome.losses[0] else { panic!("{:?}", outcome.losses) };
    let told = [
        CtcLoss::Infeasible { n_frames_needed: 4 },
        CtcLoss::BadLabel { position: 1 },
        CtcLoss::BadLabel { position: 0 },
        CtcLoss::Infeasible { n_frames_needed: 1 },
    ];
    assert_eq!(outcome.losses[1..], told);
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

#[test]
fn a_batch_without_any_loss_has_no_mean_and_no_gradient() {
    let mut case = Case::<f64>::new(&small(Routing::Dr, 2, [(1, 1); 3]), 6);
    let x = case.batch(7, &[8, 12]);
    let outcome = case.run(Mode::default(), &x, &[&[1, 2, 3], &[7]]);
    assert_eq!(outcome.mean, None);
    assert!(outcome.gradient.iter().all(|&g| g == 0.0));
    let nothing = case.run(Mode { uses_batch_statistics: true, ..Mode::default() }, &case.batch(7, &[]), &[]);
    assert_eq!((nothing.mean, nothing.losses.len()), (None, 0));
    assert!(nothing.gradient.iter().all(|&g| g == 0.0));
}

/// Labels by the likeliest class of each slice: repeats merged, blanks removed.
fn greedy(logits: &[f32], n_classes: usize) -> Vec<u32> {
    let mut classes: Vec<usize> = logits
        .chunks(n_classes)
        .map(|slice| (0..n_classes).max_by(|&a, &b| slice[a].total_cmp(&slice[b])).unwrap())
        .collect();
    classes.dedup();
    classes.into_iter().filter(|&class| class + 1 < n_classes).map(|class| class as u32).collect()
}

/// Trains on one batch and gives the mean loss of every step.
fn train(case: &mut Case<f32>, seed: u64, x: &Frames<f32>, labels: &[Labels<'_>], n_steps: u64) -> Vec<f64> {
    let kappa = vec![KappaStep { from_epoch: 1, value: 0.2 }];
    let schedule = ScheduleConfig::Warmup { steps: 40, dimension: 1, kappa };
    let mut adam = Adam::new(AdamConfig::default(), case.layout.n_trainable());
    let names: Vec<u64> = (0..labels.len() as u64).collect();
    (1..=n_steps)
        .map(|step| {
            let draw = Some(Draw { seed: seed ^ step, utterances: &names });
            let outcome = case.run(Mode { uses_batch_statistics: true, draw, ..Mode::default() }, x, labels);
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
fn two_utterances_are_learnt_by_heart() {
    let labels: [Labels<'_>; 2] = [&[3, 1, 1, 7, 2, 6], &[5, 2, 4, 4]];
    for config in routed(&learner(0.0)) {
        let mut case = Case::<f32>::new(&config, 8);
        let x = case.batch(9, &[70, 52]);
        let losses = train(&mut case, 1, &x, &labels, 400);
        let heard: Vec<Vec<u32>> = case.logits(&x).iter().map(|logits| greedy(logits, config.classes)).collect();
        assert_eq!(heard, labels, "losses {:?} to {:?}: {config:?}", &losses[..3], &losses[losses.len() - 3..]);
    }
}

#[test]
fn a_loss_curve_is_reproduced_from_its_seed_to_the_bit() {
    let run = |seed: u64| {
        let mut case = Case::<f32>::new(&learner(0.2), seed);
        let x = case.batch(9, &[70, 52, 33]);
        train(&mut case, seed, &x, &[&[3, 1, 1], &[5, 2], &[8, 8]], 10)
    };
    let curve = run(3);
    assert_eq!(curve, run(3));
    assert_ne!(curve, run(4));
    assert!(curve[9] < curve[0], "{curve:?}");
}

#[test]
fn nothing_of_a_larger_batch_is_left_in_the_next_one() {
    let labels: [Labels<'_>; 3] = [&[1, 2], &[], &[4, 4, 5]];
    let names = [5, 6, 7];
    let draw = Some(Draw { seed: 8, utterances: &names });
    let mode = Mode { uses_batch_statistics: true, draw, ..Mode::default() };
    for config in routed(&wide()) {
        let mut used = Case::<f32>::new(&config, 4);
        let values = used.values.clone();
        let x = used.batch(6, &[41, 0, 29]);
        let mut poison = used.batch(6, &[90, 70, 41, 60]);
        poison.each_real_mut().into_iter().for_each(|frames| frames.fill(f32::NAN));
        let spoilt = used.run(Mode { draw: None, keeps_decisions: true, ..mode }, &poison, &[&[1], &[2], &[], &[3]]);
        assert!(spoilt.logits.iter().flatten().any(|x| x.is_nan()));
        used.values.clone_from(&values);
        let after = used.run(mode, &x, &labels);
        let fresh = Case::<f32>::new(&config, 4).run(mode, &x, &labels);
        assert!(fresh.gradient.iter().all(|g| g.is_finite()));
        assert!(after == fresh, "{config:?}");
    }
}

#[test]
fn gradients_pass_where_the_configuration_lets_them() {
    let gradient = |routing: Routing, iterations: usize, through_iterations: bool, through_time: bool| {
        let gradient = Gradient { through_iterations, through_time };
        let mut case = Case::<f64>::new(&SrfConfig { gradient, ..small(routing, iterations, [(1, 1); 3]) }, 2);
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
    let mut case = Case::<f32>::new(
        &SrfConfig { layers: 3, hidden_height, hidden_depth: PerLayer::Same(8), dropout, ..wide() },
        2,
    );
    let x = case.batch(3, &[40]);
    let draw = Some(Draw { seed: 1, utterances: &[6] });
    case.net.forward(&mut case.values, Mode { draw, ..Mode::default() }, &x);
    let kept = |frames: &Frames<f32>| frames.real(0).iter().map(|&x| x != 0.0).collect::<Vec<bool>>();
    let front_end = kept(&case.net.front_end().activations().normed);
    let [first, second] = [0, 1].map(|index| kept(case.net.capsules(index).1));
    assert!(front_end != first && first != second && front_end != second);
    // 720 values at a rate of a half: five standard deviations are 67.
    for kept in [front_end, first, second] {
        let n_kept = kept.iter().filter(|&&is_kept| is_kept).count();
        assert!(kept.len() == 720 && n_kept.abs_diff(360) < 67, "{n_kept} of {}", kept.len());
    }
}
