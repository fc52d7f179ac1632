//! Changes to a recipe as they are typed: `training.epochs=20` in, the recipe with that value out.

use std::path::Path;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Source, plain_message, read_text};
use super::recipe::Recipe;
use super::{InvalidConfig, ReadConfigError};

/// A key with its tables, and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// As typed: `training.epochs`.
    pub key: String,
    /// As typed; what is no TOML value is taken for a word.
    pub value: String,
}

/// Why a recipe with changes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// Not a key and a value.
    #[error("`{found}` is no change to the recipe, expected `key=value`, as in `training.epochs=20`")]
    Form {
        /// As typed.
        found: String,
    },
    /// The change does not fit the recipe.
    #[error("`{key}={value}`: {message}")]
    Value {
        /// As typed.
        key: String,
        /// As typed.
        value: String,
        /// What was found and expected.
        message: String,
        /// The key that was meant, perhaps.
        nearest: Option<String>,
    },
    /// The recipe itself.
    #[error(transparent)]
    Recipe(#[from] ReadConfigError),
    /// A value outside its bounds after all changes.
    #[error("`{path}` with the changes of the command line: {problem}")]
    Invalid {
        /// The recipe.
        path: String,
        /// The key, its value and its bounds.
        problem: InvalidConfig,
    },
    /// The network and the labels do not belong together.
    #[error("`{path}`: `model.classes` is {found}, but the labels of the data make {expected} classes")]
    Classes {
        /// The recipe.
        path: String,
        /// In the recipe.
        found: usize,
        /// Padding, labels and blank.
        expected: usize,
    },
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
    /// `value` as TOML: as it is typed, or as a word.
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
    /// Reads a recipe file, changes it, and checks the result; without `model.classes` it gets `n_classes`.
    pub fn load_with(path: &Path, overrides: &[Override], n_classes: usize) -> Result<Self, OverrideError> {
        Self::parse_with(&read_text(path)?, path, overrides, n_classes)
    }

    /// The same with the text of a recipe; `path` is named in errors.
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

/// Sets a dotted key, with the tables it needs; the part that is no table, if there is one.
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

/// The key that `typed` was meant to be, among those that the reader's message says it expected.
fn nearest_key(typed: &str, message: &str) -> Option<String> {
    let (tables, last) = typed.rsplit_once('.').map_or(("", typed), |(tables, last)| (tables, last));
    let list = message.strip_prefix("unknown key `").and_then(|rest| rest.split_once("expected "))?.1;
    let unknown = message.split('`').nth(1)?;
    // The key that is unknown may be one of the tables before the last.
    let before = if unknown == last { tables } else { typed.split_once(unknown).map_or("", |(before, _)| before) };
    let known = list.split('`').skip(1).step_by(2);
    let nearest = known.min_by_key(|known| edits(unknown, known))?;
    let is_near = edits(unknown, nearest) <= unknown.len().div_ceil(2);
    let before = before.trim_end_matches('.');
    is_near.then(|| if before.is_empty() { nearest.to_owned() } else { format!("{before}.{nearest}") })
}

/// Characters to change, add or leave out from one word to the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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

    fn told(changes: &[&str]) -> (String, Option<String>) {
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
    fn an_unknown_key_is_told_with_the_one_that_was_meant() {
        let (line, hint) = told(&["training.epoch=20"]);
        assert!(line.starts_with("`training.epoch=20`: unknown key `epoch`, expected one of `epochs`, "), "{line}");
        assert_eq!(hint.as_deref(), Some("did you mean `training.epochs`?"));
        assert_eq!(told(&["trainig.epochs=1"]).1.as_deref(), Some("did you mean `training`?"));
        assert_eq!(told(&["model.dropot.conv=0"]).1.as_deref(), Some("did you mean `model.dropout`?"));
        assert_eq!(told(&["training.zzzzzzzz=1"]).1, None);
    }

    #[test]
    fn what_is_no_change_and_values_that_do_not_fit_are_told_in_one_line() {
        let cases = [
            ("epochs", "`epochs` is no change to the recipe, expected `key=value`, as in `training.epochs=20`"),
            ("=3", "`=3` is no change to the recipe, expected `key=value`, as in `training.epochs=20`"),
            (
                "training.epochs=many",
                "`training.epochs=many`: found string \"many\", expected a whole number, 0 or more",
            ),
            ("training.epochs.a=1", "`training.epochs.a=1`: `epochs` is a value, not a table"),
        ];
        for (typed, expected) in cases {
            let line = told(&[typed]).0;
            assert!(line.starts_with(expected), "{line}");
            assert!(!line.contains('\n'));
        }
        let line = told(&["training.epochs=0"]).0;
        assert!(line.ends_with("with the changes of the command line: `training.epochs` is 0, expected 1 to 1000000"));
    }

    #[test]
    fn changes_that_fit_only_together_are_taken_together() {
        assert!(load(&["model.hidden_height=[7, 8]"]).is_err());
        assert!(load(&["model.hidden_height=[7, 8]", "model.layers=3"]).is_ok());
    }

    #[test]
    fn classes_must_be_those_of_the_labels() {
        let (line, hint) = told(&["model.classes=63"]);
        assert!(line.ends_with("`model.classes` is 63, but the labels of the data make 41 classes"), "{line}");
        assert!(hint.unwrap().contains("`model.classes=41`"));
    }

    #[test]
    fn the_distance_of_words_is_the_fewest_changes() {
        assert_eq!([edits("", "abc"), edits("kitten", "sitting"), edits("same", "same")], [3, 3, 0]);
    }
}
