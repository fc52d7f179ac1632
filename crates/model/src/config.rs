//! What a model is and how it is trained, as plain data that was read from a recipe (TOML) and checked.
//!
//! A recipe has three tables, each a type of its own: `[model]` is [`ModelConfig`], `[features]` is
//! [`FeaturesConfig`] and `[training]` is [`TrainingConfig`]; [`Recipe`] holds all three.
//! An unknown key, a value of the wrong kind and a value out of bounds are each reported in one line with the place,
//! what was found and what was expected.
//! Nothing that is sized by a checked configuration grows beyond the stated limits.
//!
//! ```
//! use std::path::Path;
//! use srf_model::config::{
//!     AdamConfig, AugmentConfig, CapsuleShape, CnnConfig, Couplings, Gradient, Initializer, InvalidConfig, KappaStep,
//!     LstmConfig, MAX_PARAMETERS, MaskConfig, ModelConfig, NoiseConfig, Override, OverrideError, PADDING_CLASS, PerLayer,
//!     ReadConfigError, Recipe, RoomsConfig, Routing, ScheduleConfig, SrfConfig, Start, TrainingConfig, TransformerConfig,
//! };
//!
//! let text = r#"
//!     [model]
//!     architecture = "srf"
//!     classes = 41
//!     hidden_height = [30, 20, 20, 20, 20, 20]
//!
//!     [training]
//!     epochs = 10
//!     batch_frames = 7000
//!     schedule.constant.rate = 1e-4
//! "#;
//! let path = Path::new("mine.toml");
//! let recipe = Recipe::parse(text, path)?;
//! recipe.validate()?;
//! let ModelConfig::Srf(SrfConfig { hidden_height, routing, .. }) = &recipe.model else { unreachable!() };
//! assert_eq!((hidden_height.at(1), *routing), (20, Routing::Sdr));
//!
//! // As `srf train mine.toml model.iterations=2` does it.
//! let change: Override = "model.iterations=2".parse()?;
//! let changed = Recipe::parse_with(text, path, &[change], 41)?;
//! let (key, before, after) = Recipe::first_difference(&recipe.format(), &changed.format()).expect("one key differs");
//! assert_eq!((key.as_str(), before.as_str(), after.as_str()), ("model.iterations", "1", "2"));
//! let wrong = Recipe::load_with(path, &[], 41);
//! assert!(matches!(wrong, Err(OverrideError::Recipe(ReadConfigError::Io { .. }))), "there is no such file");
//!
//! // The same in code.
//! let srf = SrfConfig {
//!     layers: 3,
//!     hidden_height: PerLayer::Each(vec![30, 20]),
//!     couplings: Couplings::MinMax,
//!     start: Start::Learned,
//!     initializer: Initializer::Normal,
//!     gradient: Gradient { through_time: false, ..Gradient::default() },
//!     ..SrfConfig::new(41)
//! };
//! let last: CapsuleShape = srf.capsule_shape(2);
//! assert!(last.is_last && PADDING_CLASS < last.out_height);
//! assert_eq!((last.window(), last.n_inputs(), srf.capsule_shapes().len()), (3, 60, 3));
//! assert_eq!(srf.flat_width(), srf.conv_widths()[2] * srf.filters);
//! let training = TrainingConfig {
//!     augment: AugmentConfig {
//!         speeds: vec![0.9, 1.0, 1.1],
//!         rooms: Some(RoomsConfig { probability: 0.5, min_t60_s: 0.1, max_t60_s: 0.6 }),
//!         noise: Some(NoiseConfig { probability: 0.5, min_snr_db: 5.0, max_snr_db: 20.0 }),
//!         telephone: 0.1,
//!         masks: Some(MaskConfig { n_bands: 2, max_bins: 6, n_stretches: 2, max_frames: 30, max_percent: 20 }),
//!     },
//!     adam: AdamConfig::default(),
//!     schedule: ScheduleConfig::Warmup {
//!         steps: 4000,
//!         dimension: 1,
//!         kappa: vec![KappaStep { from_epoch: 1, value: 1e-3 }],
//!     },
//!     ..recipe.training.expect("the recipe has it")
//! };
//! training.validate()?;
//! let error = TrainingConfig { epochs: 0, ..training }.validate().err();
//! assert!(matches!(error, Some(InvalidConfig { key, .. }) if key == "training.epochs"));
//!
//! // The networks that the paper compares with.
//! for model in [
//!     ModelConfig::Lstm(LstmConfig::new(41)),
//!     ModelConfig::Cnn(CnnConfig::new(41)),
//!     ModelConfig::Transformer(TransformerConfig::new(41)),
//! ] {
//!     println!("{}: {} parameters", model.architecture(), model.parameters().total);
//!     assert!(model.with_classes(1000).parameters().total < MAX_PARAMETERS);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod baselines;
mod error;
mod recipe;
mod srf;
mod training;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{any_srf, routed};

pub use baselines::{
    CnnConfig, CnnDropout, ConvShape, Directions, LstmConfig, LstmDropout, Merge, TransformerConfig, TransformerDropout,
};
pub use error::{InvalidConfig, ReadConfigError};
pub use recipe::{Override, OverrideError, Recipe};
pub use srf::{
    CapsuleShape, Couplings, Dropout, Gradient, Initializer, PADDING_CLASS, PerLayer, Routing, SrfConfig, Start,
};
pub use srf_audio::features::{Cmvn, FeaturesConfig};
pub use training::{
    AdamConfig, AugmentConfig, KappaStep, MaskConfig, NoiseConfig, RoomsConfig, ScheduleConfig, TrainingConfig,
};

use std::path::Path;

use serde::{Deserialize, Serialize};

use self::error::Source;
use crate::params::Layout;

/// The most parameters a model may have: 1 GiB of them in single precision.
pub const MAX_PARAMETERS: u64 = 1 << 28;

/// Bounds of keys that several architectures have, and their defaults.
const MAX_FEATURES: usize = 4096;
const MAX_CLASSES: usize = 1 << 16;
const MAX_FILTERS: usize = 1024;
const MAX_LAYERS: usize = 100;
const FEATURES: usize = 123;
const FILTERS: usize = 64;

/// The table `[model]`: an architecture, chosen by the key `architecture`, with its own keys.
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

/// Evaluates an expression on the configuration of whichever architecture it is.
macro_rules! of_any {
    ($model:expr, $config:ident => $value:expr) => {
        match $model {
            ModelConfig::Srf($config) => $value,
            ModelConfig::Lstm($config) => $value,
            ModelConfig::Cnn($config) => $value,
            ModelConfig::Transformer($config) => $value,
        }
    };
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
        of_any!(self, config => config.features)
    }

    /// Output classes, padding and blank included.
    pub fn n_classes(&self) -> usize {
        of_any!(self, config => config.classes)
    }

    /// The same network with another number of output classes.
    #[must_use]
    pub fn with_classes(&self, classes: usize) -> Self {
        let mut model = self.clone();
        of_any!(&mut model, config => config.classes = classes);
        model
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

    /// Checks every value against its bounds, and the size of the whole network.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        of_any!(self, config => config.validate())?;
        let n_parameters = Layout::new(self).n_values() as u64;
        let expected = format_args!("sizes that make at most {MAX_PARAMETERS} parameters");
        let found = format_args!("a network of {n_parameters} parameters");
        InvalidConfig::unless(n_parameters <= MAX_PARAMETERS, "model", found, expected)
    }
}

/// The keys that every architecture has.
fn check_shared(features: usize, classes: usize, filters: usize, layers: usize) -> Result<(), InvalidConfig> {
    InvalidConfig::unless_within("model.features", features, 1, MAX_FEATURES)?;
    // Padding, blank and something to recognise.
    InvalidConfig::unless_within("model.classes", classes, 3, MAX_CLASSES)?;
    InvalidConfig::unless_within("model.filters", filters, 1, MAX_FILTERS)?;
    InvalidConfig::unless_within("model.layers", layers, 1, MAX_LAYERS)
}

/// Dropout rates.
fn check_rates<const N: usize>(rates: [(&str, f64); N]) -> Result<(), InvalidConfig> {
    rates.into_iter().try_for_each(|(key, rate)| {
        let key = format!("model.dropout.{key}");
        InvalidConfig::unless((0.0..1.0).contains(&rate), &key, rate, "at least 0 and less than 1")
    })
}

/// Frequencies at the input of the convolution stack, between its convolutions, and after it.
fn conv_widths(features: usize) -> [usize; 3] {
    let first = features.div_ceil(2);
    [features, first, first.div_ceil(2)]
}
