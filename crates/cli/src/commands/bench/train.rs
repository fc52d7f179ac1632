//! A training step.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use srf_model::config::AdamConfig;
use srf_model::frames::Frames;
use srf_model::network::{DropoutSeed, Mode, Network};
use srf_model::optim::Adam;
use srf_model::params::Params;
use srf_model::random::Random;
use srf_train::corpus::manifest;
use srf_train::trainer::batches::Buckets;

use super::machine::{noise, time};
use super::{Report, Subject};

pub(super) const N_UTTERANCES: usize = 23;
pub(super) const N_FRAMES: usize = 300;
/// Frames per label: 40 labels in 300 frames.
const FRAMES_PER_LABEL: f64 = 7.5;
const RATE: f64 = 1e-4;
/// Frames of a batch of real lengths.
const BATCH_FRAMES: usize = 6000;
const FRAMES_PER_SECOND: f64 = 100.0;
const MAX_FRAMES: usize = 10_000_000;

/// The lengths of the utterances of the batch, in frames.
pub(super) fn lengths(utterances: usize, frames: usize, data: Option<&Path>) -> anyhow::Result<Vec<usize>> {
    if let Some(dir) = data {
        return typical_batch(dir);
    }
    let is_small = utterances > 0 && frames > 0 && utterances.saturating_mul(frames) <= MAX_FRAMES;
    ensure!(is_small, "{utterances} utterances of {frames} frames, expected 1 to {MAX_FRAMES} frames together");
    Ok(vec![frames; utterances])
}

/// Of all batches that a training on this corpus makes, the one in the middle when they are sorted by length: half of the
/// frames are in batches of shorter utterances.
fn typical_batch(dir: &Path) -> anyhow::Result<Vec<usize>> {
    let path = dir.join("train.jsonl");
    let (listed, _) = manifest::load(&path);
    let seconds = listed.iter().filter_map(|listed| listed.utterance.audio.duration_s);
    let lengths: Vec<usize> =
        seconds.map(|seconds| (seconds * FRAMES_PER_SECOND) as usize).filter(|&n| n > 0).collect();
    let batches = Buckets::new(BATCH_FRAMES).in_order(&lengths);
    let mut batches: Vec<Vec<usize>> =
        batches.iter().map(|batch| batch.iter().map(|&index| lengths[index]).collect()).collect();
    batches.sort_by_key(|batch| batch.iter().max().copied());
    let (total, mut before) = (lengths.iter().sum::<usize>(), 0);
    let middle = batches.into_iter().find(|batch| {
        before += batch.iter().sum::<usize>();
        2 * before >= total
    });
    middle.with_context(|| format!("`{}` lists no utterance with a duration", path.display()))
}

pub(super) fn measure(subject: &Subject, lengths: &[usize], n_steps: usize) -> Report {
    let config = &subject.config;
    let (mut net, layout) = Network::<f32>::new(config);
    let mut params = Params::initialize(Arc::new(layout), 0);
    let n_trainable = params.layout.n_trainable();
    let mut adam = Adam::new(AdamConfig::default(), n_trainable);
    let x = random_frames(config.n_features(), net.margin(), lengths);
    let labels = random_labels(config.n_classes(), lengths);
    let labels: Vec<&[u32]> = labels.iter().map(Vec::as_slice).collect();
    let names: Vec<u64> = (0..lengths.len() as u64).collect();
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
    let flops = 3.0 * lengths.iter().map(|&n| config.flops(n) as f64).sum::<f64>();
    Report::new("train", subject, lengths.iter().sum(), flops, seconds)
}

fn random_frames(width: usize, margin: [usize; 2], lengths: &[usize]) -> Frames<f32> {
    let mut frames = Frames::new(width, margin);
    frames.resize_for(lengths.iter().copied());
    for (utterance, values) in frames.each_real_mut().into_iter().enumerate() {
        let n = values.len();
        values.copy_from_slice(&noise(&format!("utterance {utterance}"), n));
    }
    frames
}

/// Neither padding nor blank.
fn random_labels(n_classes: usize, lengths: &[usize]) -> Vec<Vec<u32>> {
    let mut random = Random::new(0, "labels");
    let mut label = || 1 + (random.uniform() * (n_classes - 2) as f64) as u32;
    lengths.iter().map(|&n| (0..(n as f64 / FRAMES_PER_LABEL) as usize).map(|_| label()).collect()).collect()
}
