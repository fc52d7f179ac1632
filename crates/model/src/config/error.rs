//! What can be wrong with a configuration, and where, in one line.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use serde::Deserialize;
use srf_audio::features::FeaturesConfigError;
use srf_base::files::read_text_at_most;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest configuration file that is read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// A value outside its bounds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{key}` is {found}, expected {expected}")]
#[allow(missing_docs)] // the message says what the fields are
pub struct InvalidConfig {
    /// The key with its tables, as in `model.dropout.input`.
    pub key: String,
    pub found: String,
    pub expected: String,
}

impl InvalidConfig {
    /// A problem unless `holds`.
    pub(super) fn unless(
        holds: bool,
        key: &str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Result<(), Self> {
        let problem = || Self { key: key.to_owned(), found: found.to_string(), expected: expected.to_string() };
        if holds { Ok(()) } else { Err(problem()) }
    }

    /// A problem unless `found` lies in `least..=most`.
    pub(super) fn unless_within(key: &str, found: usize, least: usize, most: usize) -> Result<(), Self> {
        Self::unless((least..=most).contains(&found), key, found, format_args!("{least} to {most}"))
    }
}

impl From<FeaturesConfigError> for InvalidConfig {
    fn from(error: FeaturesConfigError) -> Self {
        match error {
            FeaturesConfigError::Value { key, found, expected } => {
                Self { key: format!("features.{key}"), found, expected }
            }
            other => Self {
                key: "features".to_owned(),
                found: other.to_string(),
                expected: "features that can be computed".to_owned(),
            },
        }
    }
}

/// Why a configuration could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum ReadConfigError {
    #[error("could not read `{path}`")]
    Io { path: PathBuf, source: io::Error },
    #[error("`{path}` is longer than {most} bytes, the most a configuration may have")]
    TooLarge { path: PathBuf, most: u64 },
    /// Not TOML, an unknown or missing key, or a value of the wrong kind.
    #[error("{place}: {message}")]
    Syntax { place: String, message: String },
    /// A value outside its bounds.
    #[error("{place}: {problem}")]
    Invalid { place: String, problem: InvalidConfig },
}

/// A text and the path it came from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn parse(self) -> Result<Spanned<DeTable<'a>>, ReadConfigError> {
        DeTable::parse(self.text).map_err(|error| self.explain(&error))
    }

    /// `path:line`, or the path alone where the line is not known.
    pub(super) fn place(self, offset: Option<usize>) -> String {
        let path = self.path.display();
        match offset.and_then(|offset| self.text.get(..offset)) {
            Some(before) => format!("{path}:{}", before.matches('\n').count() + 1),
            None => path.to_string(),
        }
    }

    /// The TOML reader's error in our words, on one line.
    pub(super) fn explain(self, error: &toml::de::Error) -> ReadConfigError {
        let place = self.place(error.span().map(|span| span.start));
        ReadConfigError::Syntax { place, message: plain_message(error) }
    }

    /// Where the key of `problem` stands in `document`.
    pub(super) fn invalid(self, document: &DeTable<'_>, problem: InvalidConfig) -> ReadConfigError {
        ReadConfigError::Invalid { place: self.place(find_key(document, &problem.key)), problem }
    }
}

/// The offset of the value of a dotted key.
fn find_key(document: &DeTable<'_>, dotted: &str) -> Option<usize> {
    let (first, rest) = dotted.split_once('.').map_or((dotted, None), |(first, rest)| (first, Some(rest)));
    let value = document.get(first)?;
    match (rest, value.get_ref()) {
        (Some(rest), DeValue::Table(table)) => find_key(table, rest),
        _ => Some(value.span().start),
    }
}

/// What the TOML reader says, on one line and in words for people who write TOML.
pub(super) fn plain_message(error: &toml::de::Error) -> String {
    let mut error = error.clone();
    // Without its input the error shows as the message and, on a line of its own, the key it belongs to.
    error.set_input(None);
    plain_words(&error.to_string().trim_end().replace('\n', ", "))
}

/// The text of a configuration file, if it is not too large for one.
pub(super) fn read_text(path: &Path) -> Result<String, ReadConfigError> {
    let text = read_text_at_most(path, MAX_CONFIG_BYTES);
    text.map_err(|source| ReadConfigError::Io { path: path.to_owned(), source })?
        .ok_or_else(|| ReadConfigError::TooLarge { path: path.to_owned(), most: MAX_CONFIG_BYTES })
}

/// The reader's words for Rust types, in words for people who write TOML.
fn plain_words(message: &str) -> String {
    const WORDS: &[(&str, &str)] = &[
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("duplicate field", "duplicate key"),
        ("unknown variant", "unknown value"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
        ("expected a map", "expected a table"),
        ("expected a boolean", "expected `true` or `false`"),
    ];
    let mut plain = message.to_owned();
    for (theirs, ours) in WORDS {
        plain = plain.replace(theirs, ours);
    }
    plain.strip_prefix("invalid type: ").map_or(plain.clone(), |rest| format!("found {rest}"))
}

/// A type read from a table whose places are known.
pub(super) fn from_table<'a, T: Deserialize<'a>>(table: Spanned<DeTable<'a>>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::de::Deserializer::from(table))
}
