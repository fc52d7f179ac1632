//! The keys of `[model]` of the networks that the paper compares with.

use serde::{Deserialize, Serialize};

use super::{FEATURES, FILTERS, InvalidConfig, MAX_FILTERS, check_rates, check_shared, conv_widths};

const MAX_CELLS: usize = 8192;
const MAX_DENSE_WIDTH: usize = 1 << 14;
const MAX_DENSE_LAYERS: usize = 16;
const MAX_POOL: usize = 16;
const MAX_WIDTH: usize = 4096;
const MAX_INNER: usize = 1 << 14;

/// `layers` LSTM layers, each with a layer norm, and a dense layer to the classes with another; with the convolution
/// stack of the capsule networks first if wanted.
///
/// The defaults are the BLSTM-5L-250H of the paper's TIMIT table; only `classes` must be given.
///
/// ```
/// use srf_model::config::{Directions, LstmConfig, LstmDropout, Merge};
///
/// let config = LstmConfig {
///     cells: 320,
///     directions: Directions::Both,
///     merge: Merge::Concat,
///     dropout: LstmDropout { input: 0.1, ..LstmDropout::default() },
///     ..LstmConfig::new(41)
/// };
/// assert_eq!((config.input_width(), config.hidden_width(), config.layer_width(1)), (123, 640, 640));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LstmConfig {
    /// Values in a feature frame.
    pub features: usize,
    /// Output classes: padding first, then the labels, the blank last.
    pub classes: usize,
    /// Whether a convolution stack makes slices of four frames first; without, every frame is a slice.
    #[serde(alias = "front_end")]
    pub conv_stack: bool,
    /// Filters of each convolution of the convolution stack.
    pub filters: usize,
    /// Recurrent layers.
    pub layers: usize,
    /// Cells of a layer in each direction.
    pub cells: usize,
    /// In which directions a layer runs over the utterance.
    pub directions: Directions,
    /// How the outputs of both directions are merged; no effect on one direction.
    pub merge: Merge,
    /// Dropout rates in training.
    pub dropout: LstmDropout,
}

/// In which directions a recurrent layer runs over an utterance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// From the first frame to the last.
    Forward,
    /// In both directions, each with its own weights.
    #[default]
    Both,
}

/// How the outputs of both directions are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// Concatenated: twice as wide.
    #[default]
    Concat,
    /// Their mean.
    Average,
}

/// Dropout rates in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LstmDropout {
    /// On each branch of the convolution stack.
    pub conv: f64,
    /// On the input of the first recurrent layer.
    pub input: f64,
    /// On the normalized output of every recurrent layer.
    pub between: f64,
}

impl Default for LstmDropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.3, between: 0.4 }
    }
}

impl Default for LstmConfig {
    fn default() -> Self {
        Self {
            features: FEATURES,
            classes: 0,
            conv_stack: false,
            filters: FILTERS,
            layers: 5,
            cells: 250,
            directions: Directions::default(),
            merge: Merge::default(),
            dropout: LstmDropout::default(),
        }
    }
}

impl LstmConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self { classes, ..Self::default() }
    }

    /// Values in a slice at the input of the first recurrent layer.
    pub fn input_width(&self) -> usize {
        if self.conv_stack { conv_widths(self.features)[2] * self.filters } else { self.features }
    }

    /// Values in a slice at the output of every recurrent layer.
    pub fn hidden_width(&self) -> usize {
        match (self.directions, self.merge) {
            (Directions::Both, Merge::Concat) => 2 * self.cells,
            _ => self.cells,
        }
    }

    /// Values in a slice at the input of the recurrent layer at `index`.
    pub fn layer_width(&self, index: usize) -> usize {
        if index == 0 { self.input_width() } else { self.hidden_width() }
    }

    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.cells", self.cells, 1, MAX_CELLS)?;
        let LstmDropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])
    }
}

/// Convolutional layers that keep a slice for every slice, with maxout and a layer norm by channel each, then dense
/// layers with maxout; with either the convolution stack of the capsule networks first, or max pooling over
/// neighbouring frequencies after the first layer.
///
/// The defaults are the CNN-10L-Maxout of the paper's TIMIT table; only `classes` must be given.
///
/// ```
/// use srf_model::config::{CnnConfig, CnnDropout, ConvShape};
///
/// let config = CnnConfig { dropout: CnnDropout::default(), ..CnnConfig::new(41) };
/// let first: ConvShape = config.conv_shape(0);
/// assert_eq!((first.n_freq, first.n_freq_out()), (123, 41));
/// assert_eq!(config.conv_shapes().len(), config.layers);
/// assert_eq!(config.dense_shapes().next(), Some([config.flat_width(), config.dense_width]));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnnConfig {
    /// Values in a feature frame.
    pub features: usize,
    /// Output classes: padding first, then the labels, the blank last.
    pub classes: usize,
    /// Whether a convolution stack makes slices of four frames first; without, every frame is a slice.
    #[serde(alias = "front_end")]
    pub conv_stack: bool,
    /// Filters of each convolution of the convolution stack.
    pub filters: usize,
    /// Convolutional layers, 5 slices by 3 frequencies each.
    pub layers: usize,
    /// How many of them have `narrow_filters` channels; the last one has as many as fit the dense layers.
    pub narrow_layers: usize,
    /// Channels of the first layers, after maxout.
    pub narrow_filters: usize,
    /// Channels of the others, after maxout.
    pub wide_filters: usize,
    /// Neighbouring frequencies that are max-pooled after the first layer; 1 pools nothing.
    pub pool: usize,
    /// Dense layers before the one of the classes.
    pub dense_layers: usize,
    /// Values of a dense layer, after maxout.
    pub dense_width: usize,
    /// Dropout rates in training.
    pub dropout: CnnDropout,
}

/// Dropout rates in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnnDropout {
    /// On each branch of every maxout but that of the classes.
    pub conv: f64,
    /// On the slices of the convolution stack.
    pub input: f64,
    /// On the normalized output of every layer, and on the branches of the classes.
    pub between: f64,
}

impl Default for CnnDropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.1, between: 0.1 }
    }
}

/// The shape of one convolutional layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Frequencies of its input, and of its output before any pooling.
    pub n_freq: usize,
    /// Channels of its input.
    pub n_in: usize,
    /// Channels of its output, after maxout.
    pub n_out: usize,
    /// Neighbouring frequencies that are max-pooled.
    pub pool: usize,
}

impl ConvShape {
    /// Frequencies of the output.
    pub fn n_freq_out(&self) -> usize {
        self.n_freq / self.pool
    }
}

impl Default for CnnConfig {
    fn default() -> Self {
        Self {
            features: FEATURES,
            classes: 0,
            conv_stack: false,
            filters: FILTERS,
            layers: 10,
            narrow_layers: 4,
            narrow_filters: 64,
            wide_filters: 128,
            pool: 3,
            dense_layers: 2,
            dense_width: 512,
            dropout: CnnDropout::default(),
        }
    }
}

impl CnnConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self { classes, ..Self::default() }
    }

    /// The shape of the convolutional layer at `index`, from 0.
    pub fn conv_shape(&self, index: usize) -> ConvShape {
        let (n_freq, n_channels) =
            if self.conv_stack { (conv_widths(self.features)[2], self.filters) } else { (self.features, 1) };
        let pooled = n_freq / self.pool;
        ConvShape {
            n_freq: if index == 0 { n_freq } else { pooled },
            n_in: if index == 0 { n_channels } else { self.channels(index - 1, pooled) },
            n_out: self.channels(index, pooled),
            pool: if index == 0 { self.pool } else { 1 },
        }
    }

    /// Channels after the layer at `index`; the last one has as many as make the input of the dense layers about as
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

    /// Values in a slice at the input of the first dense layer.
    pub fn flat_width(&self) -> usize {
        let last = self.conv_shape(self.layers - 1);
        last.n_freq_out() * last.n_out
    }

    /// Inputs and outputs (after maxout) of every dense layer, that of the classes last.
    pub fn dense_shapes(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        (0..=self.dense_layers).map(|index| {
            let n_in = if index == 0 { self.flat_width() } else { self.dense_width };
            [n_in, if index == self.dense_layers { self.classes } else { self.dense_width }]
        })
    }

    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.narrow_layers", self.narrow_layers, 0, self.layers)?;
        InvalidConfig::unless_within("model.narrow_filters", self.narrow_filters, 1, MAX_FILTERS)?;
        InvalidConfig::unless_within("model.wide_filters", self.wide_filters, 1, MAX_FILTERS)?;
        let n_freq = if self.conv_stack { conv_widths(self.features)[2] } else { self.features };
        InvalidConfig::unless_within("model.pool", self.pool, 1, MAX_POOL.min(n_freq))?;
        InvalidConfig::unless_within("model.dense_layers", self.dense_layers, 0, MAX_DENSE_LAYERS)?;
        let least = (n_freq / self.pool).div_ceil(2);
        InvalidConfig::unless_within("model.dense_width", self.dense_width, least, MAX_DENSE_WIDTH)?;
        let CnnDropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])
    }
}

/// The convolution stack of the capsule networks, a dense layer with an encoding of positions, `layers` blocks of
/// self-attention, a layer norm, and a dense layer to the classes.
///
/// The defaults are the TF-20L of the paper's TIMIT table; only `classes` must be given.
///
/// ```
/// use srf_model::config::{TransformerConfig, TransformerDropout};
///
/// let config = TransformerConfig { layers: 5, dropout: TransformerDropout::default(), ..TransformerConfig::new(41) };
/// assert_eq!(config.flat_width(), 31 * config.filters);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransformerConfig {
    /// Values in a feature frame.
    pub features: usize,
    /// Output classes: padding first, then the labels, the blank last.
    pub classes: usize,
    /// Filters of each convolution of the convolution stack.
    pub filters: usize,
    /// Whether the convolution stack is trained as in the other networks, with dropout and the statistics of the batch.
    /// Off: it has no dropout and its batch norms keep mean 0 and variance 1, as in the authors' code.
    #[serde(alias = "front_end_statistics")]
    pub conv_stack_statistics: bool,
    /// Blocks of self-attention.
    pub layers: usize,
    /// Values in a slice between the blocks.
    pub width: usize,
    /// Heads of attention, among which `width` is divided.
    pub heads: usize,
    /// Values in a slice inside the dense layers of a block.
    pub inner: usize,
    /// Whether attention decreases with the distance δ in slices, by -log(1 + δ) on its logits.
    pub distance_penalty: bool,
    /// Dropout rates in training.
    pub dropout: TransformerDropout,
}

/// Dropout rates in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransformerDropout {
    /// On each branch of the convolution stack.
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

impl Default for TransformerConfig {
    fn default() -> Self {
        Self {
            features: FEATURES,
            classes: 0,
            filters: FILTERS,
            conv_stack_statistics: true,
            layers: 20,
            width: 128,
            heads: 4,
            inner: 1024,
            distance_penalty: true,
            dropout: TransformerDropout::default(),
        }
    }
}

impl TransformerConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self { classes, ..Self::default() }
    }

    /// Values in a slice at the input of the first dense layer.
    pub fn flat_width(&self) -> usize {
        conv_widths(self.features)[2] * self.filters
    }

    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
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
        check_rates(rates)
    }
}
