//! The front end against golden vectors and finite differences; alone against in a batch; one thread against two.

use kernels::check::{dot, gradient_error};

use super::*;
use crate::config::SrfConfig;
use crate::golden::{self, Golden};
use crate::random::Random;

/// A front end with its parameters and a batch.
struct Case<E> {
    front_end: FrontEnd<E>,
    slots: SrfParams,
    values: Vec<E>,
    n_trainable: usize,
    x: Frames<E>,
}

fn config(filters: usize, height: usize, depth: usize) -> SrfConfig {
    SrfConfig { filters, layers: 1, primary_height: height, primary_depth: depth, ..SrfConfig::new(5) }
}

fn random_values<E: Element>(seed: u64, n: usize) -> Vec<E> {
    let mut random = Random::new(seed, "front end test");
    (0..n).map(|_| E::from_f64(random.uniform() - 0.5)).collect()
}

impl<E: Element> Case<E> {
    fn new(config: &SrfConfig, lengths: &[usize]) -> Self {
        let (slots, layout) = SrfParams::new(config);
        let mut values: Vec<E> = random_values(1, layout.n_values());
        for variances in [slots.bn1.moving_var, slots.bn2.moving_var] {
            for variance in variances.of_mut(&mut values) {
                *variance += E::ONE;
            }
        }
        let mut x = Frames::new(config.features, FrontEnd::<E>::MARGIN);
        x.resize_for(lengths.iter().copied());
        for (utterance, length) in lengths.iter().enumerate() {
            let n = length * config.features;
            x.real_mut(utterance).copy_from_slice(&random_values(10 + utterance as u64, n));
        }
        Self { front_end: FrontEnd::new(config), slots, values, n_trainable: layout.n_trainable(), x }
    }

    fn forward(&mut self, mode: Mode<'_>) -> Vec<E> {
        self.front_end.forward(&self.slots, &mut self.values, mode, &self.x).all().to_vec()
    }

    fn backward(&mut self, mode: Mode<'_>, grad_out: &[E]) -> Vec<E> {
        let normed = &self.front_end.activations().normed;
        let mut grad = Frames::new(normed.width(), [0, 0]);
        grad.resize_for(normed.lengths().iter().copied());
        let mut filled = 0;
        for part in grad.each_real_mut() {
            part.copy_from_slice(&grad_out[filled..filled + part.len()]);
            filled += part.len();
        }
        let mut gradient = vec![E::ZERO; self.n_trainable];
        self.front_end.backward(&self.slots, &self.values, mode, &self.x, &mut grad, &mut gradient);
        gradient
    }
}

#[test]
fn gradients_equal_finite_differences_in_training_and_inference() {
    let small = SrfConfig { features: 7, ..config(2, 3, 2) };
    let utterances = [4, 5, 6, 7];
    let draw = Some(Draw { seed: 3, utterances: &utterances });
    for mode in [Mode { uses_batch_statistics: true, draw }, Mode { uses_batch_statistics: false, draw: None }] {
        let mut case = Case::<f64>::new(&small, &[9, 0, 1, 6]);
        let values = case.values.clone();
        let out = case.forward(mode);
        let grad_out: Vec<f64> = random_values(2, out.len());
        let gradient = case.backward(mode, &grad_out);
        let slots = case.slots.clone();
        let used = [slots.conv1.a.kernel.offset, slots.ln_in.beta.range().end];
        assert!(gradient[used[1]..].iter().all(|&g| g == 0.0), "nothing beyond the front end");
        let error = gradient_error(&values[used[0]..used[1]], &gradient[used[0]..used[1]], |moved| {
            case.values.clone_from(&values);
            case.values[used[0]..used[1]].copy_from_slice(moved);
            dot(&case.forward(mode), &grad_out)
        });
        // Some ten layers deep; squash and norms of small numbers bend more than a step of 1e-5 resolves.
        assert!(error < 1e-6, "{mode:?}: {error}");
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
        assert_eq!(out, batch.front_end.activations().normed.real(utterance), "utterance {utterance}");
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
            let draw = Some(Draw { seed: 9, utterances: &utterances });
            let mode = Mode { uses_batch_statistics: true, draw };
            let out = case.forward(mode);
            let gradient = case.backward(mode, &random_values(2, out.len()));
            (out, gradient, case.values)
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn activations_equal_the_golden_vectors() {
    for name in ["srf_2l_w11_sdr1.safetensors", "srf_1l_sdr1.safetensors"] {
        let Some(path) = golden::path(name) else { continue };
        let bytes = std::fs::read(path).unwrap();
        let golden = Golden::new(&bytes);
        let mut case = golden_case(&golden);
        case.forward(Mode::default());
        let a = case.front_end.activations();
        let projected: Vec<f32> = (0..a.projected.n_utterances()).flat_map(|u| a.projected.real(u).to_vec()).collect();
        assert_close(&golden, "mid.cnnfe", a.slices.all());
        assert_close(&golden, "mid.proj", &projected);
        assert_close(&golden, "mid.encaps_max", case.front_end.unsquashed().all());
        assert_close(&golden, "mid.primary_squashed", a.capsules.all());
        assert_close(&golden, "mid.primary_ln", a.normed.all());
    }
}

#[test]
fn moving_statistics_equal_the_golden_vectors() {
    let Some(path) = golden::path("srf_1l_sdr1_train_bn.safetensors") else { return };
    let bytes = std::fs::read(path).unwrap();
    let golden = Golden::new(&bytes);
    let mut case = golden_case(&golden);
    case.forward(Mode { uses_batch_statistics: true, draw: None });
    for (name, slots) in [("bn1", case.slots.bn1), ("bn2", case.slots.bn2)] {
        assert_close(&golden, &format!("w_after.{name}.moving_mean"), slots.moving_mean.of(&case.values));
        assert_close(&golden, &format!("w_after.{name}.moving_var"), slots.moving_var.of(&case.values));
    }
}

/// The front end, its weights and the batch of a golden file.
fn golden_case(golden: &Golden<'_>) -> Case<f32> {
    let [filters, height, depth] =
        ["w.conv1.a.bias", "w.proj.bias", "w.encaps.a.bias"].map(|name| golden.shape(name)[0]);
    let shape = config(filters, height, depth);
    let [n_utterances, n_frames, n_features] = golden.shape("in.feats")[..] else { panic!("features of a batch") };
    let mut case = Case::new(&shape, &vec![n_frames; n_utterances]);
    let end = case.slots.ln_in.beta.range().end;
    for tensor in SrfParams::new(&shape).1.tensors() {
        let is_statistic = tensor.slot.offset >= case.n_trainable;
        if tensor.slot.offset < end || is_statistic {
            let values = golden.floats(&format!("w.{}", tensor.name));
            tensor.slot.of_mut(&mut case.values).copy_from_slice(&values);
        }
    }
    for (utterance, feats) in golden.floats("in.feats").chunks(n_frames * n_features).enumerate() {
        case.x.real_mut(utterance).copy_from_slice(feats);
    }
    case
}

/// The tolerance is ten times the disagreement of two evaluations in single precision.
fn assert_close(golden: &Golden<'_>, name: &str, found: &[f32]) {
    let expected = golden.floats(name);
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let worst = found.iter().zip(&expected).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
    assert!(worst <= 1e-5 * largest, "{name}: {worst} of {largest}");
}
