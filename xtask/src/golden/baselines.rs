//! Files of the networks that the paper compares with: each is built, run forward and backward and compared.

use anyhow::{bail, ensure};
use srf_model::config::{CnnConfig, Directions, LstmConfig, Merge, ModelConfig, TransformerConfig};
use srf_model::network::{Mode, Network};

use super::compare::{gradients, inputs, labels, logits_error, losses, stream_error, weights};
use super::file::Golden;
use super::{Finding, LOGITS};

/// Logits, losses and gradients.
pub(super) fn check(golden: &Golden, model: &str) -> anyhow::Result<Vec<Finding>> {
    let config = match model {
        "ulstm" | "blstm" => ModelConfig::Lstm(lstm(golden)?),
        "cnn_mp" | "cnn_cnnfe" => ModelConfig::Cnn(cnn(golden)?),
        "transformer" => ModelConfig::Transformer(transformer(golden)?),
        other => bail!("its metadata says model `{other}`, expected one that this project has"),
    };
    config.validate()?;
    ensure!(golden.number("blank")? == config.blank_class(), "blank is {}", golden.number("blank")?);
    ensure!(golden.number("len_div")? == config.frames_per_slice(), "len_div is {}", golden.number("len_div")?);
    let (mut net, layout) = Network::<f32>::new(&config);
    let mut params = weights(golden, layout)?;
    ensure!(golden.number("params")? == params.values.len(), "{} parameters", params.values.len());
    let x = inputs(golden, net.margin())?;
    let of_stream = stream_error(golden, &config, &params, &x)?;
    let mut findings = vec![Finding::new("log-probabilities, recognised", of_stream, LOGITS)];
    let logits = net.forward(&mut params.values, Mode::default(), &x);
    findings.push(Finding::new("logits, batch", logits_error(golden, logits)?, LOGITS));
    let labels = labels(golden)?;
    findings.extend(losses(golden, net.loss(&labels.each()))?);
    let mut gradient = vec![0.0; params.layout.n_trainable()];
    net.backward(&params.values, Mode::default(), &x, &mut gradient);
    findings.extend(gradients(golden, &params.layout, &gradient)?);
    Ok(findings)
}

fn n_features(golden: &Golden) -> anyhow::Result<usize> {
    Ok(golden.tensor("in.feats")?.shape.get(2).copied().unwrap_or_default())
}

fn lstm(golden: &Golden) -> anyhow::Result<LstmConfig> {
    let mut config = LstmConfig::new(golden.number("V")?);
    config.features = n_features(golden)?;
    config.front_end = golden.text("cnnfe")? == "true";
    if config.front_end {
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
    config.front_end = golden.text("model")? == "cnn_cnnfe";
    if config.front_end {
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
