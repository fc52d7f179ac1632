//! What the tests of all networks share: networks with random parameters, random batches, a pass over a batch, and the
//! error of its gradients against finite differences.

use std::collections::BTreeSet;
use std::sync::Arc;

use srf_kernels::check::gradient_error;
use srf_kernels::{CtcLoss, Element};

use super::{Labels, Mode, Network};
use crate::config::ModelConfig;
use crate::frames::Frames;

use crate::params::{Layout, Params};
use crate::random::Random;

/// A network with its parameters.
pub(crate) struct Case<E> {
    config: ModelConfig,
    pub(crate) net: Network<E>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) values: Vec<E>,
}

/// The results of a pass over a batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome<E> {
    pub(crate) logits: Vec<Vec<E>>,
    pub(crate) losses: Vec<CtcLoss>,
    pub(crate) mean: Option<f64>,
    pub(crate) gradient: Vec<E>,
    /// Parameters and moving statistics after the pass.
    pub(crate) values: Vec<E>,
}

impl<E: Element> Case<E> {
    /// Random numbers in every tensor: what starts at zero would hide a gradient.
    pub(crate) fn new(config: &ModelConfig, seed: u64) -> Self {
        config.validate().unwrap();
        let (net, layout) = Network::new(config);
        let layout = Arc::new(layout);
        let mut values = Params::initialize(Arc::clone(&layout), seed).values;
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

    pub(crate) fn run(&mut self, mode: Mode<'_>, x: &Frames<E>, labels: &[Labels<'_>]) -> Outcome<E> {
        let mut gradient = vec![E::ZERO; self.layout.n_trainable()];
        let logits = each(self.net.forward(&mut self.values, mode, x));
        let loss = self.net.loss(labels);
        let (losses, mean) = (loss.losses.clone(), loss.mean());
        self.net.backward(&self.values, mode, x, &mut gradient);
        Outcome { logits, losses, mean, gradient, values: self.values.clone() }
    }
}

/// Each utterance's values.
pub(crate) fn each<E: Element>(frames: &Frames<E>) -> Vec<Vec<E>> {
    (0..frames.n_utterances()).map(|utterance| frames.real(utterance).to_vec()).collect()
}

/// The utterances `members` of `x`, in that order.
pub(crate) fn only<E: Element>(x: &Frames<E>, members: &[usize]) -> Frames<E> {
    let mut some = Frames::new(x.width(), x.margin());
    some.resize_for(members.iter().map(|&member| x.lengths()[member]));
    for (utterance, &member) in members.iter().enumerate() {
        some.real_mut(utterance).copy_from_slice(x.real(member));
    }
    some
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
pub(crate) fn worst_error(
    case: &mut Case<f64>,
    mode: Mode<'_>,
    x: &Frames<f64>,
    labels: &[Labels<'_>],
) -> (f64, String) {
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

/// Labels by the most probable class of each slice: repeats merged, blanks removed.
pub(crate) fn greedy(logits: &[f32], n_classes: usize) -> Vec<u32> {
    let mut classes: Vec<usize> = logits
        .chunks(n_classes)
        .map(|slice| (0..n_classes).max_by(|&a, &b| slice[a].total_cmp(&slice[b])).unwrap())
        .collect();
    classes.dedup();
    classes.into_iter().filter(|&class| class + 1 < n_classes).map(|class| class as u32).collect()
}
