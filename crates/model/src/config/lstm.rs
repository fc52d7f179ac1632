//! The keys of `[model]` of the recurrent networks.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;
use super::limits::{check_parameters, check_rates, check_shared, conv_widths, default_features, default_filters};
use crate::summary;

const MAX_CELLS: usize = 8192;

/// `layers` LSTM layers, each with a layer norm, and a dense layer to the classes with another; the strided
/// convolutions of the capsule networks in front if wanted.
///
/// The defaults are the BLSTM-5L-250H of the paper's TIMIT table; only `classes` has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmConfig {
    /// Values in a feature frame.
    #[serde(default = "default_features")]
    pub features: usize,
    /// Output classes: padding first, then the labels, the blank last.
    pub classes: usize,
    /// Whether two strided convolutions make slices of four frames first; without, every frame is a slice.
    #[serde(default)]
    pub front_end: bool,
    /// Filters of each of the two strided convolutions.
    #[serde(default = "default_filters")]
    pub filters: usize,
    /// Recurrent layers.
    #[serde(default = "default_layers")]
    pub layers: usize,
    /// Cells of a layer in each direction.
    #[serde(default = "default_cells")]
    pub cells: usize,
    /// Ways in which a layer runs over the utterance.
    #[serde(default)]
    pub directions: Directions,
    /// What becomes of the outputs of both directions; without meaning for one.
    #[serde(default)]
    pub merge: Merge,
    /// Rates of dropout while training.
    #[serde(default)]
    pub dropout: LstmDropout,
}

/// Ways in which a recurrent layer runs over an utterance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// From the first frame to the last.
    Forward,
    /// Both ways, each with weights of its own.
    #[default]
    Both,
}

/// What becomes of the outputs of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// One behind the other: twice as wide.
    #[default]
    Concat,
    /// Their mean.
    Average,
}

/// Rates of dropout while training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LstmDropout {
    /// On each branch of the strided convolutions.
    pub conv: f64,
    /// On the input of the first recurrent layer.
    pub input: f64,
    /// On the normalised output of every recurrent layer.
    pub between: f64,
}

impl Default for LstmDropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.3, between: 0.4 }
    }
}

fn default_layers() -> usize {
    5
}

fn default_cells() -> usize {
    250
}

impl LstmConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self {
            features: default_features(),
            classes,
            front_end: false,
            filters: default_filters(),
            layers: default_layers(),
            cells: default_cells(),
            directions: Directions::default(),
            merge: Merge::default(),
            dropout: LstmDropout::default(),
        }
    }

    /// Values a slice at the input of the first recurrent layer.
    pub fn input_width(&self) -> usize {
        if self.front_end { conv_widths(self.features)[2] * self.filters } else { self.features }
    }

    /// Values a slice at the output of every recurrent layer.
    pub fn hidden_width(&self) -> usize {
        match (self.directions, self.merge) {
            (Directions::Both, Merge::Concat) => 2 * self.cells,
            _ => self.cells,
        }
    }

    /// Values a slice at the input of the recurrent layer at `index`.
    pub fn layer_width(&self, index: usize) -> usize {
        if index == 0 { self.input_width() } else { self.hidden_width() }
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.cells", self.cells, 1, MAX_CELLS)?;
        let LstmDropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])?;
        check_parameters(summary::lstm_parameters(self))
    }
}
