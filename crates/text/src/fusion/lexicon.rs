//! Lexicons: which words there are and how they are said or spelled, as classes of a label set.

use std::collections::HashMap;

use super::{ReadListError, encode};
use crate::labels::{LabelSet, Units};

/// Words with their labels.
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    words: Vec<String>,
    /// A word and one way to say it.
    entries: Vec<(u32, Vec<usize>)>,
}

impl Lexicon {
    /// Reads `word label label ...` lines, one for each way to say a word, as in CMUdict: a number in brackets behind
    /// the word (`read(2)`) is no part of it, stress digits are dropped where the set has none, and lines that begin
    /// with `;;;` or `#` are skipped.
    pub fn parse(text: &str, labels: &LabelSet) -> Result<Self, ReadListError> {
        let mut builder = Builder::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(";;;") || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split_whitespace();
            let word = fields.next().map_or("", base_word);
            let found: Result<Vec<usize>, &str> = fields.map(|name| class(labels, name).ok_or(name)).collect();
            let found = found.map_err(|label| ReadListError::Label {
                line: index + 1,
                found: label.chars().take(40).collect(),
                phrase: word.chars().take(40).collect(),
            })?;
            if found.is_empty() {
                return Err(ReadListError::NoLabels { line: index + 1, word: word.chars().take(40).collect() });
            }
            builder.add(word, found);
        }
        super::check_length(builder.lexicon.entries.len())?;
        Ok(builder.lexicon)
    }

    /// Words spelled in the labels of the set; those that cannot be are left out and counted.
    pub fn spelled<'a>(words: impl IntoIterator<Item = &'a str>, labels: &LabelSet) -> (Self, usize) {
        let mut builder = Builder::default();
        let mut n_left_out = 0;
        for word in words {
            match encode(labels, word) {
                Some(classes) if !classes.is_empty() => builder.add(word, classes),
                _ => n_left_out += 1,
            }
        }
        (builder.lexicon, n_left_out)
    }

    /// The spelling of a word.
    pub fn word(&self, word: u32) -> Option<&str> {
        self.words.get(word as usize).map(String::as_str)
    }

    /// How many words there are.
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    pub(super) fn entries(&self) -> &[(u32, Vec<usize>)] {
        &self.entries
    }
}

#[derive(Default)]
struct Builder {
    lexicon: Lexicon,
    ids: HashMap<String, u32>,
}

impl Builder {
    fn add(&mut self, word: &str, classes: Vec<usize>) {
        let words = &mut self.lexicon.words;
        let id = *self.ids.entry(word.to_owned()).or_insert_with(|| {
            words.push(word.to_owned());
            words.len() as u32 - 1
        });
        self.lexicon.entries.push((id, classes));
    }
}

fn base_word(word: &str) -> &str {
    match word.strip_suffix(')').and_then(|word| word.rsplit_once('(')) {
        Some((base, number)) if !base.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => word,
    }
}

fn class(labels: &LabelSet, name: &str) -> Option<usize> {
    let find = |name: &str| labels.class(name).or_else(|| labels.class(&name.to_lowercase()));
    let found = find(name).or_else(|| find(&name.to_uppercase()));
    let is_phone = labels.units() == Units::Phones;
    found.or_else(|| if is_phone { find(name.trim_end_matches(['0', '1', '2'])) } else { None })
}
