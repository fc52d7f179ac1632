//! The keys of `[model]` of the networks of self-attention.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;
use super::limits::{check_parameters, check_rates, check_shared, conv_widths, default_features, default_filters};
use crate::summary;

const MAX_WIDTH: usize = 4096;
const MAX_INNER: usize = 1 << 14;

/// The strided convolutions of the capsule networks, a dense layer with an encoding of positions, `layers` blocks of
/// self-attention, a layer norm, and a dense layer to the classes.
///
/// The defaults are the TF-20L of the paper's TIMIT table; only `classes` has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Values in a feature frame.
    #[serde(default = "default_features")]
    pub features: usize,
    /// Output classes: padding first, then the labels, the blank last.
    pub classes: usize,
    /// Filters of each of the two strided convolutions.
    #[serde(default = "default_filters")]
    pub filters: usize,
    /// Whether the strided convolutions are trained like everywhere else, with dropout and the statistics of the batch.
    /// Off: they never drop anything and their batch norms never leave mean 0 and variance 1, as in the authors' code.
    #[serde(default = "default_true")]
    pub front_end_statistics: bool,
    /// Blocks of self-attention.
    #[serde(default = "default_layers")]
    pub layers: usize,
    /// Values of a slice between the blocks.
    #[serde(default = "default_width")]
    pub width: usize,
    /// Heads of attention, among which `width` is divided.
    #[serde(default = "default_heads")]
    pub heads: usize,
    /// Values of a slice inside the dense layers of a block.
    #[serde(default = "default_inner")]
    pub inner: usize,
    /// Whether attention falls with the distance δ in slices, by -log(1 + δ) on its logits.
    #[serde(default = "default_true")]
    pub distance_penalty: bool,
    /// Rates of dropout while training.
    #[serde(default)]
    pub dropout: TransformerDropout,
}

/// Rates of dropout while training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransformerDropout {
    /// On each branch of the strided convolutions.
    pub conv: f64,
    /// On the input of the first block.
    pub input: f64,
    /// On the weights of attention.
    pub attention: f64,
    /// Inside the dense layers of a block.
    pub inner: f64,
    /// On what a block adds to its input.
    pub residual: f64,
}

impl Default for TransformerDropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.3, attention: 0.3, inner: 0.4, residual: 0.4 }
    }
}

fn default_true() -> bool {
    true
}

fn default_layers() -> usize {
    20
}

fn default_width() -> usize {
    128
}

fn default_heads() -> usize {
    4
}

fn default_inner() -> usize {
    1024
}

impl TransformerConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self {
            features: default_features(),
            classes,
            filters: default_filters(),
            front_end_statistics: true,
            layers: default_layers(),
            width: default_width(),
            heads: default_heads(),
            inner: default_inner(),
            distance_penalty: true,
            dropout: TransformerDropout::default(),
        }
    }

    /// Values a slice at the input of the first dense layer.
    pub fn flat_width(&self) -> usize {
        conv_widths(self.features)[2] * self.filters
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        // Two channels at the least carry a position's sine, two its cosine.
        InvalidConfig::unless_within("model.width", self.width, 4, MAX_WIDTH)?;
        InvalidConfig::unless(self.width.is_multiple_of(2), "model.width", self.width, "an even number")?;
        let is_divided = self.heads > 0 && self.width.is_multiple_of(self.heads);
        let expected = format_args!("a divisor of `width`, {}", self.width);
        InvalidConfig::unless(is_divided, "model.heads", self.heads, expected)?;
        InvalidConfig::unless_within("model.inner", self.inner, 1, MAX_INNER)?;
        let TransformerDropout { conv, input, attention, inner, residual } = self.dropout;
        let rates =
            [("conv", conv), ("input", input), ("attention", attention), ("inner", inner), ("residual", residual)];
        check_rates(rates)?;
        check_parameters(summary::transformer_parameters(self))
    }
}
