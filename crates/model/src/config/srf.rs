//! The keys of `[model]` of networks of capsules: sizes, windows and routing.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{InvalidConfig, check_rates, check_shared, conv_widths};

/// The class of the padding symbol: it has a logit, but nothing is routed to it and it is never emitted.
pub const PADDING_CLASS: usize = 0;

/// Bounds of the keys; their product is also bounded by [`MAX_PARAMETERS`](super::MAX_PARAMETERS).
const MAX_HEIGHT: usize = 4096;
const MAX_DEPTH: usize = 256;
const MAX_WINDOW: usize = 32;
const MAX_ITERATIONS: usize = 32;
const MIN_ENTROPY: f64 = 1e-3;
const MAX_ENTROPY: f64 = 1e3;

/// The network of the paper: convolution stack, primary capsules, `layers` capsule layers, and the lengths of the class
/// capsules.
///
/// The defaults are the paper's SRF-7L; only `classes` must be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SrfConfig {
    /// Values in a feature frame (F').
    pub features: usize,
    /// Output classes (V): padding first, then the labels, the blank last.
    pub classes: usize,
    /// Filters of each convolution of the convolution stack.
    pub filters: usize,
    /// Capsule layers (L).
    pub layers: usize,
    /// Primary capsules per slice (P_H).
    pub primary_height: usize,
    /// Capsules per slice (M_H) of the hidden layers; one number, or a list of `layers` - 1.
    pub hidden_height: PerLayer,
    /// Values in a primary capsule (P_D).
    pub primary_depth: usize,
    /// Values in a capsule (M_D) of the hidden layers; one number, or a list of `layers` - 1.
    pub hidden_depth: PerLayer,
    /// Values in a class capsule (V_D).
    pub class_depth: usize,
    /// Slices before the current one that a layer sees (ω_L); one number, or a list of `layers`.
    pub window_left: PerLayer,
    /// Slices after the current one that a layer sees (ω_R); one number, or a list of `layers`.
    pub window_right: PerLayer,
    /// How capsules agree.
    pub routing: Routing,
    /// Iterations of the routing within a slice (Λ).
    pub iterations: usize,
    /// How agreements become couplings, in `sdr` and `dr`.
    #[serde(skip_serializing_if = "is_default")]
    pub couplings: Couplings,
    /// Strength λ of the entropy regularizer, in `sdr` and `dr`; `None` turns it off.
    #[serde(skip_serializing_if = "is_default")]
    pub entropy: Option<f64>,
    /// What agreements start from, in `sdr` and `dr`.
    #[serde(skip_serializing_if = "is_default")]
    pub start: Start,
    /// How the weights of the capsule layers are drawn.
    #[serde(rename = "initialiser")]
    pub initializer: Initializer,
    /// What the gradient of the routing flows through.
    pub gradient: Gradient,
    /// Dropout rates in training.
    pub dropout: Dropout,
}

/// How the weights of the capsule layers are drawn; all other weights are always drawn by `fan_avg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initializer {
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

/// Dropout rates in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dropout {
    /// On each branch of every maxout convolution.
    pub conv: f64,
    /// On the normalized primary capsules.
    pub input: f64,
    /// On the normalized output of every capsule layer.
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

    /// Zero slices that the layer needs before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        [self.window_left, self.window_right]
    }

    /// Capsules in a window: the first axis of `W`.
    pub fn n_inputs(&self) -> usize {
        self.window() * self.in_height
    }
}

impl Default for SrfConfig {
    fn default() -> Self {
        Self {
            features: super::FEATURES,
            classes: 0,
            filters: super::FILTERS,
            layers: 7,
            primary_height: 60,
            hidden_height: PerLayer::Same(30),
            primary_depth: 8,
            hidden_depth: PerLayer::Same(8),
            class_depth: 8,
            window_left: PerLayer::Same(1),
            window_right: PerLayer::Same(1),
            routing: Routing::default(),
            iterations: 1,
            couplings: Couplings::default(),
            entropy: None,
            start: Start::default(),
            initializer: Initializer::default(),
            gradient: Gradient::default(),
            dropout: Dropout::default(),
        }
    }
}

impl SrfConfig {
    /// The network with this many classes and the default of every other key.
    pub fn new(classes: usize) -> Self {
        Self { classes, ..Self::default() }
    }

    /// Frequencies at the input of the convolution stack, between its convolutions, and after it.
    pub fn conv_widths(&self) -> [usize; 3] {
        conv_widths(self.features)
    }

    /// Values in a slice of the convolution stack: frequencies times filters.
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

    /// Checks every value against its bounds; see [`ModelConfig::validate`](super::ModelConfig::validate).
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        check_shared(self.features, self.classes, self.filters, self.layers)?;
        InvalidConfig::unless_within("model.primary_height", self.primary_height, 1, MAX_HEIGHT)?;
        InvalidConfig::unless_within("model.primary_depth", self.primary_depth, 1, MAX_DEPTH)?;
        InvalidConfig::unless_within("model.class_depth", self.class_depth, 1, MAX_DEPTH)?;
        let n_hidden = self.layers - 1;
        self.hidden_height.check("model.hidden_height", n_hidden, 1, MAX_HEIGHT)?;
        self.hidden_depth.check("model.hidden_depth", n_hidden, 1, MAX_DEPTH)?;
        self.window_left.check("model.window_left", self.layers, 0, MAX_WINDOW)?;
        self.window_right.check("model.window_right", self.layers, 0, MAX_WINDOW)?;
        self.validate_routing()?;
        let Dropout { conv, input, between } = self.dropout;
        check_rates([("conv", conv), ("input", input), ("between", between)])
    }

    /// Checks the keys of routing against each other.
    fn validate_routing(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless_within("model.iterations", self.iterations, 1, MAX_ITERATIONS)?;
        self.validate_entropy()?;
        let name = self.routing.name();
        let dynamic = |key, is_plain, found, expected: &str| {
            let expected = format_args!("{expected} with routing `{name}`; this is a choice of `sdr` and `dr`");
            InvalidConfig::unless(self.routing.is_dynamic() || is_plain, key, found, expected)
        };
        dynamic("model.couplings", is_default(&self.couplings), "min_max", "`softmax`")?;
        dynamic("model.start", is_default(&self.start), "learned", "`zero`")?;
        match self.routing {
            Routing::SelfRouting => {
                let expected = "1 with routing `self`, which decides at once";
                InvalidConfig::unless(self.iterations == 1, "model.iterations", self.iterations, expected)
            }
            Routing::Inverted => self.capsule_shapes().try_for_each(|shape| {
                let key = if shape.is_last { "model.class_depth" } else { "model.hidden_depth" };
                let expected = "at least 2 with routing `inverted`, which norms the values of a capsule";
                InvalidConfig::unless(shape.out_depth > 1, key, shape.out_depth, expected)
            }),
            Routing::Sdr | Routing::Dr | Routing::Em => Ok(()),
        }
    }

    fn validate_entropy(&self) -> Result<(), InvalidConfig> {
        let Some(entropy) = self.entropy else { return Ok(()) };
        let unless = |holds, expected: &str| InvalidConfig::unless(holds, "model.entropy", entropy, expected);
        unless((MIN_ENTROPY..=MAX_ENTROPY).contains(&entropy), "0.001 to 1000")?;
        unless(self.routing.is_dynamic(), "no such key but with routing `sdr` or `dr`")?;
        unless(
            self.couplings == Couplings::Softmax,
            "no such key with couplings `min_max`: it is the softmax that it softens",
        )
    }
}

/// How the coupling coefficients of a slice are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Sequential dynamic routing: a slice starts from its agreement with the output of the slice before.
    #[default]
    Sdr,
    /// Dynamic routing: every slice starts from equal couplings.
    Dr,
    /// Gaussians over the votes, fitted by expectation maximization; a slice starts from those of the slice before.
    Em,
    /// Self-routing: couplings by a learned matrix, and by gated agreement with the output of the slice before.
    #[serde(rename = "self")]
    SelfRouting,
    /// Inverted dot-product attention: agreement with layer-normed capsules, at first those of the slice before.
    Inverted,
}

/// How agreements become couplings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Couplings {
    /// Exponentials over their sum.
    #[default]
    Softmax,
    /// Distances from the smallest agreement over their sum.
    MinMax,
}

/// What agreements start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Zero: equal couplings.
    #[default]
    Zero,
    /// A learned number for each pair of capsules.
    Learned,
}

impl Routing {
    /// The value of the key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sdr => "sdr",
            Self::Dr => "dr",
            Self::Em => "em",
            Self::SelfRouting => "self",
            Self::Inverted => "inverted",
        }
    }

    /// Whether it is dynamic routing, sequential or not.
    fn is_dynamic(self) -> bool {
        matches!(self, Self::Sdr | Self::Dr)
    }
}

/// Whether a key can be left out of the file.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `30`, the same for all layers, or `[30, 20, 20]`, one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PerLayer {
    /// One number for all layers.
    Same(usize),
    /// One number per layer, the lowest layer first.
    Each(Vec<usize>),
}

impl PerLayer {
    /// The number of the layer at `index`, from 0; a list is at least that long once the configuration is checked.
    pub fn at(&self, index: usize) -> usize {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[index],
        }
    }

    /// A problem unless every number lies in `least..=most` and a list has `n_layers` of them.
    fn check(&self, key: &str, n_layers: usize, least: usize, most: usize) -> Result<(), InvalidConfig> {
        match self {
            Self::Same(value) => InvalidConfig::unless_within(key, *value, least, most),
            Self::Each(values) => {
                let found = format_args!("a list of {}", values.len());
                let expected = format_args!("one number, or a list of {n_layers}, one for each layer it is for");
                InvalidConfig::unless(values.len() == n_layers, key, found, expected)?;
                values.iter().try_for_each(|&value| InvalidConfig::unless_within(key, value, least, most))
            }
        }
    }
}

// By hand, because the derived form says nothing about a wrong value except that it matched no variant.
impl<'de> Deserialize<'de> for PerLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerLayerVisitor)
    }
}

struct PerLayerVisitor;

impl<'de> Visitor<'de> for PerLayerVisitor {
    type Value = PerLayer;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number, 0 or more, or a list of them, one for each layer")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<PerLayer, E> {
        usize::try_from(value).map(PerLayer::Same).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<PerLayer, E> {
        usize::try_from(value).map(PerLayer::Same).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PerLayer, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<i64>()? {
            let value =
                usize::try_from(value).map_err(|_| A::Error::invalid_value(Unexpected::Signed(value), &self))?;
            values.push(value);
        }
        Ok(PerLayer::Each(values))
    }
}
