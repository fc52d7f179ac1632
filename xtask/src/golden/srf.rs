//! SRF files: the model of the metadata is built, run forward, backward and as a stream, and compared tensor by tensor.

use std::sync::Arc;

use anyhow::ensure;
use kernels::{CtcLoss, log_softmax};
use model::config::{PerLayer, Routing, SrfConfig};
use model::frames::Frames;
use model::params::{Layout, Params};
use model::srf::{Mode, Srf};
use model::stream::StreamingSrf;

use super::file::Golden;
use super::{Finding, GRADIENTS, LOGITS, LOSSES, error};

/// Logits, losses, gradients, intermediate results and moving statistics, as far as the file has them.
pub(super) fn check(golden: &Golden) -> anyhow::Result<Vec<Finding>> {
    let config = config(golden)?;
    config.validate()?;
    let (mut net, layout) = Srf::<f32>::new(&config);
    let mut params = weights(golden, layout)?;
    let uses_batch_statistics = golden.text("bn_training")? == "true";
    let mode = Mode { uses_batch_statistics, draw: None, keeps_decisions: true };
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
    let x = frames(&feats.values, &lengths, feats.shape[1], feats.shape[2]);
    let mut findings = Vec::new();
    if !uses_batch_statistics {
        findings.push(Finding::new("log-probabilities, stream", stream_error(golden, &config, &params, &x)?, LOGITS));
    }
    let logits = net.forward(&mut params.values, mode, &x);
    findings.push(Finding::new("logits, batch", logits_error(golden, logits)?, LOGITS));
    findings.extend(intermediate(golden, &net, config.layers)?);
    findings.extend(losses(golden, &mut net)?);
    let mut gradient = vec![0.0; params.layout.n_trainable()];
    net.backward(&params.values, mode, &x, &mut gradient);
    findings.extend(gradients(golden, &params.layout, &gradient)?);
    if uses_batch_statistics {
        findings.extend(statistics(golden, &params)?);
    }
    Ok(findings)
}

fn config(golden: &Golden) -> anyhow::Result<SrfConfig> {
    let number = |key| golden.number(key);
    let same = |key| anyhow::Ok(PerLayer::Same(golden.number(key)?));
    let mut config = SrfConfig::new(number("V")?);
    config.features = golden.tensor("in.feats")?.shape.get(2).copied().unwrap_or_default();
    config.filters = number("conv_filters")?;
    config.layers = number("L")?;
    (config.primary_height, config.primary_depth) = (number("P_H")?, number("P_D")?);
    (config.hidden_height, config.hidden_depth) = (same("M_H")?, same("M_D")?);
    config.class_depth = number("V_D")?;
    (config.window_left, config.window_right) = (same("wl")?, same("wr")?);
    config.iterations = number("iters")?;
    config.routing = match golden.text("routing")? {
        "SDR" => Routing::Sdr,
        "DR" => Routing::Dr,
        other => anyhow::bail!("its metadata has `routing` = `{other}`, expected `SDR` or `DR`"),
    };
    ensure!(number("blank")? + 1 == config.classes, "blank is {}, expected the last class", number("blank")?);
    ensure!(number("pad")? == 0, "pad is {}, expected 0", number("pad")?);
    Ok(config)
}

fn weights(golden: &Golden, layout: Layout) -> anyhow::Result<Params<f32>> {
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

fn frames(values: &[f32], lengths: &[usize], n_frames: usize, width: usize) -> Frames<f32> {
    let mut frames = Frames::new(width, Srf::<f32>::MARGIN);
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

fn frames_error(golden: &Golden, name: &str, ours: &Frames<f32>) -> anyhow::Result<f64> {
    let theirs = real(golden, name, ours.lengths())?;
    let ours = (0..ours.n_utterances()).flat_map(|u| ours.real(u)).map(|&x| f64::from(x));
    Ok(error(ours, theirs.into_iter().flatten()))
}

fn logits_error(golden: &Golden, logits: &Frames<f32>) -> anyhow::Result<f64> {
    let lengths = golden.counts("out.logit_len")?;
    ensure!(lengths == logits.lengths(), "{:?} slices, expected {lengths:?}", logits.lengths());
    frames_error(golden, "out.logits", logits)
}

fn stream_error(golden: &Golden, config: &SrfConfig, params: &Params<f32>, x: &Frames<f32>) -> anyhow::Result<f64> {
    let net = Arc::new(StreamingSrf::new(config, &params.values));
    let theirs = real(golden, "out.logits", &golden.counts("out.logit_len")?)?;
    let (mut ours, mut expected) = (Vec::new(), Vec::new());
    for (u, logits) in theirs.iter().enumerate() {
        let mut stream = net.stream();
        let mut log_probs = Vec::new();
        // Odd pieces: a stream may not care.
        x.real(u).chunks(7 * config.features).for_each(|piece| stream.accept(piece, &mut log_probs));
        stream.finish(&mut log_probs);
        ours.extend(log_probs.iter().map(|&x| f64::from(x)));
        let mut theirs = vec![0.0; logits.len()];
        log_softmax(logits, config.classes, &mut theirs);
        expected.extend(theirs);
    }
    Ok(error(ours, expected))
}

fn intermediate(golden: &Golden, net: &Srf<f32>, n_layers: usize) -> anyhow::Result<Vec<Finding>> {
    let front_end = net.front_end();
    let mut stages = vec![
        ("mid.cnnfe".to_owned(), front_end.slices()),
        ("mid.proj".to_owned(), &front_end.activations().projected),
        ("mid.encaps_max".to_owned(), front_end.unsquashed()),
        ("mid.primary_squashed".to_owned(), &front_end.activations().capsules),
        ("mid.primary_ln".to_owned(), &front_end.activations().normed),
        ("mid.length".to_owned(), net.class_lengths()),
    ];
    for layer in 0..n_layers {
        let (routed, normed) = net.capsules(layer);
        stages.push((format!("mid.caps{}.routed", layer + 1), routed));
        stages.push((format!("mid.caps{}.normed", layer + 1), normed));
    }
    let mut findings = Vec::new();
    for (name, frames) in stages {
        if golden.names().any(|given| given == name) {
            findings.push(Finding::new(name.clone(), frames_error(golden, &name, frames)?, LOGITS));
        }
    }
    if golden.names().any(|name| name == "mid.c_last") {
        let ours = net.decisions(n_layers - 1)[0].couplings.iter().map(|&c| f64::from(c));
        findings.push(Finding::new("mid.c_last", error(ours, golden.wide("mid.c_last")?), LOGITS));
    }
    Ok(findings)
}

fn losses(golden: &Golden, net: &mut Srf<f32>) -> anyhow::Result<Vec<Finding>> {
    let (labels, n_labels) = (golden.counts("in.labels")?, golden.counts("in.label_len")?);
    let width = labels.len() / n_labels.len().max(1);
    ensure!(n_labels.iter().all(|&n| n <= width), "in.label_len is {n_labels:?}, in.labels has {width} an utterance");
    let labels: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
    let labels: Vec<&[u32]> = n_labels.iter().enumerate().map(|(u, &n)| &labels[u * width..][..n]).collect();
    let loss = net.loss(&labels);
    let losses = loss.losses.iter().map(|loss| match loss {
        CtcLoss::Value(value) => *value,
        _ => f64::NAN,
    });
    let per_utterance = error(losses, golden.wide("out.loss_per_utt")?);
    let mean = error([loss.mean().unwrap_or(f64::NAN)], golden.wide("out.loss_mean")?);
    Ok(vec![Finding::new("losses", per_utterance, LOSSES), Finding::new("mean loss", mean, LOSSES)])
}

fn gradients(golden: &Golden, layout: &Layout, gradient: &[f32]) -> anyhow::Result<Vec<Finding>> {
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

fn statistics(golden: &Golden, params: &Params<f32>) -> anyhow::Result<Vec<Finding>> {
    let statistics = params.layout.tensors().iter().filter(|tensor| tensor.slot.offset >= params.layout.n_trainable());
    statistics
        .map(|tensor| {
            let ours = tensor.slot.of(&params.values).iter().map(|&x| f64::from(x));
            let name = format!("w_after.{}", tensor.name);
            let error = error(ours, golden.wide(&name)?);
            Ok(Finding::new(name, error, LOGITS))
        })
        .collect()
}
