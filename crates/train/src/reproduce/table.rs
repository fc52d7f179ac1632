//! What a table of the paper is: rows with their recipes and figures, columns that are measured, claims to be checked.

use srf_text::labels::Units;

use super::error::ReproduceError;
use super::paper;

/// Something that is measured of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Phone or word error rate, in percent.
    Error,
    /// Utterances whose last label is the one that ends every reference, in percent.
    EndsFound,
    /// Slices where routing and softmax differ, 0 to 1.
    Distance,
    /// Seconds to train an epoch.
    TrainingTime,
    /// Seconds to recognise a part on one thread.
    DecodingTime,
    /// The same for each second of audio.
    RealTimeFactor,
    /// Correlation of decoding times of utterances with those of the last row.
    Correlation,
    /// Numbers in the model.
    Parameters,
}

/// A column with figures of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What is measured.
    pub quantity: Quantity,
    /// On which part of the corpus.
    pub part: &'static str,
}

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Half of its 95 % interval, where it has one.
    pub spread: Option<f64>,
}

/// A model of the table.
#[derive(Debug)]
pub struct Row {
    /// As the paper calls it.
    pub title: &'static str,
    /// Its recipe, by name in [`crate::recipes`].
    pub recipe: &'static str,
    /// Millions of parameters, as the paper says.
    pub millions: f64,
    /// The paper's figures, one for each column.
    pub paper: &'static [Option<Figure>],
}

impl Row {
    /// Its short name: that of the recipe without its corpus.
    pub fn name(&self) -> &'static str {
        self.recipe.rsplit('/').next().unwrap_or(self.recipe)
    }

    /// The directory of its runs: the name, for other corpora than TIMIT below the corpus, since names recur.
    pub fn directory(&self) -> &'static str {
        self.recipe.strip_prefix("timit/").unwrap_or(self.recipe)
    }
}

/// What the paper says of a quantity of some rows, which are called by their names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// The first row has less of it than the second.
    Less(&'static str, &'static str),
    /// There is no significant difference between the two.
    Alike(&'static str, &'static str),
    /// The row has at least this much of it.
    AtLeast(&'static str, f64),
}

/// A sentence of the paper about two rows.
#[derive(Debug)]
pub struct Claim {
    /// The sentence, in short.
    pub says: &'static str,
    /// What it is about.
    pub quantity: Quantity,
    /// What it says.
    pub relation: Relation,
}

/// A table of the paper.
#[derive(Debug)]
pub struct Table {
    /// What it is called here.
    pub name: &'static str,
    /// Its number.
    pub number: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Whether its labels are phones; otherwise words are counted.
    pub is_of_phones: bool,
    /// What is measured.
    pub columns: &'static [Column],
    /// The models.
    pub rows: &'static [Row],
    /// What the paper concludes.
    pub claims: &'static [Claim],
    /// What a reader should know of its figures.
    pub note: &'static str,
}

impl Table {
    /// The table of this name or number.
    pub fn find(name: &str) -> Option<&'static Self> {
        paper::TABLES.iter().find(|table| table.name == name || table.number == name)
    }

    /// The row of this name.
    pub fn row(&self, name: &str) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.name() == name)
    }

    /// The rows of these names, in the order of the table; all where none is named.
    pub fn rows_named(&'static self, names: &[String]) -> Result<Vec<&'static Row>, ReproduceError> {
        if let Some(found) = names.iter().find(|name| self.row(name).is_none()) {
            return Err(self.unknown_row(found));
        }
        let is_named = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.name());
        Ok(self.rows.iter().filter(is_named).collect())
    }

    /// That there is no row of this name, and which one may be meant.
    pub(super) fn unknown_row(&self, found: &str) -> ReproduceError {
        let likeness = |row: &&Row| strsim::jaro_winkler(row.name(), &found.to_lowercase());
        let nearest = self.rows.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).map(Row::name);
        let expected: Vec<&str> = self.rows.iter().map(Row::name).collect();
        ReproduceError::UnknownRow {
            table: self.name,
            found: found.to_owned(),
            expected: expected.join(", "),
            nearest: nearest.unwrap_or_default().to_owned(),
        }
    }

    /// Whether some column is of one of `quantities`.
    pub fn measures(&self, quantities: &[Quantity]) -> bool {
        self.columns.iter().any(|column| quantities.contains(&column.quantity))
    }

    /// Whether the labels of a corpus are those it needs.
    pub fn is_for(&self, units: Units) -> bool {
        self.is_of_phones == (units == Units::Phones)
    }
}
