//! Label sets: the output classes of a network, and texts as classes.
//!
//! Class 0 is always padding and the last class always the CTC blank; the symbols of the set are between.
//!
//! ```
//! use srf_text::labels::{
//!     EncodeError, END_OF_SENTENCE, LabelSet, LabelSetError, LoadLabelsError, PADDING, ParseLabelsError, Units,
//!     UnknownUnits,
//! };
//!
//! let labels = LabelSet::of_texts(Units::Chars, ["a cab", "bad"])?;
//! assert_eq!(labels.units(), Units::Chars);
//! assert_eq!(labels.symbols(), [" ", "a", "b", "c", "d"]);
//! assert_eq!((labels.symbol(PADDING), labels.symbol(1)), (None, Some(" ")));
//! assert_eq!(labels.decode(&labels.encode("bad cab")?), "bad cab");
//! assert!(matches!(labels.encode("bed"), Err(EncodeError { position: 2, .. })));
//! assert_eq!(labels.foreign("bed"), ["e"]);
//!
//! let sentences = LabelSet::new(Units::Words, ["yes", "no", END_OF_SENTENCE])?;
//! assert_eq!(sentences.end_of_sentence(), sentences.class(END_OF_SENTENCE));
//! assert_eq!(LabelSet::new(Units::Words, Vec::<String>::new()), Err(LabelSetError::Empty));
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("labels.txt");
//! sentences.save(&path)?;
//! assert_eq!(LabelSet::load(&path)?, sentences);
//! assert!(matches!(LabelSet::load("none.txt".as_ref()), Err(LoadLabelsError::Read { .. })));
//! assert!(matches!(LabelSet::parse(""), Err(ParseLabelsError::Line { .. } | ParseLabelsError::Set(_))));
//! assert_eq!("syllables".parse::<Units>(), Err(UnknownUnits { found: "syllables".to_owned() }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod fold;
pub mod mapping;
pub mod pieces;
pub mod timit;
pub mod wsj;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The class that fills a batch after a short utterance; no decoder ever emits it.
pub const PADDING: usize = 0;

/// The symbol that ends every utterance in sets that have it; added by [`LabelSet::encode`], hidden by
/// [`LabelSet::decode`].
pub const END_OF_SENTENCE: &str = "<eos>";

const PADDING_NAME: &str = "<pad>";
const BLANK_NAME: &str = "<blank>";
const SPACE_NAME: &str = "<space>";
const UNITS_MARK: &str = "# units: ";
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What one label stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// Phones, separated by spaces.
    Phones,
    /// Characters; the space is one of them.
    Chars,
    /// Words, separated by spaces.
    Words,
    /// Pieces of words ([`pieces`]); texts are words, and the label set cuts them.
    Pieces,
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Units::Phones => "phones",
            Units::Chars => "chars",
            Units::Words => "words",
            Units::Pieces => "bpe",
        })
    }
}

impl FromStr for Units {
    type Err = UnknownUnits;

    fn from_str(name: &str) -> Result<Self, UnknownUnits> {
        match name {
            "phones" => Ok(Units::Phones),
            "chars" => Ok(Units::Chars),
            "words" => Ok(Units::Words),
            "bpe" => Ok(Units::Pieces),
            _ => Err(UnknownUnits { found: name.to_owned() }),
        }
    }
}

/// A name of units that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown units `{found}`, expected `phones`, `chars`, `words` or `bpe`")]
pub struct UnknownUnits {
    /// What was written.
    pub found: String,
}

impl Units {
    /// The labels of `text` in these units, in order; spaces around it and doubled ones inside are not labels.
    ///
    /// Pieces are those that the text is already cut into; [`LabelSet::split`] cuts it.
    pub fn split(self, text: &str) -> Vec<&str> {
        match self {
            Units::Phones | Units::Words | Units::Pieces => text.split_whitespace().collect(),
            Units::Chars => split_chars(text),
        }
    }

    /// One text of many labels: the inverse of [`Units::split`], and for pieces that of [`LabelSet::split`].
    pub fn join<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> String {
        let labels: Vec<&str> = labels.into_iter().collect();
        match self {
            Units::Phones | Units::Words => labels.join(" "),
            Units::Chars => labels.concat(),
            Units::Pieces => labels.concat().replace(pieces::WORD_START, " ").trim_start().to_owned(),
        }
    }
}

fn split_chars(text: &str) -> Vec<&str> {
    let mut labels = Vec::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !labels.is_empty() {
            labels.push(" ");
        }
        labels.extend(word.char_indices().map(|(at, c)| &word[at..at + c.len_utf8()]));
    }
    labels
}

/// An ordered set of labels with the classes of a network.
///
/// ```
/// use srf_text::labels::{LabelSet, Units};
///
/// let set = LabelSet::new(Units::Phones, ["aa", "b", "sil"]).unwrap();
/// assert_eq!(set.n_classes(), 5); // padding, three phones, blank
/// assert_eq!(set.encode("sil b aa").unwrap(), [3, 2, 1]);
/// assert_eq!(set.decode(&[3, 2, 1]), "sil b aa");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSet {
    units: Units,
    symbols: Vec<String>,
    class_of: HashMap<String, usize>,
}

/// Why symbols do not make a label set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum LabelSetError {
    #[error("a label set needs at least one label")]
    Empty,
    #[error("label `{symbol}` appears twice, as classes {first} and {second}")]
    Twice { symbol: String, first: usize, second: usize },
    #[error("class {class}: {found:?} is not a label of {units}")]
    NotALabel { class: usize, found: String, units: Units },
}

/// A text with something the set does not have.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("label {position} is `{found}`, which is not in the set of {n_labels} labels")]
#[allow(missing_docs, reason = "the message says what the fields are")]
pub struct EncodeError {
    pub position: usize,
    pub found: String,
    pub n_labels: usize,
}

impl LabelSet {
    /// The set of `symbols`, whose classes count from 1 in the order given.
    pub fn new<S: Into<String>>(units: Units, symbols: impl IntoIterator<Item = S>) -> Result<Self, LabelSetError> {
        let symbols: Vec<String> = symbols.into_iter().map(Into::into).collect();
        let mut class_of = HashMap::with_capacity(symbols.len());
        for (index, symbol) in symbols.iter().enumerate() {
            let class = index + 1;
            if !is_label(units, symbol) {
                return Err(LabelSetError::NotALabel { class, found: symbol.clone(), units });
            }
            if let Some(first) = class_of.insert(symbol.clone(), class) {
                return Err(LabelSetError::Twice { symbol: symbol.clone(), first, second: class });
            }
        }
        if symbols.is_empty() { Err(LabelSetError::Empty) } else { Ok(Self { units, symbols, class_of }) }
    }

    /// The set of every label that `texts` use, in the order of Unicode.
    pub fn of_texts<'a>(units: Units, texts: impl IntoIterator<Item = &'a str>) -> Result<Self, LabelSetError> {
        let mut symbols: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for text in texts {
            symbols.extend(units.split(text).into_iter().filter(|label| seen.insert(*label)));
        }
        symbols.sort_unstable();
        Self::new(units, symbols)
    }

    /// What a label stands for.
    pub fn units(&self) -> Units {
        self.units
    }

    /// Outputs of a network with this set: padding, the labels, blank.
    pub fn n_classes(&self) -> usize {
        self.symbols.len() + 2
    }

    /// The CTC blank: the last class.
    pub fn blank(&self) -> usize {
        self.symbols.len() + 1
    }

    /// The labels in the order of their classes, without padding and blank.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// The label of a class; `None` for padding, blank and anything beyond.
    pub fn symbol(&self, class: usize) -> Option<&str> {
        self.symbols.get(class.checked_sub(1)?).map(String::as_str)
    }

    /// The class of a label.
    pub fn class(&self, symbol: &str) -> Option<usize> {
        self.class_of.get(symbol).copied()
    }

    /// The class that ends a sentence, in sets that have one.
    pub fn end_of_sentence(&self) -> Option<usize> {
        self.class(END_OF_SENTENCE)
    }

    /// The labels of a text, in order, whether or not the set has them.
    pub fn split<'a>(&self, text: &'a str) -> Vec<Cow<'a, str>> {
        match self.units {
            Units::Pieces => {
                let words = text.split_whitespace();
                words.flat_map(|word| pieces::split_word(word, |piece| self.class(piece))).map(Cow::Owned).collect()
            }
            units => units.split(text).into_iter().map(Cow::Borrowed).collect(),
        }
    }

    /// The classes of a text, with the end of the sentence where the set has one.
    pub fn encode(&self, text: &str) -> Result<Vec<usize>, EncodeError> {
        let mut classes = Vec::new();
        for (index, label) in self.split(text).into_iter().enumerate() {
            let n_labels = self.symbols.len();
            let class = self.class(&label).ok_or_else(|| EncodeError {
                position: index + 1,
                found: label.into_owned(),
                n_labels,
            })?;
            classes.push(class);
        }
        classes.extend(self.end_of_sentence());
        Ok(classes)
    }

    /// The text of some classes; padding, blank, the end of the sentence and unknown classes write nothing.
    pub fn decode(&self, classes: &[usize]) -> String {
        let is_written = |class: &&usize| Some(**class) != self.end_of_sentence();
        let text = self.units.join(classes.iter().filter(is_written).filter_map(|class| self.symbol(*class)));
        text.trim().to_owned()
    }

    /// The labels of `text` that the set does not have, in order of appearance and as often as they appear.
    pub fn foreign<'a>(&self, text: &'a str) -> Vec<Cow<'a, str>> {
        self.split(text).into_iter().filter(|label| self.class(label).is_none()).collect()
    }
}

fn is_label(units: Units, symbol: &str) -> bool {
    let is_reserved = [PADDING_NAME, BLANK_NAME, SPACE_NAME].contains(&symbol);
    let is_one = match units {
        Units::Phones | Units::Words | Units::Pieces => !symbol.chars().any(char::is_whitespace),
        Units::Chars => symbol == " " || symbol == END_OF_SENTENCE || is_one_visible_char(symbol),
    };
    !symbol.is_empty() && is_one && !is_reserved
}

fn is_one_visible_char(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    chars.next().is_some_and(|c| !c.is_whitespace()) && chars.next().is_none()
}

/// Why a file of labels could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum LoadLabelsError {
    #[error("could not read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` has more than {limit} bytes, the most a list of labels may have")]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("`{path}`: {cause}")]
    Parse { path: PathBuf, cause: ParseLabelsError },
}

/// Why a list of labels could not be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ParseLabelsError {
    #[error("line {line}: found {found:?}, expected {expected}")]
    Line { line: usize, found: String, expected: &'static str },
    #[error(transparent)]
    Set(#[from] LabelSetError),
}

impl LabelSet {
    /// Reads what [`LabelSet::format`] wrote.
    pub fn parse(text: &str) -> Result<Self, ParseLabelsError> {
        let mut lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('\r')).collect();
        while lines.last() == Some(&"") {
            lines.pop();
        }
        let units = parse_units(lines.first().copied().unwrap_or(""))?;
        expect_line(&lines, 1, PADDING_NAME)?;
        expect_line(&lines, (lines.len() - 1).max(2), BLANK_NAME)?;
        let symbols = &lines[2..lines.len() - 1];
        Ok(Self::new(units, symbols.iter().map(|line| if *line == SPACE_NAME { " " } else { line }))?)
    }

    /// One label per line in the order of the classes, padding and blank included, under a line that names the units.
    pub fn format(&self) -> String {
        let mut text = format!("{UNITS_MARK}{}\n{PADDING_NAME}\n", self.units);
        for symbol in &self.symbols {
            text.push_str(if symbol == " " { SPACE_NAME } else { symbol });
            text.push('\n');
        }
        text + BLANK_NAME + "\n"
    }

    /// Reads a `labels.txt`.
    pub fn load(path: &Path) -> Result<Self, LoadLabelsError> {
        let path = path.to_owned();
        match srf_base::files::read_text_at_most(&path, MAX_FILE_BYTES) {
            Ok(Some(text)) => Self::parse(&text).map_err(|cause| LoadLabelsError::Parse { path, cause }),
            Ok(None) => Err(LoadLabelsError::TooLarge { path, limit: MAX_FILE_BYTES }),
            Err(source) => Err(LoadLabelsError::Read { path, source }),
        }
    }

    /// Writes a `labels.txt`.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        srf_base::files::write_atomically(path, self.format().as_bytes())
    }
}

fn parse_units(line: &str) -> Result<Units, ParseLabelsError> {
    let units = line.strip_prefix(UNITS_MARK).and_then(|name| name.trim().parse().ok());
    units.ok_or_else(|| unexpected(1, line, "`# units: phones`, `# units: chars`, `# units: words` or `# units: bpe`"))
}

fn expect_line(lines: &[&str], index: usize, expected: &'static str) -> Result<(), ParseLabelsError> {
    let found = lines.get(index).copied().unwrap_or("");
    if found == expected { Ok(()) } else { Err(unexpected(index + 1, found, expected)) }
}

fn unexpected(line: usize, found: &str, expected: &'static str) -> ParseLabelsError {
    ParseLabelsError::Line { line, found: found.chars().take(60).collect(), expected }
}

#[cfg(test)]
mod tests;
