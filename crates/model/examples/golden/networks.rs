//! Files of networks: the network of the metadata is built, run forward, backward and as a stream, and compared tensor by
//! tensor.

use anyhow::{Context as _, bail, ensure};
use srf_model::config::{
    CnnConfig, Directions, LstmConfig, Merge, ModelConfig, PerLayer, Routing, SrfConfig, TransformerConfig,
};
use srf_model::network::{Mode, Network};
use srf_model::params::Params;

use super::compare::{frames_error, gradients, inputs, labels, logits_error, losses, stream_error, weights};
use super::file::Golden;
use super::{Finding, LOGITS, error};

/// Intermediate results of networks of capsules: their names in the files, and the layers that compute them.
const STAGES: [(&str, &str); 6] = [
    ("mid.cnnfe", "bn2"),
    ("mid.proj", "proj"),
    ("mid.encaps_max", "encaps.unsquashed"),
    ("mid.primary_squashed", "encaps"),
    ("mid.primary_ln", "ln_in"),
    ("mid.length", "length"),
];

/// Logits, losses, gradients, intermediate results and moving statistics, as far as the file has them.
pub(super) fn check(golden: &Golden, model: &str) -> anyhow::Result<Vec<Finding>> {
    let config = config(golden, model)?;
    config.validate()?;
    ensure!(golden.number("blank")? == config.blank_class(), "blank is {}", golden.number("blank")?);
    let (mut net, layout) = Network::<f32>::new(&config);
    let mut params = weights(golden, layout)?;
    let uses_batch_statistics = golden.text("bn_training").is_ok_and(|value| value == "true");
    let mode = Mode { uses_batch_statistics, dropout: None, keeps_decisions: true };
    let x = inputs(golden, net.margin())?;
    let mut findings = Vec::new();
    if !uses_batch_statistics {
        let error = stream_error(golden, &config, &params, &x)?;
        findings.push(Finding::new("log-probabilities, stream", error, LOGITS));
    }
    let logits = net.forward(&mut params.values, mode, &x);
    findings.push(Finding::new("logits, batch", logits_error(golden, logits)?, LOGITS));
    if let ModelConfig::Srf(srf) = &config {
        findings.extend(intermediate(golden, &net, srf.layers)?);
    }
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

fn config(golden: &Golden, model: &str) -> anyhow::Result<ModelConfig> {
    let config = match model {
        "srf_naive" => return Ok(ModelConfig::Srf(srf(golden)?)),
        "ulstm" | "blstm" => ModelConfig::Lstm(lstm(golden)?),
        "cnn_mp" | "cnn_cnnfe" => ModelConfig::Cnn(cnn(golden)?),
        "transformer" => ModelConfig::Transformer(transformer(golden)?),
        other => bail!("its metadata says model `{other}`, expected one that this project has"),
    };
    ensure!(golden.number("len_div")? == config.frames_per_slice(), "len_div is {}", golden.number("len_div")?);
    let n_parameters = config.parameters().total;
    ensure!(golden.number("params")? as u64 == n_parameters, "{n_parameters} parameters");
    Ok(config)
}

fn intermediate(golden: &Golden, net: &Network<f32>, n_layers: usize) -> anyhow::Result<Vec<Finding>> {
    let mut stages: Vec<(String, String)> = STAGES.map(|(name, layer)| (name.to_owned(), layer.to_owned())).to_vec();
    for layer in 1..=n_layers {
        stages.push((format!("mid.caps{layer}.routed"), format!("caps{layer}")));
        stages.push((format!("mid.caps{layer}.normed"), format!("ln_caps{layer}")));
    }
    let mut findings = Vec::new();
    for (name, layer) in stages {
        if golden.names().any(|given| given == name) {
            let frames = net.activation(&layer).with_context(|| format!("layer `{layer}` keeps no results"))?;
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

fn srf(golden: &Golden) -> anyhow::Result<SrfConfig> {
    let number = |key| golden.number(key);
    let same = |key| anyhow::Ok(PerLayer::Same(golden.number(key)?));
    let mut config = SrfConfig::new(number("V")?);
    config.features = n_features(golden)?;
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
        other => bail!("its metadata has `routing` = `{other}`, expected `SDR` or `DR`"),
    };
    ensure!(number("pad")? == 0, "pad is {}, expected 0", number("pad")?);
    Ok(config)
}

fn n_features(golden: &Golden) -> anyhow::Result<usize> {
    Ok(golden.tensor("in.feats")?.shape.get(2).copied().unwrap_or_default())
}

fn lstm(golden: &Golden) -> anyhow::Result<LstmConfig> {
    let mut config = LstmConfig::new(golden.number("V")?);
    config.features = n_features(golden)?;
    config.conv_stack = golden.text("cnnfe")? == "true";
    if config.conv_stack {
        config.filters = golden.number("conv_filters")?;
    }
    (config.layers, config.cells) = (golden.number("layers")?, golden.number("hidden")?);
    if golden.text("model")? == "ulstm" {
        config.directions = Directions::Forward;
    } else {
        config.merge = match golden.text("merge")? {
            "concat" => Merge::Concat,
            "average" => Merge::Average,
            other => bail!("its metadata has `merge` = `{other}`, expected `concat` or `average`"),
        };
    }
    Ok(config)
}

fn cnn(golden: &Golden) -> anyhow::Result<CnnConfig> {
    let mut config = CnnConfig::new(golden.number("V")?);
    config.features = n_features(golden)?;
    config.conv_stack = golden.text("model")? == "cnn_cnnfe";
    if config.conv_stack {
        config.filters = golden.number("conv_filters")?;
        config.pool = 1;
    }
    config.layers = golden.number("layers")?;
    config.narrow_filters = golden.number("inp_filters")? / 2;
    config.wide_filters = golden.number("inn_filters")? / 2;
    config.dense_layers = golden.number("proj_num")?.saturating_sub(1);
    config.dense_width = golden.number("proj_dim")? / 2;
    Ok(config)
}

fn transformer(golden: &Golden) -> anyhow::Result<TransformerConfig> {
    let mut config = TransformerConfig::new(golden.number("V")?);
    config.features = n_features(golden)?;
    config.filters = golden.number("conv_filters")?;
    (config.layers, config.width) = (golden.number("layers")?, golden.number("d_model")?);
    (config.heads, config.inner) = (golden.number("heads")?, golden.number("inner")?);
    Ok(config)
}
