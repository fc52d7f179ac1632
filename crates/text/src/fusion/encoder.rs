//! Turns hotwords and phrases into words, if there is a lexicon of phones, or else into labels.

use std::collections::HashMap;

use super::hotwords::Hotword;
use super::lexicon::Lexicon;
use super::phrases::{PhraseGraph, Phrases};
use super::{FusionError, Separators};
use crate::labels::{LabelSet, Units};

pub(super) struct Encoder<'a> {
    labels: &'a LabelSet,
    words: Option<Words<'a>>,
}

/// A lexicon in which words can be found.
struct Words<'a> {
    lexicon: &'a Lexicon,
    numbers: HashMap<&'a str, u32>,
}

impl Words<'_> {
    /// The words of `phrase` as they are written, or in small letters, or in capitals.
    fn find(&self, phrase: &str) -> Option<Vec<u32>> {
        let find = |word: &str| self.numbers.get(word).copied();
        let find =
            |word: &str| find(word).or_else(|| find(&word.to_lowercase())).or_else(|| find(&word.to_uppercase()));
        phrase.split_whitespace().map(find).collect()
    }
}

/// The classes of a phrase, without the end of the sentence; as it is written, or in capitals, or in small letters.
pub(super) fn encode(labels: &LabelSet, phrase: &str) -> Option<Vec<usize>> {
    let writings = [phrase.to_owned(), phrase.to_uppercase(), phrase.to_lowercase()];
    let mut classes = writings.iter().find_map(|phrase| labels.encode(phrase).ok())?;
    classes.retain(|class| Some(*class) != labels.end_of_sentence());
    Some(classes)
}

impl<'a> Encoder<'a> {
    pub(super) fn new(labels: &'a LabelSet, lexicon: Option<&'a Lexicon>) -> Self {
        let words = lexicon.map(|lexicon| Words { lexicon, numbers: lexicon.names.iter().zip(0..).collect() });
        Self { labels, words }
    }

    pub(super) fn space(&self) -> Option<u32> {
        self.labels.class(" ").filter(|_| self.labels.units() == Units::Chars).map(|class| class as u32)
    }

    fn encode(&self, phrase: &str) -> Result<Vec<u32>, FusionError> {
        let encoded = match &self.words {
            Some(words) => words.find(phrase),
            None => encode(self.labels, phrase).map(|classes| classes.into_iter().map(|class| class as u32).collect()),
        };
        let phrase = || phrase.chars().take(60).collect();
        encoded.ok_or_else(|| match self.words {
            Some(_) => FusionError::PhraseOfWords { phrase: phrase() },
            None => FusionError::Phrase { phrase: phrase() },
        })
    }

    /// The score of a word is that of all its labels.
    pub(super) fn hotwords(&self, hotwords: &[Hotword]) -> Result<Vec<Vec<(u32, f64)>>, FusionError> {
        let words = self.words.as_ref().filter(|_| !hotwords.is_empty());
        let n_labels = words.map(|words| words.lexicon.tree.n_labels(words.lexicon.n_words()));
        let weight = |item: u32| n_labels.as_ref().map_or(1.0, |n_labels| f64::from(n_labels[item as usize]));
        let encode = |hotword: &Hotword| {
            let items = self.encode(&hotword.phrase)?;
            Ok(items.into_iter().map(|item| (item, f64::from(hotword.score) * weight(item))).collect())
        };
        hotwords.iter().map(encode).collect()
    }

    pub(super) fn phrases(&self, separators: &Separators, phrases: &Phrases) -> Result<PhraseGraph, FusionError> {
        let encoded: Vec<_> = phrases.phrases.iter().map(|phrase| self.encode(phrase)).collect::<Result<_, _>>()?;
        let of_words = Separators::of_words();
        PhraseGraph::new(&encoded, if self.words.is_some() { &of_words } else { separators }, phrases.repeats)
    }
}
