//! The sequential routing framework's own keys of `[model]`: heights, depths, windows and routing in, the shape of every
//! capsule layer out.

use serde::{Deserialize, Serialize};

use super::limits::{check_parameters, check_rates, check_shared, conv_widths, default_features, default_filters};
use super::routing::{self, Couplings, Routing, Start, is_default};
use super::{InvalidConfig, PerLayer};
use crate::summary;

/// The class of the padding symbol: it has a logit, but nothing is routed to it and it is never emitted.
pub const PADDING_CLASS: usize = 0;

/// Bounds of the keys; their product is bounded by [`MAX_PARAMETERS`](super::MAX_PARAMETERS) besides.
const MAX_HEIGHT: usize = 4096;
const MAX_DEPTH: usize = 256;
const MAX_WINDOW: usize = 32;

/// The network of the paper: two strided maxout convolutions, a capsulation block, `layers` capsule layers, and the
/// lengths of the class capsules.
///
/// The defaults are the paper's SRF-7L; only `classes` has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SrfConfig {
    /// Values in a feature frame (F').
    #[serde(default = "default_features")]
    pub features: usize,
    /// Output classes (V): padding first, then the labels, the blank last.
    pub classes: usize,
    /// Filters of each of the two strided convolutions.
    #[serde(default = "default_filters")]
    pub filters: usize,
    /// Capsule layers (L).
    #[serde(default = "default_layers")]
    pub layers: usize,
    /// Primary capsules a slice (P_H).
    #[serde(default = "default_primary_height")]
    pub primary_height: usize,
    /// Capsules a slice (M_H) of the layers between; one number, or a list of `layers` - 1.
    #[serde(default = "default_hidden_height")]
    pub hidden_height: PerLayer,
    /// Values in a primary capsule (P_D).
    #[serde(default = "default_depth")]
    pub primary_depth: usize,
    /// Values in a capsule (M_D) of the layers between; one number, or a list of `layers` - 1.
    #[serde(default = "default_hidden_depth")]
    pub hidden_depth: PerLayer,
    /// Values in a class capsule (V_D).
    #[serde(default = "default_depth")]
    pub class_depth: usize,
    /// Slices before the current one that a layer sees (ω_L); one number, or a list of `layers`.
    #[serde(default = "default_window")]
    pub window_left: PerLayer,
    /// Slices after the current one that a layer sees (ω_R); one number, or a list of `layers`.
    #[serde(default = "default_window")]
    pub window_right: PerLayer,
    /// How capsules agree.
    #[serde(default)]
    pub routing: Routing,
    /// Iterations of the routing within a slice (Λ).
    #[serde(default = "default_iterations")]
    pub iterations: usize,
    /// How agreements become couplings, in `sdr` and `dr`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub couplings: Couplings,
    /// How much couplings are held back from leaving equality (λ), in `sdr` and `dr`; none: not at all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub entropy: Option<f64>,
    /// What agreements start from, in `sdr` and `dr`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// How the weights of the capsule layers are drawn.
    #[serde(default)]
    pub initialiser: Initialiser,
    /// What the gradient of the routing flows through.
    #[serde(default)]
    pub gradient: Gradient,
    /// Rates of dropout while training.
    #[serde(default)]
    pub dropout: Dropout,
}

/// How the weights of the capsule layers are drawn; all other weights are always drawn by `fan_avg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initialiser {
    /// Uniform with variance 2 / (fan in + fan out), biases 0: what the paper says.
    ///
    /// Votes are then so long that couplings are decisions before anything is learned; deep networks hardly start.
    FanAvg,
    /// Normal with deviation 0.1, weights and biases: what the authors' code does.
    #[default]
    Normal,
}

/// What the gradient of the routing flows through; both on is the exact gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gradient {
    /// Through every iteration of a slice; off: through the last one only.
    pub through_iterations: bool,
    /// To the slice before, through the output carried from it; off: that output counts as a constant.
    pub through_time: bool,
}

/// Rates of dropout while training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dropout {
    /// On each branch of every maxout convolution.
    pub conv: f64,
    /// On the normalised primary capsules.
    pub input: f64,
    /// On the normalised output of every capsule layer.
    pub between: f64,
}

impl Default for Gradient {
    fn default() -> Self {
        Self { through_iterations: true, through_time: true }
    }
}

impl Default for Dropout {
    fn default() -> Self {
        Self { conv: 0.2, input: 0.2, between: 0.2 }
    }
}

fn default_layers() -> usize {
    7
}

fn default_primary_height() -> usize {
    60
}

fn default_hidden_height() -> PerLayer {
    PerLayer::Same(30)
}

fn default_depth() -> usize {
    8
}

fn default_hidden_depth() -> PerLayer {
    PerLayer::Same(default_depth())
}

fn default_window() -> PerLayer {
    PerLayer::Same(1)
}

fn default_iterations() -> usize {
    1
}

/// The shape of one capsule layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapsuleShape {
    /// Slices before the current one (ω_L).
    pub window_left: usize,
    /// Slices after the current one (ω_R).
    pub window_right: usize,
    /// Capsules in a slice of the input (I_H).
    pub in_height: usize,
    /// Values in a capsule of the input.
    pub in_depth: usize,
    /// Capsules in a slice of the output (O_H).
    pub out_height: usize,
    /// Values in a capsule of the output.
    pub out_depth: usize,
    /// Whether its outputs are the classes, where [`PADDING_CLASS`] is masked.
    pub is_last: bool,
}

impl CapsuleShape {
    /// Slices in a window (ω).
    pub fn window(&self) -> usize {
        self.window_left + 1 + self.window_right
    }

    /// Capsules in a window: the first axis of `W`.
    pub fn n_inputs(&self) -> usize {
        self.window() * self.in_height
    }
}

impl SrfConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self {
            features: default_features(),
            classes,
            filters: default_filters(),
            layers: default_layers(),
            primary_height: default_primary_height(),
            hidden_height: default_hidden_height(),
            primary_depth: default_depth(),
            hidden_depth: default_hidden_depth(),
            class_depth: default_depth(),
            window_left: default_window(),
            window_right: default_window(),
            routing: Routing::default(),
            iterations: default_iterations(),
            couplings: Couplings::default(),
            entropy: None,
            start: Start::default(),
            initialiser: Initialiser::default(),
            gradient: Gradient::default(),
            dropout: Dropout::default(),
        }
    }

    /// Frequencies at the input of the first convolution, between the two, and after the second.
    pub fn conv_widths(&self) -> [usize; 3] {
        conv_widths(self.features)
    }

    /// Values a slice at the input of the projection: frequencies times filters.
    pub fn flat_width(&self) -> usize {
        self.conv_widths()[2] * self.filters
    }

    /// The shape of the capsule layer at `index`, from 0.
    pub fn capsule_shape(&self, index: usize) -> CapsuleShape {
        let is_last = index + 1 == self.layers;
        CapsuleShape {
            window_left: self.window_left.at(index),
            window_right: self.window_right.at(index),
            in_height: if index == 0 { self.primary_height } else { self.hidden_height.at(index - 1) },
            in_depth: if index == 0 { self.primary_depth } else { self.hidden_depth.at(index - 1) },
            out_height: if is_last { self.classes } else { self.hidden_height.at(index) },
            out_depth: if is_last { self.class_depth } else { self.hidden_depth.at(index) },
            is_last,
        }
    }

    /// The shapes of all capsule layers, the lowest first.
    pub fn capsule_shapes(&self) -> impl ExactSizeIterator<Item = CapsuleShape> + '_ {
        (0..self.layers).map(|index| self.capsule_shape(index))
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate_sizes()?;
        routing::check(self)?;
        self.validate_rates()?;
        check_parameters(summary::srf_parameters(self))
    }

    fn validate_sizes(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.primary_height", self.primary_height, 1, MAX_HEIGHT)?;
        InvalidConfig::unless_within("model.primary_depth", self.primary_depth, 1, MAX_DEPTH)?;
        InvalidConfig::unless_within("model.class_depth", self.class_depth, 1, MAX_DEPTH)?;
        let n_hidden = self.layers - 1;
        self.hidden_height.check("model.hidden_height", n_hidden, 1, MAX_HEIGHT)?;
        self.hidden_depth.check("model.hidden_depth", n_hidden, 1, MAX_DEPTH)?;
        self.window_left.check("model.window_left", self.layers, 0, MAX_WINDOW)?;
        self.window_right.check("model.window_right", self.layers, 0, MAX_WINDOW)
    }

    fn validate_rates(&self) -> Result<(), InvalidConfig> {
        let Dropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])
    }
}
