//! The number of threads changes no bit: capsule layers in the shapes of every shipped recipe, and weights after
//! training steps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rayon::ThreadPoolBuilder;
use srf_kernels::routing::{GradientPaths, Router, Utterance, UtteranceBack, Workspace};
use srf_model::config::{AdamConfig, Dropout, ModelConfig, Recipe, SrfConfig};
use srf_model::frames::Frames;
use srf_model::layers::router;
use srf_model::network::{DropoutSeed, Mode, Network};
use srf_model::optim::Adam;
use srf_model::params::Params;
use srf_model::random::Random;

const MAX_UTTERANCES: usize = 9;

fn with_threads<T: Send>(n: usize, run: impl FnOnce() -> T + Send) -> T {
    ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(run)
}

/// The capsule networks of all recipes of the repository.
fn recipes() -> Vec<SrfConfig> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let folders = fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
    let recipes = files.filter(|file| file.extension().is_some_and(|ext| ext == "toml"));
    recipes
        // A recipe for any corpus leaves the number of classes open.
        .map(|file| Recipe::load(&file).unwrap_or_else(|_| Recipe::load_with(&file, &[], 41).unwrap()))
        .filter_map(|recipe| match recipe.model {
            ModelConfig::Srf(config) => Some(config),
            _ => None,
        })
        .collect()
}

/// Everything a forward and a backward pass of one layer write, as bits.
#[derive(PartialEq)]
struct Pass {
    outputs: Vec<Vec<u32>>,
    d_inputs: Vec<Vec<u32>>,
    d_params: [Vec<u32>; 3],
}

/// A capsule layer with random weights and [`MAX_UTTERANCES`] utterances of one to three slices.
struct Layer {
    router: Router<f32>,
    inputs: Vec<Vec<f32>>,
    d_outputs: Vec<Vec<f32>>,
    n_params: [usize; 3],
}

impl Layer {
    fn new(mut router: Router<f32>) -> Self {
        let routing = router.routing();
        let mut random = Random::new(1, "threads");
        let mut numbers = |n: usize| (0..n).map(|_| random.normal() as f32 * 0.3).collect::<Vec<f32>>();
        let n_biases = routing.n_in * routing.output_len();
        let n_params = [n_biases * routing.depth_in, n_biases, router.n_extra_params()];
        let [weights, biases, own] = n_params.map(&mut numbers);
        router.pack(&weights, &biases, &own);
        let n_slices = |utterance: usize| 1 + utterance % 3;
        let inputs = (0..MAX_UTTERANCES).map(|u| numbers(routing.inputs_len(n_slices(u)))).collect();
        let d_outputs = (0..MAX_UTTERANCES).map(|u| numbers(n_slices(u) * routing.output_len())).collect();
        Self { router, inputs, d_outputs, n_params }
    }

    /// Both passes over the first `n` utterances.
    fn run(&self, n: usize) -> Pass {
        let (router, routing) = (&self.router, self.router.routing());
        let n_slices: Vec<usize> = self.d_outputs.iter().map(|d| d.len() / routing.output_len()).collect();
        let zeros = |len: &dyn Fn(usize) -> usize| (0..n).map(|u| vec![0.0f32; len(u)]).collect::<Vec<_>>();
        let mut outputs = zeros(&|u| self.d_outputs[u].len());
        let mut saved = zeros(&|u| router.saved_len(n_slices[u], true));
        let mut d_inputs = zeros(&|u| self.inputs[u].len());
        let mut workspace = Workspace::new();
        let utterances = outputs.iter_mut().zip(&mut saved).enumerate().map(|(u, (outputs, saved))| Utterance {
            n_slices: n_slices[u],
            inputs: &self.inputs[u],
            state: &[],
            outputs,
            saved,
            tap: None,
        });
        router.forward(&mut utterances.collect::<Vec<_>>(), &mut workspace);
        let utterances = d_inputs.iter_mut().enumerate().map(|(u, d_inputs)| UtteranceBack {
            n_slices: n_slices[u],
            inputs: &self.inputs[u],
            state: &[],
            outputs: &outputs[u],
            saved: &saved[u],
            d_outputs: &self.d_outputs[u],
            d_inputs,
        });
        let mut gradient = router.new_gradient();
        router.backward(GradientPaths::FULL, &mut utterances.collect::<Vec<_>>(), &mut gradient, &mut workspace);
        let [mut weights, mut biases, mut own] = self.n_params.map(|n| vec![0.0f32; n]);
        gradient.add_to(&routing, &mut weights, &mut biases, &mut own);
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        Pass {
            outputs: outputs.into_iter().map(bits).collect(),
            d_inputs: d_inputs.into_iter().map(bits).collect(),
            d_params: [weights, biases, own].map(bits),
        }
    }
}

#[test]
fn capsule_layers_of_every_recipe_give_the_same_bits_in_any_batch_and_with_any_threads() {
    let mut seen = Vec::new();
    for config in recipes() {
        for shape in config.capsule_shapes() {
            let key = (shape, config.routing, config.iterations, config.couplings, config.start, config.entropy);
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let layer = Layer::new(router(&config, shape));
            let mut before: Option<Pass> = None;
            for n in 1..=MAX_UTTERANCES {
                let one = with_threads(1, || layer.run(n));
                for n_threads in 2..=4 {
                    let is_same = one == with_threads(n_threads, || layer.run(n));
                    assert!(is_same, "{n} utterances, {n_threads} threads: {key:?}");
                }
                if let Some(before) = before {
                    assert!(before.outputs[..] == one.outputs[..n - 1], "outputs of {n} utterances: {key:?}");
                    assert!(before.d_inputs[..] == one.d_inputs[..n - 1], "gradients of {n} utterances: {key:?}");
                }
                before = Some(one);
            }
        }
    }
    assert!(seen.len() > 20, "the recipes have more shapes than {}", seen.len());
}

/// Networks whose votes leave room in the first-level cache for four, three, two and one input capsules at a time.
fn small_networks() -> Vec<ModelConfig> {
    let shapes = [(41, 8), (30, 8), (41, 4), (50, 8), (33, 16)];
    let networks = shapes.map(|(classes, class_depth)| {
        ModelConfig::Srf(SrfConfig {
            features: 11,
            filters: 4,
            layers: 2,
            primary_height: 7,
            primary_depth: 4,
            class_depth,
            dropout: Dropout { conv: 0.1, input: 0.1, between: 0.1 },
            ..SrfConfig::new(classes)
        })
    });
    networks.to_vec()
}

/// All values of a network after three steps on `n` utterances, as bits.
fn train(config: &ModelConfig, n: usize) -> Vec<u32> {
    let (mut net, layout) = Network::<f32>::new(config);
    let layout = Arc::new(layout);
    let mut values = Params::<f32>::initialize(Arc::clone(&layout), 7).values;
    let mut adam = Adam::new(AdamConfig::default(), layout.n_trainable());
    let mut x = Frames::new(config.n_features(), net.margin());
    x.resize_for((0..n).map(|u| 12 + 9 * (u * 5 % 7)));
    let mut random = Random::new(3, "frames");
    for frames in x.each_real_mut() {
        frames.fill_with(|| random.normal() as f32);
    }
    let (labels, names): (Vec<&[u32]>, Vec<u64>) = (vec![&[1, 5, 2]; n], (0..n as u64).collect());
    for step in 1..=3 {
        let dropout = Some(DropoutSeed { seed: step, utterances: &names });
        let mode = Mode { uses_batch_statistics: true, dropout, ..Mode::default() };
        let mut gradient = vec![0.0; layout.n_trainable()];
        net.forward(&mut values, mode, &x);
        net.loss(&labels);
        net.backward(&values, mode, &x, &mut gradient);
        assert!(gradient.iter().any(|&g| g != 0.0));
        adam.update(&mut values[..layout.n_trainable()], &gradient, 1e-2);
    }
    values.into_iter().map(f32::to_bits).collect()
}

#[test]
fn weights_after_training_do_not_depend_on_the_number_of_threads() {
    for config in small_networks() {
        for n in 1..=MAX_UTTERANCES {
            let one = with_threads(1, || train(&config, n));
            for n_threads in 2..=4 {
                assert!(one == with_threads(n_threads, || train(&config, n)), "{n} utterances, {n_threads} threads");
            }
        }
    }
}
