//! Networks of every architecture: against finite differences; alone, in batches and on several threads; learning;
//! memory that is used again. What is peculiar to capsules is tested beside them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernels::CtcLoss;
use kernels::check::gradient_error;

use super::*;
use crate::config::{
    AdamConfig, CnnConfig, CnnDropout, Directions, KappaStep, LstmConfig, LstmDropout, Merge, ScheduleConfig,
    TransformerConfig, TransformerDropout,
};
use crate::init::initialise;
use crate::optim::Adam;
use crate::random::Random;

/// A network with its parameters.
pub(crate) struct Case<E> {
    config: ModelConfig,
    net: Network<E>,
    layout: Arc<Layout>,
    pub(crate) values: Vec<E>,
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
    pub(crate) fn new(config: &ModelConfig, seed: u64) -> Self {
        config.validate().unwrap();
        let (net, layout) = Network::new(config);
        let layout = Arc::new(layout);
        let mut values = initialise(Arc::clone(&layout), seed).values;
        let mut random = Random::new(seed, "tests of networks");
        for value in &mut values {
            *value += E::from_f64(0.4 * random.uniform() - 0.2);
        }
        Self { config: config.clone(), net, layout, values }
    }

    pub(crate) fn batch(&self, seed: u64, lengths: &[usize]) -> Frames<E> {
        let mut x = Frames::new(self.config.n_features(), self.net.margin());
        x.resize_for(lengths.iter().copied());
        for (utterance, frames) in x.each_real_mut().into_iter().enumerate() {
            let mut random = Random::new(seed, &format!("utterance {utterance}"));
            frames.fill_with(|| E::from_f64(random.normal()));
        }
        x
    }

    pub(crate) fn logits(&mut self, x: &Frames<E>) -> Vec<Vec<E>> {
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

/// A network of every kind and shape with `features`, `classes` and sizes of about `size`.
pub(crate) fn networks(features: usize, classes: usize, size: usize, rate: f64) -> Vec<ModelConfig> {
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
        ModelConfig::Lstm(LstmConfig { merge: Merge::Average, front_end: true, ..lstm.clone() }),
        ModelConfig::Lstm(LstmConfig { directions: forward, ..lstm.clone() }),
        ModelConfig::Lstm(LstmConfig { directions: forward, front_end: true, ..lstm }),
        ModelConfig::Cnn(cnn.clone()),
        ModelConfig::Cnn(CnnConfig { front_end: true, pool: 1, ..cnn }),
        ModelConfig::Transformer(transformer.clone()),
        ModelConfig::Transformer(TransformerConfig {
            front_end_statistics: false,
            distance_penalty: false,
            heads: 1,
            ..transformer
        }),
    ]
}

/// Indices spread over a tensor's gradient: its first, its last and its largest value among them.
fn sample(gradient: &[f64]) -> Vec<usize> {
    const MOST: usize = 5;
    let len = gradient.len();
    if len <= MOST {
        return (0..len).collect();
    }
    let largest = (0..len).max_by(|&a, &b| gradient[a].abs().total_cmp(&gradient[b].abs()));
    let indices: BTreeSet<usize> = (0..MOST).map(|i| i * (len - 1) / (MOST - 1)).chain(largest).collect();
    indices.into_iter().collect()
}

/// The largest error over the tensors, each relative to its largest gradient, and the name of that tensor.
fn worst_error(case: &mut Case<f64>, mode: Mode<'_>, x: &Frames<f64>, labels: &[Labels<'_>]) -> (f64, String) {
    let values = case.values.clone();
    let gradient = case.run(mode, x, labels).gradient;
    let layout = Arc::clone(&case.layout);
    let mut worst = (0.0, String::new());
    for tensor in layout.tensors().iter().filter(|tensor| tensor.slot.offset < layout.n_trainable()) {
        let indices: Vec<usize> = sample(tensor.slot.of(&gradient)).iter().map(|i| tensor.slot.offset + i).collect();
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
    for config in networks(6, 5, 3, 0.3) {
        // A maximum has no slope where both sides are equal: with this seed none comes within a step of that.
        let mut case = Case::<f64>::new(&config, 5);
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
                let draw = Some(Draw { seed: 8, utterances: &names });
                let mode = Mode { uses_batch_statistics: true, draw, ..Mode::default() };
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
    let draw = Some(Draw { seed: 8, utterances: &names });
    let mode = Mode { uses_batch_statistics: true, draw, ..Mode::default() };
    for config in networks(23, 21, 19, 0.3) {
        let mut used = Case::<f32>::new(&config, 4);
        let values = used.values.clone();
        let x = used.batch(6, &[41, 0, 29]);
        let mut poison = used.batch(6, &[90, 70, 41, 60]);
        poison.each_real_mut().into_iter().for_each(|frames| frames.fill(f32::NAN));
        let spoilt = used.run(Mode { draw: None, ..mode }, &poison, &[&[1], &[2], &[], &[3]]);
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

/// Labels by the likeliest class of each slice: repeats merged, blanks removed.
fn greedy(logits: &[f32], n_classes: usize) -> Vec<u32> {
    let mut classes: Vec<usize> = logits
        .chunks(n_classes)
        .map(|slice| (0..n_classes).max_by(|&a, &b| slice[a].total_cmp(&slice[b])).unwrap())
        .collect();
    classes.dedup();
    classes.into_iter().filter(|&class| class + 1 < n_classes).map(|class| class as u32).collect()
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
        let heard: Vec<Vec<u32>> = case.logits(&x).iter().map(|logits| greedy(logits, 9)).collect();
        assert_eq!(heard, labels, "losses {:?} to {:?}: {config:?}", &losses[..3], &losses[losses.len() - 3..]);
    }
}
