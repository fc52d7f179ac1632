//! A training step.

use std::sync::Arc;

use srf_model::config::AdamConfig;
use srf_model::frames::Frames;
use srf_model::network::{DropoutSeed, Mode, Network};
use srf_model::optim::Adam;
use srf_model::params::Params;
use srf_model::random::Random;

use super::machine::{noise, time};
use super::{Report, Subject};

pub(super) const N_UTTERANCES: usize = 23;
pub(super) const N_FRAMES: usize = 300;
const N_LABELS: usize = 40;
const RATE: f64 = 1e-4;

pub(super) fn measure(subject: &Subject, n_steps: usize) -> Report {
    let config = &subject.config;
    let (mut net, layout) = Network::<f32>::new(config);
    let mut params = Params::initialize(Arc::new(layout), 0);
    let n_trainable = params.layout.n_trainable();
    let mut adam = Adam::new(AdamConfig::default(), n_trainable);
    let x = random_frames(config.n_features(), net.margin());
    let labels = random_labels(config.n_classes());
    let labels: Vec<&[u32]> = labels.iter().map(Vec::as_slice).collect();
    let names: Vec<u64> = (0..N_UTTERANCES as u64).collect();
    let mut gradient = vec![0.0; n_trainable];
    let mut seed = 0;
    let seconds = time(n_steps, || {
        seed += 1;
        let dropout = Some(DropoutSeed { seed, utterances: &names });
        let mode = Mode { uses_batch_statistics: true, dropout, keeps_decisions: false };
        net.forward(&mut params.values, mode, &x);
        net.loss(&labels);
        gradient.fill(0.0);
        net.backward(&params.values, mode, &x, &mut gradient);
        adam.update(params.trainable_mut(), &gradient, RATE);
    });
    // Forward, and a product for the weights and one for the inputs in the backward pass.
    let flops = 3.0 * N_UTTERANCES as f64 * config.flops(N_FRAMES) as f64;
    Report::new("train", subject, N_UTTERANCES * N_FRAMES, flops, seconds)
}

fn random_frames(width: usize, margin: [usize; 2]) -> Frames<f32> {
    let mut frames = Frames::new(width, margin);
    frames.resize_for([N_FRAMES; N_UTTERANCES]);
    for (utterance, values) in frames.each_real_mut().into_iter().enumerate() {
        values.copy_from_slice(&noise(&format!("utterance {utterance}"), N_FRAMES * width));
    }
    frames
}

/// Neither padding nor blank.
fn random_labels(n_classes: usize) -> Vec<Vec<u32>> {
    let mut random = Random::new(0, "labels");
    let mut label = || 1 + (random.uniform() * (n_classes - 2) as f64) as u32;
    (0..N_UTTERANCES).map(|_| (0..N_LABELS).map(|_| label()).collect()).collect()
}
