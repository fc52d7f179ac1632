//! The keys of `[model]` that choose how capsules are routed: their values in, a choice that makes sense or a problem
//! out.

use serde::{Deserialize, Serialize};

use super::{InvalidConfig, SrfConfig};

const MAX_ITERATIONS: usize = 32;

/// Bounds of `entropy`.
const LEAST_ENTROPY: f64 = 1e-3;
const MOST_ENTROPY: f64 = 1e3;

/// How the coupling coefficients of a slice are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Sequential dynamic routing: a slice starts from its agreement with the output of the slice before.
    #[default]
    Sdr,
    /// Dynamic routing: every slice starts from equal couplings.
    Dr,
    /// Gaussians over the votes, fitted by expectation and maximisation; a slice starts from those of the slice before.
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
    /// A learned number of each pair of capsules.
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

/// Whether a key need not be written out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Checks the keys of routing against each other.
pub(super) fn check(config: &SrfConfig) -> Result<(), InvalidConfig> {
    InvalidConfig::unless_within("model.iterations", config.iterations, 1, MAX_ITERATIONS)?;
    check_entropy(config)?;
    let name = config.routing.name();
    let dynamic = |key, is_plain, found, expected: &str| {
        let expected = format_args!("{expected} with routing `{name}`; this is a choice of `sdr` and `dr`");
        InvalidConfig::unless(config.routing.is_dynamic() || is_plain, key, found, expected)
    };
    dynamic("model.couplings", is_default(&config.couplings), "min_max", "`softmax`")?;
    dynamic("model.start", is_default(&config.start), "learned", "`zero`")?;
    match config.routing {
        Routing::SelfRouting => {
            let expected = "1 with routing `self`, which decides at once";
            InvalidConfig::unless(config.iterations == 1, "model.iterations", config.iterations, expected)
        }
        Routing::Inverted => config.capsule_shapes().try_for_each(|shape| {
            let key = if shape.is_last { "model.class_depth" } else { "model.hidden_depth" };
            let expected = "at least 2 with routing `inverted`, which norms the values of a capsule";
            InvalidConfig::unless(shape.out_depth > 1, key, shape.out_depth, expected)
        }),
        Routing::Sdr | Routing::Dr | Routing::Em => Ok(()),
    }
}

fn check_entropy(config: &SrfConfig) -> Result<(), InvalidConfig> {
    let Some(entropy) = config.entropy else { return Ok(()) };
    let unless = |holds, expected: &str| InvalidConfig::unless(holds, "model.entropy", entropy, expected);
    unless((LEAST_ENTROPY..=MOST_ENTROPY).contains(&entropy), "0.001 to 1000")?;
    unless(config.routing.is_dynamic(), "no such key but with routing `sdr` or `dr`")?;
    unless(
        config.couplings == Couplings::Softmax,
        "no such key with couplings `min_max`: it is the softmax that it softens",
    )
}
