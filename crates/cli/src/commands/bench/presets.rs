//! What to measure: a network of the paper's tables by a short name, or that of a recipe.

use std::path::Path;

use srf_model::config::{
    CnnConfig, Directions, Dropout, LstmConfig, Merge, ModelConfig, PerLayer, Recipe, SrfConfig, TransformerConfig,
};

/// A network with the name it is reported under.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) config: ModelConfig,
}

impl Subject {
    /// The network of `recipe`, if there is one, else of `preset`.
    pub(super) fn new(preset: Preset, recipe: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = recipe else { return Ok(Self { name: preset.name(), config: preset.config() }) };
        Ok(Self { name: path.display().to_string(), config: Recipe::load(path)?.model })
    }
}

/// A network to measure.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Preset {
    /// TIMIT table 1: one layer, 20 primary capsules, no window
    Srf1small,
    /// TIMIT SRF-1L
    Srf1,
    /// TIMIT SRF-2L
    Srf2,
    /// TIMIT SRF-5L
    Srf5,
    /// TIMIT SRF-7L
    Srf7,
    /// WSJ SRF-7L small
    Srf7smallWsj,
    /// WSJ SRF-7L big
    Srf7big,
    /// WSJ SRF-10L small
    Srf10small,
    /// WSJ SRF-10L big
    Srf10big,
    /// TIMIT BLSTM-5L-250H, both directions side by side
    Blstm5,
    /// TIMIT ULSTM-3L-421H
    Ulstm3,
    /// TIMIT CNN-10L-Maxout
    Cnn10,
    /// TIMIT TF-5L
    Tf5,
    /// TIMIT TF-10L
    Tf10,
    /// TIMIT TF-20L
    Tf20,
    /// WSJ BLSTM-5L
    Blstm5Wsj,
    /// WSJ ULSTM-5L
    Ulstm5Wsj,
    /// WSJ CNN-10L
    Cnn10Wsj,
    /// WSJ CNN-15L
    Cnn15Wsj,
    /// WSJ TF-20L
    Tf20Wsj,
}

impl Preset {
    fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn config(self) -> ModelConfig {
        match self {
            Self::Srf1small => {
                let none = PerLayer::Same(0);
                srf(SrfConfig { primary_height: 20, window_left: none.clone(), window_right: none, ..timit(1) })
            }
            Self::Srf1 => srf(timit(1)),
            Self::Srf2 => srf(timit(2)),
            Self::Srf5 => srf(timit(5)),
            Self::Srf7 => srf(timit(7)),
            Self::Srf7smallWsj => srf(wsj(7, 52, 26, 16)),
            Self::Srf7big => srf(wsj(7, 60, 30, 20)),
            Self::Srf10small => srf(wsj(10, 52, 26, 16)),
            Self::Srf10big => srf(wsj(10, 60, 30, 20)),
            Self::Blstm5 => ModelConfig::Lstm(LstmConfig::new(63)),
            Self::Ulstm3 => {
                let directions = Directions::Forward;
                ModelConfig::Lstm(LstmConfig { layers: 3, cells: 421, directions, ..LstmConfig::new(63) })
            }
            Self::Cnn10 => ModelConfig::Cnn(CnnConfig::new(63)),
            Self::Tf5 => transformer(5),
            Self::Tf10 => transformer(10),
            Self::Tf20 => transformer(20),
            Self::Blstm5Wsj => lstm_wsj(441, Directions::Both),
            Self::Ulstm5Wsj => lstm_wsj(662, Directions::Forward),
            Self::Cnn10Wsj => cnn_wsj(10, 140, 300),
            Self::Cnn15Wsj => cnn_wsj(15, 100, 215),
            Self::Tf20Wsj => {
                ModelConfig::Transformer(TransformerConfig { width: 256, inner: 1488, ..TransformerConfig::new(32) })
            }
        }
    }
}

fn srf(config: SrfConfig) -> ModelConfig {
    ModelConfig::Srf(config)
}

fn transformer(layers: usize) -> ModelConfig {
    ModelConfig::Transformer(TransformerConfig { layers, ..TransformerConfig::new(63) })
}

fn lstm_wsj(cells: usize, directions: Directions) -> ModelConfig {
    let merge = Merge::Average;
    ModelConfig::Lstm(LstmConfig { front_end: true, cells, directions, merge, ..LstmConfig::new(32) })
}

fn cnn_wsj(layers: usize, narrow_filters: usize, wide_filters: usize) -> ModelConfig {
    let config = CnnConfig { front_end: true, layers, narrow_filters, wide_filters, pool: 1, ..CnnConfig::new(32) };
    ModelConfig::Cnn(CnnConfig { dense_width: 1024, ..config })
}

fn timit(layers: usize) -> SrfConfig {
    SrfConfig { layers, dropout: Dropout { conv: 0.2, input: 0.1, between: 0.1 }, ..SrfConfig::new(63) }
}

fn wsj(layers: usize, primary_height: usize, hidden_height: usize, depth: usize) -> SrfConfig {
    SrfConfig {
        classes: 32,
        primary_height,
        hidden_height: PerLayer::Same(hidden_height),
        primary_depth: depth,
        hidden_depth: PerLayer::Same(depth),
        class_depth: depth,
        window_left: PerLayer::Same(2),
        window_right: PerLayer::Same(2),
        ..timit(layers)
    }
}
