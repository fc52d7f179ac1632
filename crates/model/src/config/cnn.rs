//! The keys of `[model]` of the convolutional networks.

use serde::{Deserialize, Serialize};

use super::InvalidConfig;
use super::limits::{
    MAX_FILTERS, check_parameters, check_rates, check_shared, conv_widths, default_features, default_filters,
};
use crate::summary;

const MAX_WIDTH: usize = 1 << 14;
const MAX_DENSE_LAYERS: usize = 16;
const MAX_POOL: usize = 16;

/// Convolutional layers that keep a slice for every slice, with maxout and a layer norm by channel each, then dense
/// layers with maxout; either the strided convolutions of the capsule networks in front, or none and a maximum over
/// neighbouring frequencies behind the first layer.
///
/// The defaults are the CNN-10L-Maxout of the paper's TIMIT table; only `classes` has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CnnConfig {
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
    /// Convolutional layers, 5 slices by 3 frequencies each.
    #[serde(default = "default_layers")]
    pub layers: usize,
    /// How many of them have `narrow_filters` channels; the last one has as many as fit the dense layers.
    #[serde(default = "default_narrow_layers")]
    pub narrow_layers: usize,
    /// Channels of the first layers, behind maxout.
    #[serde(default = "default_narrow_filters")]
    pub narrow_filters: usize,
    /// Channels of the others, behind maxout.
    #[serde(default = "default_wide_filters")]
    pub wide_filters: usize,
    /// Neighbouring frequencies behind the first layer of which the largest stays; 1 keeps all.
    #[serde(default = "default_pool")]
    pub pool: usize,
    /// Dense layers before the one of the classes.
    #[serde(default = "default_dense_layers")]
    pub dense_layers: usize,
    /// Values of a dense layer, behind maxout.
    #[serde(default = "default_dense_width")]
    pub dense_width: usize,
    /// Rates of dropout while training.
    #[serde(default)]
    pub dropout: CnnDropout,
}

/// Rates of dropout while training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnnDropout {
    /// On each branch of every maxout but that of the classes.
    pub conv: f64,
    /// On the slices of the strided convolutions.
    pub input: f64,
    /// On the normalised output of every layer, and on the branches of the classes.
    pub between: f64,
}

impl Default for CnnDropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.1, between: 0.1 }
    }
}

fn default_layers() -> usize {
    10
}

fn default_narrow_layers() -> usize {
    4
}

fn default_narrow_filters() -> usize {
    64
}

fn default_wide_filters() -> usize {
    128
}

fn default_pool() -> usize {
    3
}

fn default_dense_layers() -> usize {
    2
}

fn default_dense_width() -> usize {
    512
}

/// The shape of one convolutional layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Frequencies of its input, and of its output before any pooling.
    pub n_freq: usize,
    /// Channels of its input.
    pub n_in: usize,
    /// Channels of its output, behind maxout.
    pub n_out: usize,
    /// Neighbouring frequencies of which the largest stays.
    pub pool: usize,
}

impl ConvShape {
    /// Frequencies of the output.
    pub fn n_freq_out(&self) -> usize {
        self.n_freq / self.pool
    }
}

impl CnnConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self {
            features: default_features(),
            classes,
            front_end: false,
            filters: default_filters(),
            layers: default_layers(),
            narrow_layers: default_narrow_layers(),
            narrow_filters: default_narrow_filters(),
            wide_filters: default_wide_filters(),
            pool: default_pool(),
            dense_layers: default_dense_layers(),
            dense_width: default_dense_width(),
            dropout: CnnDropout::default(),
        }
    }

    /// The shape of the convolutional layer at `index`, from 0.
    pub fn conv_shape(&self, index: usize) -> ConvShape {
        let (n_freq, n_channels) =
            if self.front_end { (conv_widths(self.features)[2], self.filters) } else { (self.features, 1) };
        let pooled = n_freq / self.pool;
        ConvShape {
            n_freq: if index == 0 { n_freq } else { pooled },
            n_in: if index == 0 { n_channels } else { self.channels(index - 1, pooled) },
            n_out: self.channels(index, pooled),
            pool: if index == 0 { self.pool } else { 1 },
        }
    }

    /// Channels behind the layer at `index`: of the last one as many as make the input of the dense layers about as
    /// wide as both branches of their maxout.
    fn channels(&self, index: usize, n_freq: usize) -> usize {
        if index + 1 == self.layers {
            2 * self.dense_width / n_freq
        } else if index < self.narrow_layers {
            self.narrow_filters
        } else {
            self.wide_filters
        }
    }

    /// The shapes of all convolutional layers, the lowest first.
    pub fn conv_shapes(&self) -> impl ExactSizeIterator<Item = ConvShape> + '_ {
        (0..self.layers).map(|index| self.conv_shape(index))
    }

    /// Values a slice at the input of the first dense layer.
    pub fn flat_width(&self) -> usize {
        let last = self.conv_shape(self.layers - 1);
        last.n_freq_out() * last.n_out
    }

    /// Inputs and outputs (behind maxout) of every dense layer, that of the classes last.
    pub fn dense_shapes(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        (0..=self.dense_layers).map(|index| {
            let n_in = if index == 0 { self.flat_width() } else { self.dense_width };
            [n_in, if index == self.dense_layers { self.classes } else { self.dense_width }]
        })
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.narrow_layers", self.narrow_layers, 0, self.layers)?;
        InvalidConfig::unless_within("model.narrow_filters", self.narrow_filters, 1, MAX_FILTERS)?;
        InvalidConfig::unless_within("model.wide_filters", self.wide_filters, 1, MAX_FILTERS)?;
        let n_freq = if self.front_end { conv_widths(self.features)[2] } else { self.features };
        InvalidConfig::unless_within("model.pool", self.pool, 1, MAX_POOL.min(n_freq))?;
        InvalidConfig::unless_within("model.dense_layers", self.dense_layers, 0, MAX_DENSE_LAYERS)?;
        let least = (n_freq / self.pool).div_ceil(2);
        InvalidConfig::unless_within("model.dense_width", self.dense_width, least, MAX_WIDTH)?;
        let CnnDropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])?;
        check_parameters(summary::cnn_parameters(self))
    }
}
