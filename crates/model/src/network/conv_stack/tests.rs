//! The convolution stack with primary capsules: against finite differences; alone and in a batch; on several threads.

use srf_kernels::check::{dot, gradient_error};

use super::*;
use crate::config::SrfConfig;
use crate::network::{DropoutSeed, Network, SrfBlocks};
use crate::params::Layout;
use crate::random::Random;

/// A network up to the primary capsules with its parameters and a batch.
struct Case<E> {
    net: Network<E>,
    layout: Layout,
    values: Vec<E>,
    x: Frames<E>,
}

fn config(filters: usize, height: usize, depth: usize) -> SrfConfig {
    SrfConfig { filters, layers: 1, primary_height: height, primary_depth: depth, ..SrfConfig::new(5) }
}

fn random_values<E: Element>(seed: u64, n: usize) -> Vec<E> {
    let mut random = Random::new(seed, "convolution stack test");
    (0..n).map(|_| E::from_f64(random.uniform() - 0.5)).collect()
}

impl<E: Element> Case<E> {
    fn new(config: &SrfConfig, lengths: &[usize]) -> Self {
        let mut plan = Plan::new(config.features);
        let SrfBlocks { conv_stack, primary, .. } = SrfBlocks::new(&mut plan, config);
        let (net, layout) =
            Network::from_blocks(plan, ConvStack::<E>::MARGIN, vec![Box::new(conv_stack), Box::new(primary)]);
        let mut values: Vec<E> = random_values(1, layout.n_values());
        for name in ["bn1.moving_var", "bn2.moving_var"] {
            for variance in layout.find(name).unwrap().slot.of_mut(&mut values) {
                *variance += E::ONE;
            }
        }
        let mut x = Frames::new(config.features, net.margin());
        x.resize_for(lengths.iter().copied());
        for (utterance, length) in lengths.iter().enumerate() {
            let n = length * config.features;
            x.real_mut(utterance).copy_from_slice(&random_values(10 + utterance as u64, n));
        }
        Self { net, layout, values, x }
    }

    fn forward(&mut self, mode: Mode<'_>) -> Vec<E> {
        let out = self.net.forward(&mut self.values, mode, &self.x);
        (0..out.n_utterances()).flat_map(|utterance| out.real(utterance).to_vec()).collect()
    }

    fn backward(&mut self, mode: Mode<'_>, d_out: &[E]) -> Vec<E> {
        let mut d_output = Frames::new(self.net.logits().width(), [0, 0]);
        d_output.resize_like(self.net.logits());
        let mut filled = 0;
        for part in d_output.each_real_mut() {
            part.copy_from_slice(&d_out[filled..filled + part.len()]);
            filled += part.len();
        }
        let mut gradient = vec![E::ZERO; self.layout.n_trainable()];
        self.net.backward_from(&self.values, mode, (&self.x, &d_output), &mut gradient);
        gradient
    }
}

#[test]
fn gradients_equal_finite_differences_in_training_and_inference() {
    let small = SrfConfig { features: 7, ..config(2, 3, 2) };
    let utterances = [4, 5, 6, 7];
    let dropout = Some(DropoutSeed { seed: 3, utterances: &utterances });
    for mode in [Mode { uses_batch_statistics: true, dropout, ..Mode::default() }, Mode::default()] {
        let mut case = Case::<f64>::new(&small, &[9, 0, 1, 6]);
        let values = case.values.clone();
        let out = case.forward(mode);
        let d_out: Vec<f64> = random_values(2, out.len());
        let gradient = case.backward(mode, &d_out);
        let end = case.layout.find("ln_in.beta").unwrap().slot.range().end;
        assert!(gradient[end..].iter().all(|&g| g == 0.0), "nothing beyond the primary capsules");
        let error = gradient_error(&values[..end], &gradient[..end], |moved| {
            case.values.clone_from(&values);
            case.values[..end].copy_from_slice(moved);
            dot(&case.forward(mode), &d_out)
        });
        // Differences of a loss near 10 are good to 1e-10.
        assert!(error < 1e-8, "{mode:?}: {error}");
    }
}

#[test]
fn an_utterance_gives_the_same_bits_alone_and_in_any_batch() {
    let shape = SrfConfig { features: 25, ..config(20, 9, 5) };
    let lengths = [17, 1, 30, 4];
    let mut batch = Case::<f32>::new(&shape, &lengths);
    batch.forward(Mode::default());
    for (utterance, &length) in lengths.iter().enumerate() {
        let mut alone = Case::<f32>::new(&shape, &[length]);
        alone.x.real_mut(0).copy_from_slice(batch.x.real(utterance));
        let out = alone.forward(Mode::default());
        assert_eq!(out, batch.net.logits().real(utterance), "utterance {utterance}");
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    let shape = SrfConfig { features: 25, ..config(20, 9, 5) };
    let utterances = [1, 2, 3, 4, 5];
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let mut case = Case::<f32>::new(&shape, &[17, 8, 30, 4, 12]);
            let dropout = Some(DropoutSeed { seed: 9, utterances: &utterances });
            let mode = Mode { uses_batch_statistics: true, dropout, ..Mode::default() };
            let out = case.forward(mode);
            let gradient = case.backward(mode, &random_values(2, out.len()));
            (out, gradient, case.values)
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}
