//! SRF files: the model of the metadata is built, run forward, backward and as a stream, and compared tensor by tensor.

use anyhow::ensure;
use srf_model::config::{ModelConfig, PerLayer, Routing, SrfConfig};
use srf_model::params::Params;
use srf_model::srf::{Mode, Srf};

use super::compare::{frames_error, gradients, inputs, labels, logits_error, losses, stream_error, weights};
use super::file::Golden;
use super::{Finding, LOGITS, error};

/// Logits, losses, gradients, intermediate results and moving statistics, as far as the file has them.
pub(super) fn check(golden: &Golden) -> anyhow::Result<Vec<Finding>> {
    let config = config(golden)?;
    config.validate()?;
    let (mut net, layout) = Srf::<f32>::new(&config);
    let mut params = weights(golden, layout)?;
    let uses_batch_statistics = golden.text("bn_training")? == "true";
    let mode = Mode { uses_batch_statistics, draw: None, keeps_decisions: true };
    let x = inputs(golden, Srf::<f32>::MARGIN)?;
    let mut findings = Vec::new();
    if !uses_batch_statistics {
        let model = ModelConfig::Srf(config.clone());
        findings.push(Finding::new("log-probabilities, stream", stream_error(golden, &model, &params, &x)?, LOGITS));
    }
    let logits = net.forward(&mut params.values, mode, &x);
    findings.push(Finding::new("logits, batch", logits_error(golden, logits)?, LOGITS));
    findings.extend(intermediate(golden, &net, config.layers)?);
    let labels = labels(golden)?;
    findings.extend(losses(golden, net.loss(&labels.each()))?);
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
