//! Recipe files: a model with its features and training settings, and changes to them from the command line.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use srf_base::names::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::error::{Source, from_table, plain_message, read_text};
use super::{Architecture, FeaturesConfig, InvalidConfig, ModelConfig, ReadConfigError, TrainingConfig};

/// A model, its features and how it is trained; also the `config.toml` of a model directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// The table `[model]`.
    pub model: ModelConfig,
    /// The table `[features]`; the paper's if absent.
    pub features: FeaturesConfig,
    /// The table `[training]`; `None` where nothing is trained.
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

/// The keys of `[model]` that must be there: the one that says which type the others belong to, and the one that has
/// no default.
#[derive(Deserialize)]
struct Head {
    architecture: Architecture,
    #[serde(rename = "classes")]
    _classes: usize,
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
        let [one, other] = [one, other].map(|text| {
            let mut table = toml::from_str::<toml::Table>(text).unwrap_or_default();
            rename_old_keys(&mut table);
            table
        });
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

    fn from_document(document: Spanned<DeTable<'_>>) -> Result<Self, Error> {
        let model = document.get_ref().get("model").cloned();
        let span = model.as_ref().map_or(0..0, Spanned::span);
        let Tables { _model, features, training } = from_table(document)?;
        let Some(DeValue::Table(table)) = model.map(Spanned::into_inner) else {
            unreachable!("a missing table, and a value in its place, were refused just before");
        };
        Ok(Self { model: model_from_table(Spanned::new(span, table))?, features, training })
    }
}

/// The keys of `[model]`.
pub(super) fn model_from_table(mut table: Spanned<DeTable<'_>>) -> Result<ModelConfig, Error> {
    let Head { architecture, .. } = from_table(table.clone())?;
    table.get_mut().remove("architecture");
    match architecture {
        Architecture::Srf => from_table(table).map(ModelConfig::Srf),
        Architecture::Lstm => from_table(table).map(ModelConfig::Lstm),
        Architecture::Cnn => from_table(table).map(ModelConfig::Cnn),
        Architecture::Transformer => from_table(table).map(ModelConfig::Transformer),
    }
}

/// Gives keys of recipes that older versions wrote their present names.
fn rename_old_keys(recipe: &mut toml::Table) {
    let Some(toml::Value::Table(model)) = recipe.get_mut("model") else { return };
    for (old, new) in [("front_end", "conv_stack"), ("front_end_statistics", "conv_stack_statistics")] {
        if let Some(value) = model.remove(old) {
            model.insert(new.to_owned(), value);
        }
    }
}

fn difference(tables: &str, one: &toml::Table, other: &toml::Table) -> Option<(String, String, String)> {
    let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
    keys.map(|key| (key, one.get(key), other.get(key))).filter(|(_, a, b)| a != b).find_map(|(key, a, b)| {
        let key = if tables.is_empty() { key.clone() } else { format!("{tables}.{key}") };
        let text = |value: Option<&toml::Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        match (a, b) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => difference(&key, a, b),
            _ => Some((key, text(a), text(b))),
        }
    })
}

/// A key with its tables, and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// As typed: `training.epochs`.
    pub key: String,
    /// As typed; text that is not a TOML value is taken as a string.
    pub value: String,
}

/// Why a recipe with changes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum OverrideError {
    #[error("`{found}` does not change the recipe, expected `key=value`, as in `training.epochs=20`")]
    Form { found: String },
    #[error("`{key}={value}`: {message}")]
    Value { key: String, value: String, message: String, nearest: Option<String> },
    #[error(transparent)]
    Recipe(#[from] ReadConfigError),
    #[error("`{path}` with the changes of the command line: {problem}")]
    Invalid { path: String, problem: InvalidConfig },
    #[error("`{path}`: `model.classes` is {found}, but the labels of the data make {expected} classes")]
    Classes { path: String, found: usize, expected: usize },
}

impl OverrideError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Value { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::Classes { expected, .. } => {
                Some(format!("add `model.classes={expected}` to the command, or leave `classes` out of the recipe"))
            }
            _ => None,
        }
    }
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(typed: &str) -> Result<Self, OverrideError> {
        let parts = typed.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match parts {
            Some((key, value)) if is_dotted(key) && !value.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(OverrideError::Form { found: typed.to_owned() }),
        }
    }
}

fn is_dotted(key: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    key.split('.').all(is_part)
}

impl Override {
    /// `value` as TOML: as typed, or as a string.
    fn line(&self) -> String {
        let line = format!("value = {}", self.value);
        if DeTable::parse(&line).is_ok_and(|table| table.get_ref().len() == 1) {
            return line;
        }
        format!("value = {}", toml::Value::String(self.value.clone()))
    }

    fn error(&self, message: String) -> OverrideError {
        let nearest = nearest_key(&self.key, &message);
        OverrideError::Value { key: self.key.clone(), value: self.value.clone(), message, nearest }
    }
}

impl Recipe {
    /// Reads a recipe file, changes it, and checks the result; `model.classes` is `n_classes` if absent.
    pub fn load_with(path: &Path, overrides: &[Override], n_classes: usize) -> Result<Self, OverrideError> {
        Self::parse_with(&read_text(path)?, path, overrides, n_classes)
    }

    /// Like [`Recipe::load_with`], for the text of a recipe; `path` is named in errors.
    pub fn parse_with(
        text: &str,
        path: &Path,
        overrides: &[Override],
        n_classes: usize,
    ) -> Result<Self, OverrideError> {
        let lines: Vec<String> = overrides.iter().map(Override::line).collect();
        let classes = format!("value = {n_classes}");
        let source = Source { path, text };
        let mut document = source.parse()?;
        put_classes(document.get_mut(), value_of(&classes));
        let mut recipe = Self::from_document(document.clone()).map_err(|error| source.explain(&error))?;
        for (change, line) in overrides.iter().zip(&lines) {
            keep_one_schedule(document.get_mut(), &change.key);
            let is_put = put(document.get_mut(), &change.key, value_of(line));
            is_put.map_err(|part| change.error(format!("`{part}` is a value, not a table")))?;
            recipe = Self::from_document(document.clone()).map_err(|error| change.error(plain_message(&error)))?;
        }
        recipe.check_with(path, n_classes)?;
        Ok(recipe)
    }

    fn check_with(&self, path: &Path, n_classes: usize) -> Result<(), OverrideError> {
        let path = || path.display().to_string();
        self.validate().map_err(|problem| OverrideError::Invalid { path: path(), problem })?;
        let found = self.model.n_classes();
        if found == n_classes {
            Ok(())
        } else {
            Err(OverrideError::Classes { path: path(), found, expected: n_classes })
        }
    }
}

/// The value of a line that [`Override::line`] made.
fn value_of(line: &str) -> Spanned<DeValue<'_>> {
    let table = DeTable::parse(line).expect("the line was tried, or is a string by construction");
    table.into_inner().remove("value").expect("the line has this one key")
}

fn put_classes<'a>(document: &mut DeTable<'a>, value: Spanned<DeValue<'a>>) {
    if let Some(DeValue::Table(model)) = document.get_mut("model").map(Spanned::get_mut)
        && !model.contains_key("classes")
    {
        model.insert(key("classes"), value);
    }
}

/// Removes the schedules other than the one that a key such as `training.schedule.constant.rate` belongs to: there is one.
fn keep_one_schedule(document: &mut DeTable<'_>, changed: &str) {
    let Some(rest) = changed.strip_prefix("training.schedule.") else { return };
    let name = rest.split('.').next().unwrap_or_default();
    let training = document.get_mut("training").map(Spanned::get_mut);
    let Some(DeValue::Table(training)) = training else { return };
    if let Some(DeValue::Table(schedules)) = training.get_mut("schedule").map(Spanned::get_mut) {
        let others: Vec<_> = schedules.keys().filter(|known| known.get_ref() != name).cloned().collect();
        others.iter().for_each(|other| drop(schedules.remove(other)));
    }
}

/// Sets a dotted key and creates the tables it needs; fails with the part that is a value instead of a table.
fn put<'a>(table: &mut DeTable<'a>, dotted: &str, value: Spanned<DeValue<'a>>) -> Result<(), String> {
    let Some((first, rest)) = dotted.split_once('.') else {
        table.insert(key(dotted), value);
        return Ok(());
    };
    if !table.contains_key(first) {
        table.insert(key(first), Spanned::new(0..0, DeValue::Table(DeTable::new())));
    }
    match table.get_mut(first).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => put(inner, rest, value),
        _ => Err(first.to_owned()),
    }
}

fn key(name: &str) -> Spanned<std::borrow::Cow<'static, str>> {
    Spanned::new(0..0, name.to_owned().into())
}

/// The known key nearest to the unknown one in `typed`, among those that the reader's message lists.
fn nearest_key(typed: &str, message: &str) -> Option<String> {
    let list = message.strip_prefix("unknown key `").and_then(|rest| rest.split_once("expected "))?.1;
    let unknown = message.split('`').nth(1)?;
    // The unknown key may be one of the tables before the last.
    let known = nearest(unknown, list.split('`').skip(1).step_by(2))?;
    let before = typed.split_once(unknown).map_or("", |(before, _)| before);
    Some(format!("{before}{known}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const RECIPE: &str = "[model]\narchitecture = \"srf\"\nlayers = 2\n\n[training]\nepochs = 3\nbatch_frames = 500\n\
                          [training.schedule.constant]\nrate = 0.001\n";

    fn load(changes: &[&str]) -> Result<Recipe, OverrideError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.toml");
        fs::write(&path, RECIPE).unwrap();
        let overrides = changes.iter().map(|typed| typed.parse()).collect::<Result<Vec<Override>, _>>()?;
        Recipe::load_with(&path, &overrides, 41)
    }

    fn message(changes: &[&str]) -> (String, Option<String>) {
        let error = load(changes).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn values_of_every_kind_replace_those_of_the_recipe() {
        let recipe = load(&[
            "training.epochs=20",
            "training.clip_norm = 5.5",
            "features.cmvn=online",
            "model.hidden_height=[7]",
            "model.dropout.conv=0",
            "training.augment.masks={n_bands=1,max_bins=8,n_stretches=1,max_frames=20,max_percent=30}",
        ]);
        let recipe = recipe.unwrap();
        let training = recipe.training.clone().unwrap();
        assert_eq!((training.epochs, training.clip_norm), (20, Some(5.5)));
        assert_eq!(training.augment.masks.unwrap().max_frames, 20);
        assert_eq!(recipe.features.cmvn, super::super::Cmvn::Online);
        assert_eq!(recipe.model.n_classes(), 41);
        assert_eq!(Recipe::parse(&recipe.format(), Path::new("r")).unwrap(), recipe);
    }

    #[test]
    fn an_unknown_key_is_reported_with_the_nearest_known_one() {
        let (line, hint) = message(&["training.epoch=20"]);
        assert!(line.starts_with("`training.epoch=20`: unknown key `epoch`, expected one of `epochs`, "), "{line}");
        assert_eq!(hint.as_deref(), Some("did you mean `training.epochs`?"));
        assert_eq!(message(&["trainig.epochs=1"]).1.as_deref(), Some("did you mean `training`?"));
        assert_eq!(message(&["model.dropot.conv=0"]).1.as_deref(), Some("did you mean `model.dropout`?"));
        assert_eq!(message(&["training.zzzzzzzz=1"]).1, None);
    }

    #[test]
    fn malformed_changes_and_values_that_do_not_fit_are_reported_in_one_line() {
        let cases = [
            ("epochs", "`epochs` does not change the recipe, expected `key=value`, as in `training.epochs=20`"),
            ("=3", "`=3` does not change the recipe, expected `key=value`, as in `training.epochs=20`"),
            (
                "training.epochs=many",
                "`training.epochs=many`: found string \"many\", expected a whole number, 0 or more",
            ),
            ("training.epochs.a=1", "`training.epochs.a=1`: `epochs` is a value, not a table"),
        ];
        for (typed, expected) in cases {
            let line = message(&[typed]).0;
            assert!(line.starts_with(expected), "{line}");
            assert!(!line.contains('\n'));
        }
        let line = message(&["training.epochs=0"]).0;
        assert!(line.ends_with("with the changes of the command line: `training.epochs` is 0, expected 1 to 1000000"));
    }

    #[test]
    fn a_change_to_another_schedule_replaces_the_one_of_the_recipe() {
        let warmup = load(&["training.schedule={warmup={steps=9,kappa=[{from_epoch=1,value=0.5}]}}"]).unwrap();
        let text = warmup.format();
        let change = "training.schedule.constant.rate=1e-4".parse().unwrap();
        let recipe = Recipe::parse_with(&text, Path::new("r"), &[change], 41).unwrap();
        assert_eq!(recipe.training.unwrap().schedule, super::super::ScheduleConfig::Constant { rate: 1e-4 });
        let (line, _) = message(&["training.schedule.warmup.steps=9"]);
        assert!(line.contains("kappa"), "{line}");
    }

    #[test]
    fn changes_that_fit_only_together_are_taken_together() {
        assert!(load(&["model.hidden_height=[7, 8]"]).is_err());
        assert!(load(&["model.hidden_height=[7, 8]", "model.layers=3"]).is_ok());
    }

    #[test]
    fn classes_must_be_those_of_the_labels() {
        let (line, hint) = message(&["model.classes=63"]);
        assert!(line.ends_with("`model.classes` is 63, but the labels of the data make 41 classes"), "{line}");
        assert!(hint.unwrap().contains("`model.classes=41`"));
    }
}
