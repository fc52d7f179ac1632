//! The networks of the paper's tables by short names.

use model::config::{Dropout, PerLayer, SrfConfig};
use model::summary::srf_parameters;
use serde::Serialize;

/// A network to measure.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
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
}

impl Preset {
    pub(super) fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(super) fn config(self) -> SrfConfig {
        match self {
            Self::Srf1small => {
                let none = PerLayer::Same(0);
                let small = timit(1);
                SrfConfig { primary_height: 20, window_left: none.clone(), window_right: none, ..small }
            }
            Self::Srf1 => timit(1),
            Self::Srf2 => timit(2),
            Self::Srf5 => timit(5),
            Self::Srf7 => timit(7),
            Self::Srf7smallWsj => wsj(7, 52, 26, 16),
            Self::Srf7big => wsj(7, 60, 30, 20),
            Self::Srf10small => wsj(10, 52, 26, 16),
            Self::Srf10big => wsj(10, 60, 30, 20),
        }
    }

    pub(super) fn parameters(self) -> u64 {
        srf_parameters(&self.config()).total
    }
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
