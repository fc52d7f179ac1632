//! What a model is and how it is trained, as plain data: a recipe (TOML) in, checked types out.
//!
//! A recipe has three tables, each a type of its own: `[model]` is [`ModelConfig`], `[features]` is
//! [`FeaturesConfig`] and `[training]` is [`TrainingConfig`]; [`Recipe`] holds all three.
//! An unknown key, a value of the wrong kind and a value out of bounds are each told in one line with the place, what
//! was found and what was expected.
//! What comes out has been checked: nothing that is sized by it grows beyond the stated limits.

mod augment;
mod cnn;
mod error;
mod limits;
mod lstm;
mod overrides;
mod per_layer;
mod recipe;
mod routing;
mod srf;
mod training;
mod transformer;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{any_srf, routed};

pub use augment::{AugmentConfig, MaskConfig, NoiseConfig};
pub use cnn::{CnnConfig, CnnDropout, ConvShape};
pub use error::{InvalidConfig, ReadConfigError};
pub use lstm::{Directions, LstmConfig, LstmDropout, Merge};
pub use overrides::{Override, OverrideError};
pub use per_layer::PerLayer;
pub use recipe::Recipe;
pub use routing::{Couplings, Routing, Start};
pub use srf::{CapsuleShape, Dropout, Gradient, Initialiser, PADDING_CLASS, SrfConfig};
pub use srf_audio::features::{Cmvn, FeaturesConfig};
pub use training::{AdamConfig, KappaStep, ScheduleConfig, TrainingConfig};
pub use transformer::{TransformerConfig, TransformerDropout};

pub(crate) use limits::conv_widths;

use std::path::Path;

use serde::{Deserialize, Serialize};

use self::error::Source;

/// The most parameters a model may have: 1 GiB of them in single precision.
pub const MAX_PARAMETERS: u64 = 1 << 28;

/// The table `[model]`: an architecture, chosen by the key `architecture`, with its own keys beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "architecture", rename_all = "lowercase")]
pub enum ModelConfig {
    /// `architecture = "srf"`: capsules with routing between windows of time slices.
    Srf(SrfConfig),
    /// `architecture = "lstm"`: recurrent layers, in one direction or both.
    Lstm(LstmConfig),
    /// `architecture = "cnn"`: convolutions with maxout.
    Cnn(CnnConfig),
    /// `architecture = "transformer"`: blocks of self-attention.
    Transformer(TransformerConfig),
}

/// The values of the key `architecture`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Architecture {
    Srf,
    Lstm,
    Cnn,
    Transformer,
}

impl ModelConfig {
    /// The value of the key `architecture`.
    pub fn architecture(&self) -> &'static str {
        match self {
            Self::Srf(_) => "srf",
            Self::Lstm(_) => "lstm",
            Self::Cnn(_) => "cnn",
            Self::Transformer(_) => "transformer",
        }
    }

    /// Values in a feature frame.
    pub fn n_features(&self) -> usize {
        match self {
            Self::Srf(srf) => srf.features,
            Self::Lstm(lstm) => lstm.features,
            Self::Cnn(cnn) => cnn.features,
            Self::Transformer(transformer) => transformer.features,
        }
    }

    /// Output classes, padding and blank included.
    pub fn n_classes(&self) -> usize {
        match self {
            Self::Srf(srf) => srf.classes,
            Self::Lstm(lstm) => lstm.classes,
            Self::Cnn(cnn) => cnn.classes,
            Self::Transformer(transformer) => transformer.classes,
        }
    }

    /// The same network with another number of output classes.
    #[must_use]
    pub fn with_classes(&self, classes: usize) -> Self {
        match self {
            Self::Srf(srf) => Self::Srf(SrfConfig { classes, ..srf.clone() }),
            Self::Lstm(lstm) => Self::Lstm(LstmConfig { classes, ..lstm.clone() }),
            Self::Cnn(cnn) => Self::Cnn(CnnConfig { classes, ..cnn.clone() }),
            Self::Transformer(transformer) => Self::Transformer(TransformerConfig { classes, ..transformer.clone() }),
        }
    }

    /// The class of the CTC blank: always the last.
    pub fn blank_class(&self) -> usize {
        self.n_classes() - 1
    }

    /// Reads the keys of a `[model]` table without its header, as weights files carry them; `origin` is named in
    /// errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ReadConfigError> {
        let source = Source { path: origin, text };
        let model = source.parse()?;
        let model = recipe::model_from_table(model).map_err(|error| source.explain(&error))?;
        model.validate().map_err(|problem| ReadConfigError::Invalid { place: source.place(None), problem })?;
        Ok(model)
    }

    /// The keys of a `[model]` table without its header; [`ModelConfig::parse`] reads them back.
    pub fn format(&self) -> String {
        toml::to_string(self).expect("plain numbers, words and lists of them have a TOML form")
    }

    /// Checks every value against its bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::Srf(srf) => srf.validate(),
            Self::Lstm(lstm) => lstm.validate(),
            Self::Cnn(cnn) => cnn.validate(),
            Self::Transformer(transformer) => transformer.validate(),
        }
    }
}
