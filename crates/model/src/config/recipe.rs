//! A recipe file in, the model with its features and training settings out.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::error::{Source, from_table, read_text};
use super::{Architecture, FeaturesConfig, InvalidConfig, ModelConfig, ReadConfigError, TrainingConfig};

/// A model, its features and how it is trained; also the `config.toml` of a model directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// The table `[model]`.
    pub model: ModelConfig,
    /// The table `[features]`; absent, the paper's.
    pub features: FeaturesConfig,
    /// The table `[training]`; absent where nothing is to be trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingConfig>,
}

/// The tables of a recipe; the type of `[model]` depends on its architecture, so it is read on its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(rename = "model")]
    _model: toml::Table,
    #[serde(default)]
    features: FeaturesConfig,
    training: Option<TrainingConfig>,
}

/// The key of `[model]` that says which type the others belong to.
#[derive(Deserialize)]
struct Head {
    architecture: Architecture,
}

impl Recipe {
    /// Reads and checks a recipe file.
    pub fn load(path: &Path) -> Result<Self, ReadConfigError> {
        let text = read_text(path)?;
        Self::parse(&text, path)
    }

    /// Reads and checks the text of a recipe; `origin` is named in errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ReadConfigError> {
        let source = Source { path: origin, text };
        let document = source.parse()?;
        let recipe = Self::from_document(document.clone()).map_err(|error| source.explain(&error))?;
        recipe.validate().map_err(|problem| source.invalid(document.get_ref(), problem))?;
        Ok(recipe)
    }

    /// The text of a recipe; [`Recipe::parse`] reads it back.
    pub fn format(&self) -> String {
        toml::to_string(self).expect("plain numbers, words and lists of them have a TOML form")
    }

    /// The first key in which the texts of two recipes differ, with both values.
    pub fn first_difference(one: &str, other: &str) -> Option<(String, String, String)> {
        let [one, other] = [one, other].map(|text| toml::from_str::<toml::Table>(text).unwrap_or_default());
        difference("", &one, &other)
    }

    /// Checks every value against its bounds, and that the tables fit each other.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.model.validate()?;
        self.features.check()?;
        self.training.iter().try_for_each(TrainingConfig::validate)?;
        let (expected, found) = (self.features.n_features(), self.model.n_features());
        let expected = format_args!("{expected}, the width of a frame of `[features]`");
        InvalidConfig::unless(self.features.n_features() == found, "model.features", found, expected)
    }

    pub(super) fn from_document(document: Spanned<DeTable<'_>>) -> Result<Self, Error> {
        let model = document.get_ref().get("model").cloned();
        let span = model.as_ref().map_or(0..0, Spanned::span);
        let Tables { _model, features, training } = from_table(document)?;
        let Some(DeValue::Table(table)) = model.map(Spanned::into_inner) else {
            unreachable!("a missing table, and one that is none, were told just before");
        };
        Ok(Self { model: model_from_table(Spanned::new(span, table))?, features, training })
    }
}

/// The keys of `[model]`.
pub(super) fn model_from_table(mut table: Spanned<DeTable<'_>>) -> Result<ModelConfig, Error> {
    let Head { architecture } = from_table(table.clone())?;
    table.get_mut().remove("architecture");
    match architecture {
        Architecture::Srf => from_table(table).map(ModelConfig::Srf),
        Architecture::Lstm => from_table(table).map(ModelConfig::Lstm),
        Architecture::Cnn => from_table(table).map(ModelConfig::Cnn),
        Architecture::Transformer => from_table(table).map(ModelConfig::Transformer),
    }
}

fn difference(tables: &str, one: &toml::Table, other: &toml::Table) -> Option<(String, String, String)> {
    let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
    keys.map(|key| (key, one.get(key), other.get(key))).filter(|(_, a, b)| a != b).find_map(|(key, a, b)| {
        let key = if tables.is_empty() { key.clone() } else { format!("{tables}.{key}") };
        let said = |value: Option<&toml::Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        match (a, b) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => difference(&key, a, b),
            _ => Some((key, said(a), said(b))),
        }
    })
}
