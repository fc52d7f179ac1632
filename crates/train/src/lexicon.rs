//! Lexicons of word models: CMU's dictionary, and letter-to-sound rules for words of a language model that it lacks.

use srf_text::cmudict::CmuDict;
use srf_text::fusion::Lexicon;
use srf_text::labels::LabelSet;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::lm::NgramModel;

use crate::corpus::pronounce::Rules;

/// Which words a lexicon gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LexiconOptions {
    /// Leave out words of the dictionary that the language model does not know.
    pub known_only: bool,
    /// Leave out words of the language model that the dictionary does not have, instead of pronouncing them by rules.
    pub no_rules: bool,
}

/// A lexicon and what became of the words.
#[derive(Clone, Debug, Default)]
pub struct MadeLexicon {
    /// The words that can be recognised.
    pub lexicon: Lexicon,
    /// Words of the language model that were pronounced by letter-to-sound rules.
    pub n_by_rules: usize,
    /// Words of the language model that are left out because nothing says how they are pronounced.
    pub n_unpronounced: usize,
    /// Pronunciations that are left out because the model has no label for one of their phones.
    pub n_foreign: usize,
    /// Words of the dictionary that are left out because the language model does not know them.
    pub n_unknown: usize,
}

/// How words are pronounced: by CMU's dictionary, and by letter-to-sound rules where it does not have them.
pub struct Pronouncer {
    rules: Rules,
    mapping: Option<PhoneMapping>,
}

impl Pronouncer {
    /// Pronounces in the phones of a model.
    pub fn new(labels: &LabelSet) -> Self {
        Self { rules: Rules::new(), mapping: fitting_mapping(labels) }
    }

    /// The usual pronunciation of a word; `None` for words of another script.
    ///
    /// ```
    /// use srf_text::cmudict::PHONES;
    /// use srf_text::labels::{LabelSet, Units};
    ///
    /// let pronouncer = srf_train::lexicon::Pronouncer::new(&LabelSet::new(Units::Phones, PHONES)?);
    /// assert_eq!(pronouncer.phones("speech").unwrap(), ["s", "p", "iy", "ch"]);
    /// assert_eq!(pronouncer.phones("привет"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn phones(&self, word: &str) -> Option<Vec<&'static str>> {
        let known = CmuDict::get().pronunciations(word).next();
        let phones = known.unwrap_or_else(|| self.rules.phones(word));
        (!phones.is_empty()).then(|| mapped(self.mapping, phones))
    }
}

/// The words of CMU's dictionary and of `language` in the phones of `labels`.
pub fn from_cmudict(labels: &LabelSet, language: &NgramModel, options: LexiconOptions) -> MadeLexicon {
    let dictionary = CmuDict::get();
    let mut made = MadeLexicon::default();
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut last_unknown = None;
    for (word, phones) in dictionary.iter() {
        if options.known_only && language.word(word).is_none() {
            made.n_unknown += usize::from(last_unknown.replace(word) != Some(word));
            continue;
        }
        entries.push((word, phones));
    }
    // The words of a model are in no order; the same files shall give the same bytes.
    let mut missing: Vec<&str> = language.words().map(|(word, _)| word).filter(|word| is_missing(word)).collect();
    missing.sort_unstable();
    let rules = (!options.no_rules).then(Rules::new);
    for word in missing {
        match rules.as_ref().map(|rules| rules.phones(word)).filter(|phones| !phones.is_empty()) {
            Some(phones) => {
                made.n_by_rules += 1;
                entries.push((word, phones));
            }
            None => made.n_unpronounced += 1,
        }
    }
    let mapping = fitting_mapping(labels);
    let named = |(word, phones)| (word, mapped(mapping, phones));
    (made.lexicon, made.n_foreign) = Lexicon::pronounced(entries.into_iter().map(named), labels);
    made
}

/// Whether a word of a language model is a word, and not in the dictionary.
fn is_missing(word: &str) -> bool {
    !word.starts_with('<') && CmuDict::get().pronunciations(word).next().is_none()
}

/// The mapping whose phones are those of a model that does not have all phones of the dictionary.
fn fitting_mapping(labels: &LabelSet) -> Option<PhoneMapping> {
    let all = [PhoneMapping::Timit48, PhoneMapping::Timit39, PhoneMapping::Shared37];
    all.into_iter().find(|mapping| mapping.labels().symbols() == labels.symbols())
}

fn mapped(mapping: Option<PhoneMapping>, phones: Vec<&str>) -> Vec<&str> {
    match mapping {
        Some(mapping) => phones.into_iter().filter_map(|phone| mapping.map(phone).written()).collect(),
        None => phones,
    }
}

#[cfg(test)]
mod tests {
    use srf_text::cmudict::PHONES;
    use srf_text::labels::Units;
    use srf_text::lm::Limits;

    use super::*;

    const ARPA: &str =
        "\\data\\\nngram 1=6\n\\1-grams:\n-2 <unk>\n-1 <s>\n-1 </s>\n-1 speech\n-1 blorp\n-1 привет\n\\end\\\n";

    fn made(labels: &LabelSet, options: LexiconOptions) -> MadeLexicon {
        let language = NgramModel::read(ARPA.as_bytes(), Limits::default()).expect("the model is ours");
        from_cmudict(labels, &language, options)
    }

    fn names(lexicon: &Lexicon) -> Vec<&str> {
        (0..lexicon.n_words() as u32).filter_map(|word| lexicon.word(word)).collect()
    }

    #[test]
    fn words_come_from_the_dictionary_and_those_it_lacks_from_rules() {
        let labels = LabelSet::new(Units::Phones, PHONES).expect("phones differ");
        let all = made(&labels, LexiconOptions::default());
        assert_eq!(all.lexicon.n_pronunciations(), CmuDict::get().len() + 1);
        assert_eq!((all.n_by_rules, all.n_unpronounced, all.n_foreign, all.n_unknown), (1, 1, 0, 0));
        let known = made(&labels, LexiconOptions { known_only: true, no_rules: false });
        assert_eq!(names(&known.lexicon), ["speech", "blorp"]);
        assert_eq!(known.n_unknown + 1, all.lexicon.n_words() - 1);
        let listed = made(&labels, LexiconOptions { known_only: true, no_rules: true });
        assert_eq!((names(&listed.lexicon), listed.n_unpronounced), (vec!["speech"], 2));
    }

    #[test]
    fn phones_are_those_of_the_model() {
        let known_only = LexiconOptions { known_only: true, no_rules: true };
        let folded = made(&PhoneMapping::Shared37.labels(), LexiconOptions::default());
        assert_eq!((folded.n_foreign, folded.n_by_rules), (0, 1), "zh is sh and ao is aa there");
        let few = LabelSet::new(Units::Phones, ["s", "p", "iy"]).expect("phones differ");
        let none = made(&few, known_only);
        assert_eq!((none.lexicon.n_words(), none.n_foreign), (0, 1));
    }
}
