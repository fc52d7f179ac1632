//! Words to phones: the CMU dictionary, and letter-to-sound rules for words that it does not have.

use std::collections::{BTreeMap, HashMap};

use flite_rs::Engine;
use serde::Serialize;
use srf_text::cmudict::{CmuDict, PHONES};

/// Words that are listed in a summary.
const MAX_LISTED: usize = 50;

/// Where pronunciations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lexicon {
    /// The CMU Pronouncing Dictionary inside the program; the usual pronunciation of a word.
    CmuDict,
}

/// Gives words their phones and counts those that are not in the dictionary.
pub(crate) struct Pronouncer {
    dictionary: &'static CmuDict,
    rules: Rules,
    n_words: usize,
    /// Phones by the rules, and how often the word occurred.
    by_rules: HashMap<String, (Vec<&'static str>, usize)>,
}

/// How well a dictionary covers a corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Words in all sentences.
    pub n_words: usize,
    /// How many of them were pronounced by letter-to-sound rules because the dictionary does not have them.
    pub n_by_rules: usize,
    /// How many different words these are.
    pub n_types_by_rules: usize,
    /// The most frequent of them, and how often they occur.
    pub most_frequent_by_rules: BTreeMap<String, usize>,
}

impl Pronouncer {
    pub(crate) fn new(lexicon: Lexicon) -> Self {
        let Lexicon::CmuDict = lexicon;
        Self { dictionary: CmuDict::get(), rules: Rules::new(), n_words: 0, by_rules: HashMap::new() }
    }

    /// The phones of a word in lower case; `None` for what cannot be pronounced, such as a word of another script.
    pub(crate) fn phones(&mut self, word: &str) -> Option<Vec<&'static str>> {
        self.n_words += 1;
        let bare = word.trim_matches('\'');
        let known = [word, bare].into_iter().find_map(|word| self.dictionary.pronunciations(word).next());
        if known.is_some() {
            return known;
        }
        let rules = &self.rules;
        let (phones, n_uses) = self.by_rules.entry(word.to_owned()).or_insert_with(|| (rules.phones(bare), 0));
        *n_uses += 1;
        (!phones.is_empty()).then(|| phones.clone())
    }

    pub(crate) fn coverage(&self) -> Coverage {
        let mut counts: Vec<(&String, usize)> = self.by_rules.iter().map(|(word, (_, n))| (word, *n)).collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        Coverage {
            n_words: self.n_words,
            n_by_rules: counts.iter().map(|(_, n)| n).sum(),
            n_types_by_rules: counts.len(),
            most_frequent_by_rules: counts.into_iter().take(MAX_LISTED).map(|(word, n)| (word.clone(), n)).collect(),
        }
    }
}

/// Letter-to-sound rules of English, those of the built-in synthesiser.
pub(crate) struct Rules(Engine);

impl Rules {
    pub(crate) fn new() -> Self {
        Self(Engine::new())
    }

    /// The phones that the synthesiser speaks; numbers are read out. Empty for words of another script.
    pub(crate) fn phones(&self, word: &str) -> Vec<&'static str> {
        if !word.is_ascii() || word.is_empty() {
            return Vec::new();
        }
        let analysis = self.0.analyse(word);
        let phones = analysis.iter_relation("Segment").filter_map(|segment| {
            // The schwa is one of the dictionary's `ah`; pauses are not phones of it.
            let name = match analysis.name(segment) {
                "ax" => "ah",
                name => name,
            };
            PHONES.iter().find(|phone| **phone == name).copied()
        });
        phones.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_from_the_dictionary_and_the_rest_from_rules_and_is_counted() {
        let mut pronouncer = Pronouncer::new(Lexicon::CmuDict);
        let mut phones = |word: &str| pronouncer.phones(word).map(|phones| phones.join(" "));
        assert_eq!(phones("speech").unwrap(), "s p iy ch");
        assert_eq!(phones("'speech'").unwrap(), "s p iy ch");
        assert_eq!(phones("42").unwrap(), "f ao r t iy t uw");
        let invented = phones("blorp").unwrap();
        assert!(invented.starts_with("b l ") && invented.ends_with('p'), "{invented}");
        assert_eq!(phones("blorp").unwrap(), invented);
        assert_eq!(phones("привет"), None);
        let coverage = pronouncer.coverage();
        assert_eq!((coverage.n_words, coverage.n_by_rules, coverage.n_types_by_rules), (6, 4, 3));
        assert_eq!(coverage.most_frequent_by_rules["blorp"], 2);
    }
}
