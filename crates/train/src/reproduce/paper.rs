//! The tables of the paper as data: `paper.toml`, parsed once, with its rows, figures and claims.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use srf_text::labels::Units;

use super::ReproduceError;

/// All tables, in the order of their numbers.
pub static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let Paper { tables } = toml::from_str(include_str!("paper.toml")).expect("a test parses the same text");
    tables
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    tables: Vec<Table>,
}

/// Something that is measured of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Phone or word error rate, in percent.
    Error,
    /// Utterances whose last label is the one that ends every reference, in percent.
    EosRate,
    /// Slices where routing and softmax differ, 0 to 1.
    Distance,
    /// Seconds to train an epoch.
    TrainingTime,
    /// Seconds to recognise a part on one thread.
    DecodingTime,
    /// Decoding time per second of audio.
    RealTimeFactor,
    /// Correlation of decoding times of utterances with those of the last row.
    Correlation,
    /// Parameters of the model.
    Parameters,
}

/// A column: a quantity, measured on a part of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What is measured.
    pub quantity: Quantity,
    /// `dev` or `test`.
    pub part: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Dev,
    Test,
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (quantity, part) = Deserialize::deserialize(deserializer)?;
        let part = match part {
            Part::Dev => crate::corpus::DEV,
            Part::Test => crate::corpus::TEST,
        };
        Ok(Self { quantity, part })
    }
}

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenFigure")]
pub struct Figure {
    /// The figure; not a number where the paper gives none.
    pub value: f64,
    /// Half of its 95 % interval, where the paper gives it.
    pub spread: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenFigure {
    Alone(f64),
    WithSpread([f64; 2]),
}

impl From<WrittenFigure> for Figure {
    fn from(written: WrittenFigure) -> Self {
        match written {
            WrittenFigure::Alone(value) => Self { value, spread: None },
            WrittenFigure::WithSpread([value, spread]) => Self { value, spread: Some(spread) },
        }
    }
}

/// A model of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// As the paper calls it.
    pub title: String,
    /// Its recipe, by name in [`crate::recipes`].
    pub recipe: String,
    /// Millions of parameters, as the paper says.
    pub millions: f64,
    figures: Vec<Figure>,
}

impl TableRow {
    /// Its short name: that of the recipe without its corpus.
    pub fn name(&self) -> &str {
        self.recipe.rsplit('/').next().unwrap_or(&self.recipe)
    }

    /// The directory of its runs: the name; for corpora other than TIMIT below the corpus, since names recur.
    pub fn directory(&self) -> &str {
        self.recipe.strip_prefix("timit/").unwrap_or(&self.recipe)
    }

    /// The paper's figures, one for each column.
    pub fn figures(&self) -> impl Iterator<Item = Option<Figure>> + '_ {
        self.figures.iter().map(|figure| Some(*figure).filter(|figure| figure.value.is_finite()))
    }
}

/// What the paper says of a quantity; rows are called by their names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The first row has less of it than the second.
    Less(String, String),
    /// There is no relevant difference between the two.
    Alike(String, String),
    /// The row has at least this much of it.
    AtLeast(String, f64),
}

/// A sentence of the paper about one or two rows.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Claim {
    pub says: String,
    pub quantity: Quantity,
    #[serde(flatten)]
    pub relation: Relation,
}

/// A table of the paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Table {
    pub name: String,
    pub number: String,
    pub title: String,
    /// Whether phones are counted; words otherwise.
    pub phones: bool,
    pub columns: Vec<Column>,
    /// What a reader should know of its figures; may be empty.
    pub note: String,
    pub rows: Vec<TableRow>,
    pub claims: Vec<Claim>,
}

impl Table {
    /// The table of this name or number.
    pub fn find(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name || table.number == name)
    }

    /// The row of this name.
    pub fn row(&self, name: &str) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.name() == name)
    }

    /// The rows of these names, in the order of the table; all where none is named.
    pub fn rows_named(&'static self, names: &[String]) -> Result<Vec<&'static TableRow>, ReproduceError> {
        if let Some(found) = names.iter().find(|name| self.row(name).is_none()) {
            return Err(self.unknown_row(found));
        }
        let is_named = |row: &&TableRow| names.is_empty() || names.iter().any(|name| name == row.name());
        Ok(self.rows.iter().filter(is_named).collect())
    }

    pub(super) fn unknown_row(&self, found: &str) -> ReproduceError {
        let names: Vec<&str> = self.rows.iter().map(TableRow::name).collect();
        let nearest = srf_base::names::nearest(&found.to_lowercase(), names.iter().copied()).map(str::to_owned);
        let (table, found, expected) = (self.name.clone(), found.to_owned(), names.join(", "));
        ReproduceError::UnknownRow { table, found, expected, nearest }
    }

    /// Whether some column is of one of `quantities`.
    pub fn measures(&self, quantities: &[Quantity]) -> bool {
        self.columns.iter().any(|column| quantities.contains(&column.quantity))
    }

    /// Whether the labels of a corpus are those it needs.
    pub fn is_for(&self, units: Units) -> bool {
        self.phones == (units == Units::Phones)
    }
}

#[cfg(test)]
mod tests;
