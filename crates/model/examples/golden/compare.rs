//! What every golden file of a network has: inputs, weights, logits, losses and gradients, ours against theirs.

use std::sync::Arc;

use anyhow::ensure;
use srf_kernels::{CtcLoss, log_softmax};
use srf_model::config::ModelConfig;
use srf_model::frames::Frames;
use srf_model::inference::Inference;
use srf_model::network::BatchLoss;
use srf_model::params::{Layout, Params};

use super::file::Golden;
use super::{Finding, GRADIENTS, LOSSES, error};

/// The feature frames, with the margin that a network needs.
pub(super) fn inputs(golden: &Golden, margin: [usize; 2]) -> anyhow::Result<Frames<f32>> {
    let feats = golden.tensor("in.feats")?;
    ensure!(feats.shape.len() == 3, "in.feats has shape {:?}, expected three axes", feats.shape);
    let lengths = golden.counts("in.feat_len")?;
    ensure!(
        lengths.len() == feats.shape[0],
        "in.feat_len has {} lengths of {} utterances",
        lengths.len(),
        feats.shape[0]
    );
    ensure!(
        lengths.iter().all(|&n| n <= feats.shape[1]),
        "in.feat_len is {lengths:?}, in.feats has {} frames",
        feats.shape[1]
    );
    Ok(frames(&feats.values, &lengths, &feats.shape, margin))
}

pub(super) fn weights(golden: &Golden, layout: Layout) -> anyhow::Result<Params<f32>> {
    let mut params = Params::zeros(Arc::new(layout));
    let layout = Arc::clone(&params.layout);
    let n_given = golden.names().filter(|name| name.starts_with("w.")).count();
    ensure!(n_given == layout.tensors().len(), "{n_given} tensors of weights, expected {}", layout.tensors().len());
    for tensor in layout.tensors() {
        let given = golden.tensor(&format!("w.{}", tensor.name))?;
        ensure!(given.shape == tensor.shape, "w.{} is {:?}, expected {:?}", tensor.name, given.shape, tensor.shape);
        tensor.slot.of_mut(&mut params.values).copy_from_slice(&given.values);
    }
    Ok(params)
}

fn frames(values: &[f32], lengths: &[usize], shape: &[usize], margin: [usize; 2]) -> Frames<f32> {
    let (n_frames, width) = (shape[1], shape[2]);
    let mut frames = Frames::new(width, margin);
    frames.resize_for(lengths.iter().copied());
    for (u, frames) in frames.each_real_mut().into_iter().enumerate() {
        let n = frames.len();
        frames.copy_from_slice(&values[u * n_frames * width..][..n]);
    }
    frames
}

/// The part of a `[batch][time][width]` tensor that lies within the utterances.
fn real(golden: &Golden, name: &str, lengths: &[usize]) -> anyhow::Result<Vec<Vec<f64>>> {
    let (shape, values) = (&golden.tensor(name)?.shape, golden.wide(name)?);
    let fits = shape.len() >= 2 && shape[0] == lengths.len() && lengths.iter().all(|&n| n <= shape[1]);
    ensure!(fits, "{name} has shape {shape:?}, expected utterances of {lengths:?} slices");
    let width: usize = shape[2..].iter().product();
    Ok(lengths.iter().enumerate().map(|(u, n)| values[u * shape[1] * width..][..n * width].to_vec()).collect())
}

pub(super) fn frames_error(golden: &Golden, name: &str, ours: &Frames<f32>) -> anyhow::Result<f64> {
    let theirs = real(golden, name, ours.lengths())?;
    let ours = (0..ours.n_utterances()).flat_map(|u| ours.real(u)).map(|&x| f64::from(x));
    Ok(error(ours, theirs.into_iter().flatten()))
}

pub(super) fn logits_error(golden: &Golden, logits: &Frames<f32>) -> anyhow::Result<f64> {
    let lengths = golden.counts("out.logit_len")?;
    ensure!(lengths == logits.lengths(), "{:?} slices, expected {lengths:?}", logits.lengths());
    frames_error(golden, "out.logits", logits)
}

pub(super) fn stream_error(
    golden: &Golden,
    config: &ModelConfig,
    params: &Params<f32>,
    x: &Frames<f32>,
) -> anyhow::Result<f64> {
    let net = Inference::new(config, &params.values);
    let theirs = real(golden, "out.logits", &golden.counts("out.logit_len")?)?;
    let (mut ours, mut expected) = (Vec::new(), Vec::new());
    for (u, logits) in theirs.iter().enumerate() {
        let mut stream = net.stream();
        let mut log_probs = Vec::new();
        // Odd pieces: a stream may not care.
        x.real(u).chunks(7 * config.n_features()).for_each(|piece| stream.accept(piece, &mut log_probs));
        stream.finish(&mut log_probs);
        ours.extend(log_probs.iter().map(|&x| f64::from(x)));
        let mut theirs = vec![0.0; logits.len()];
        log_softmax(logits, config.n_classes(), &mut theirs);
        expected.extend(theirs);
    }
    Ok(error(ours, expected))
}

/// The labels of all utterances.
pub(super) struct Labels(Vec<Vec<u32>>);

impl Labels {
    pub(super) fn each(&self) -> Vec<&[u32]> {
        self.0.iter().map(Vec::as_slice).collect()
    }
}

pub(super) fn labels(golden: &Golden) -> anyhow::Result<Labels> {
    let (labels, n_labels) = (golden.counts("in.labels")?, golden.counts("in.label_len")?);
    let width = labels.len() / n_labels.len().max(1);
    ensure!(n_labels.iter().all(|&n| n <= width), "in.label_len is {n_labels:?}, in.labels has {width} an utterance");
    let of_utterance = |(u, &n): (usize, &usize)| labels[u * width..][..n].iter().map(|&label| label as u32).collect();
    Ok(Labels(n_labels.iter().enumerate().map(of_utterance).collect()))
}

pub(super) fn losses(golden: &Golden, loss: &BatchLoss<f32>) -> anyhow::Result<Vec<Finding>> {
    let losses = loss.losses.iter().map(|loss| match loss {
        CtcLoss::Value(value) => *value,
        _ => f64::NAN,
    });
    let per_utterance = error(losses, golden.wide("out.loss_per_utt")?);
    let mean = error([loss.mean().unwrap_or(f64::NAN)], golden.wide("out.loss_mean")?);
    Ok(vec![Finding::new("losses", per_utterance, LOSSES), Finding::new("mean loss", mean, LOSSES)])
}

pub(super) fn gradients(golden: &Golden, layout: &Layout, gradient: &[f32]) -> anyhow::Result<Vec<Finding>> {
    let trainable = layout.tensors().iter().filter(|tensor| tensor.slot.offset < layout.n_trainable());
    trainable
        .map(|tensor| {
            let ours = tensor.slot.of(gradient).iter().map(|&g| f64::from(g));
            let name = format!("g.{}", tensor.name);
            let error = error(ours, golden.wide(&name)?);
            Ok(Finding::new(name, error, GRADIENTS))
        })
        .collect()
}
