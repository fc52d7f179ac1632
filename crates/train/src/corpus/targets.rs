//! Targets: turns sentences and phones into texts in one label set, which a model is to write.

use std::collections::BTreeMap;

use srf_text::cmudict;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::pieces::{self, PiecesError};
use srf_text::labels::timit::{Folded, PhoneSet};
use srf_text::labels::{LabelSet, Units, wsj};

use super::normalize::normalize;
use super::problem::{Fault, Problems};
use super::pronounce::{Coverage, Lexicon, Pronouncer};
use super::{Corpus, TRAIN, Timed, Utterance};

pub use super::normalize::{Case, Dropped};

/// Which labels a model has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Labels {
    /// All that the training part uses; with a lexicon, all phones of the lexicon.
    #[default]
    OfTraining,
    /// TIMIT's phones, folded.
    Timit(PhoneSet),
    /// Phones of TIMIT or of CMU's dictionary, made comparable.
    Mapped(PhoneMapping),
    /// The 32 classes of WSJ; what lies outside is deleted.
    Wsj,
    /// These.
    Given(LabelSet),
}

/// Few enough for a small corpus, enough that frequent words are one piece.
pub const DEFAULT_PIECES: usize = 500;

/// How texts are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetConfig {
    /// Phones, characters, words or pieces of words.
    pub units: Units,
    /// The label set.
    pub labels: Labels,
    /// How many pieces are learned from the training part.
    pub n_pieces: usize,
    /// Makes phones of the words; otherwise phones are those of the corpus.
    pub lexicon: Option<Lexicon>,
    /// Whether silences that follow each other become one; people who report results keep them.
    pub merge_silences: bool,
    /// Whether `AH0` and `AH1` stay two phones.
    pub keep_stress: bool,
    /// Of characters and words.
    pub case: Case,
    /// Whether only letters, digits, their marks, apostrophes and spaces stay; hyphens become spaces.
    pub drop_punctuation: bool,
}

impl TargetConfig {
    /// Plain texts in these units, with the labels of the training part.
    pub fn new(units: Units) -> Self {
        Self {
            units,
            labels: Labels::OfTraining,
            n_pieces: DEFAULT_PIECES,
            lexicon: None,
            merge_silences: false,
            keep_stress: false,
            case: Case::Keep,
            drop_punctuation: false,
        }
    }
}

/// Labels that some text had and the set does not, with their number.
pub type Foreign = BTreeMap<String, usize>;

/// What the targets of a corpus came to.
pub(crate) struct Applied {
    pub(crate) labels: LabelSet,
    pub(crate) out_of_set: Foreign,
    pub(crate) dropped: Dropped,
    pub(crate) coverage: Option<Coverage>,
}

impl TargetConfig {
    /// Gives every utterance its text; those without one are reported and left out.
    pub(crate) fn apply(&self, corpus: &mut Corpus, problems: &mut Problems) -> Result<Applied, PiecesError> {
        let (mut out_of_set, mut dropped) = (Foreign::new(), Dropped::new());
        let mut pronouncer = self.lexicon.map(Pronouncer::new);
        for utterance in corpus.utterances_mut() {
            utterance.text = match (self.units, &mut pronouncer) {
                (Units::Phones, Some(pronouncer)) => self.pronounced(utterance, pronouncer, &mut dropped, problems),
                (Units::Phones, None) => self.phone_text(utterance),
                _ if self.labels == Labels::Wsj => wsj_text(&utterance.sentence, &mut out_of_set),
                _ => normalize(&utterance.sentence, self.case, self.drop_punctuation, &mut dropped),
            };
        }
        for part in &mut corpus.parts {
            part.utterances.retain(|utterance| self.has_text(utterance, problems));
        }
        corpus.parts.retain(|part| !part.utterances.is_empty());
        let labels = self.label_set(corpus)?;
        for utterance in corpus.utterances() {
            for label in labels.foreign(&utterance.text) {
                *out_of_set.entry(label.into_owned()).or_insert(0) += 1;
            }
        }
        let coverage = pronouncer.map(|pronouncer| pronouncer.coverage());
        Ok(Applied { labels, out_of_set, dropped, coverage })
    }

    /// The phones of a sentence by the lexicon; empty, and reported, where a word cannot be pronounced.
    fn pronounced(
        &self,
        utterance: &mut Utterance,
        pronouncer: &mut Pronouncer,
        dropped: &mut Dropped,
        problems: &mut Problems,
    ) -> String {
        let sentence = normalize(&utterance.sentence, Case::Lower, true, dropped);
        let mut phones = Vec::new();
        for word in sentence.split(' ').filter(|word| !word.is_empty()) {
            let Some(of_word) = pronouncer.phones(word) else {
                let fault = Fault::Unpronounceable { id: utterance.id.clone(), word: word.to_owned() };
                problems.add(&utterance.audio.path, None, fault);
                return String::new();
            };
            phones.extend(of_word.into_iter().filter_map(|phone| self.phone(phone)));
        }
        // The phones of the corpus, if any, are of another set.
        (utterance.phones, utterance.phone_seq) = (Vec::new(), Vec::new());
        phones.join(" ")
    }

    fn has_text(&self, utterance: &Utterance, problems: &mut Problems) -> bool {
        // A lexicon reports what it cannot pronounce.
        let is_reported = self.lexicon.is_some() && !utterance.sentence.is_empty();
        if utterance.text.is_empty() && !is_reported {
            let id = utterance.id.clone();
            let fault = if self.units == Units::Phones { Fault::NoPhones { id } } else { Fault::EmptyText { id } };
            problems.add(&utterance.audio.path, None, fault);
        }
        !utterance.text.is_empty()
    }

    fn label_set(&self, corpus: &Corpus) -> Result<LabelSet, PiecesError> {
        match &self.labels {
            Labels::Timit(phones) => Ok(phones.labels()),
            Labels::Mapped(mapping) => Ok(mapping.labels()),
            Labels::Wsj => Ok(wsj::labels()),
            Labels::Given(labels) => Ok(labels.clone()),
            Labels::OfTraining if self.lexicon.is_some() => Ok(LabelSet::new(self.units, cmudict::PHONES)?),
            Labels::OfTraining => {
                let train = corpus.part(TRAIN).or(corpus.parts.first());
                let utterances = train.map(|part| part.utterances.as_slice()).unwrap_or_default();
                let texts = utterances.iter().map(|utterance| utterance.text.as_str());
                match self.units {
                    Units::Pieces => pieces::learn(texts, self.n_pieces),
                    units => Ok(LabelSet::of_texts(units, texts)?),
                }
            }
        }
    }

    /// Folds the phones, with and without times, and writes them.
    fn phone_text(&self, utterance: &mut Utterance) -> String {
        let timed = std::mem::take(&mut utterance.phones);
        utterance.phones = self.merged(
            timed.into_iter().filter_map(|phone| Some(Timed { name: self.phone(&phone.name)?, ..phone })).collect(),
        );
        if !utterance.phones.is_empty() {
            utterance.phone_seq.clear();
            return join(utterance.phones.iter().map(|phone| phone.name.as_str()));
        }
        utterance.phone_seq = utterance.phone_seq.iter().filter_map(|phone| self.phone(phone)).collect();
        join(std::mem::take(&mut utterance.phone_seq).iter().map(String::as_str))
    }

    /// What a phone is called in the set; none for those it drops. Unknown ones stay, to be told.
    fn phone(&self, phone: &str) -> Option<String> {
        let phone = if self.keep_stress { phone } else { without_stress(phone) };
        let folded = match self.labels {
            Labels::Timit(set) => set.fold(phone),
            Labels::Mapped(mapping) => mapping.map(phone),
            Labels::OfTraining | Labels::Wsj | Labels::Given(_) => return Some(phone.to_owned()),
        };
        match folded {
            Folded::To(folded) => Some(folded.to_owned()),
            Folded::Dropped => None,
            Folded::Unknown => Some(phone.to_owned()),
        }
    }

    fn merged(&self, phones: Vec<Timed>) -> Vec<Timed> {
        let mut merged: Vec<Timed> = Vec::with_capacity(phones.len());
        for phone in phones {
            match merged.last_mut() {
                Some(last) if self.merge_silences && phone.name == "sil" && last.name == "sil" => {
                    last.end_s = phone.end_s;
                }
                _ => merged.push(phone),
            }
        }
        merged
    }
}

fn wsj_text(sentence: &str, out_of_set: &mut Foreign) -> String {
    let (text, dropped) = wsj::to_labels(sentence);
    for c in dropped {
        *out_of_set.entry(c.to_string()).or_insert(0) += 1;
    }
    text
}

fn join<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    labels.collect::<Vec<_>>().join(" ")
}

/// `AH` of `AH0`, `AH1` and `AH2`: the vowels of the CMU dictionary carry their stress as a digit.
fn without_stress(phone: &str) -> &str {
    let vowel = phone.strip_suffix(['0', '1', '2']).unwrap_or(phone);
    let is_arpabet = vowel.len() == 2 && vowel.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_arpabet { vowel } else { phone }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utterance(sentence: &str, phones: &[&str]) -> Utterance {
        let timed = phones.iter().enumerate().map(|(index, name)| Timed {
            start_s: index as f64,
            end_s: index as f64 + 1.0,
            name: (*name).to_owned(),
        });
        Utterance { id: "u".to_owned(), sentence: sentence.to_owned(), phones: timed.collect(), ..Utterance::default() }
    }

    #[test]
    fn pieces_are_learned_from_the_training_part() {
        let config = TargetConfig { n_pieces: 9, ..TargetConfig::new(Units::Pieces) };
        let (text, foreign) = text_of(&config, utterance("low lower lowest", &[]));
        assert_eq!((text.as_str(), foreign.len()), ("low lower lowest", 0));
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance("low lower lowest", &[])]);
        let mut problems = Problems::default();
        let labels = config.apply(&mut corpus, &mut problems).unwrap().labels;
        assert_eq!(labels.symbols().len(), 9);
        assert!(TargetConfig { n_pieces: 3, ..config }.apply(&mut corpus, &mut problems).is_err());
    }

    fn text_of(config: &TargetConfig, utterance: Utterance) -> (String, Foreign) {
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance]);
        let mut problems = Problems::default();
        let foreign = config.apply(&mut corpus, &mut problems).unwrap().out_of_set;
        let text = corpus.utterances().next().map(|utterance| utterance.text.clone()).unwrap_or_default();
        (text, foreign)
    }

    #[test]
    fn phones_fold_and_silences_stay_unless_merged() {
        let mut config = TargetConfig { labels: Labels::Timit(PhoneSet::Score39), ..TargetConfig::new(Units::Phones) };
        let phones = ["h#", "tcl", "t", "q", "ax", "xx"];
        let (text, foreign) = text_of(&config, utterance("", &phones));
        assert_eq!(text, "sil sil t ah xx");
        assert_eq!(foreign, Foreign::from([("xx".to_owned(), 1)]));
        config.merge_silences = true;
        assert_eq!(text_of(&config, utterance("", &phones)).0, "sil t ah xx");
    }

    #[test]
    fn stress_marks_go_and_other_digits_stay() {
        let mut utterance = utterance("", &[]);
        utterance.phone_seq = ["AH0", "T", "a1", "AXR1"].map(String::from).to_vec();
        let mut config = TargetConfig::new(Units::Phones);
        assert_eq!(text_of(&config, utterance.clone()).0, "AH T a1 AXR1");
        config.keep_stress = true;
        assert_eq!(text_of(&config, utterance).0, "AH0 T a1 AXR1");
    }

    #[test]
    fn case_and_punctuation_are_as_asked() {
        let mut config = TargetConfig { case: Case::Upper, drop_punctuation: true, ..TargetConfig::new(Units::Chars) };
        assert_eq!(text_of(&config, utterance("Don’t  stop, Zoë!", &[])).0, "DON'T STOP ZOË");
        config.labels = Labels::Wsj;
        let (text, foreign) = text_of(&config, utterance("MR. <NOISE>", &[]));
        assert_eq!(text, "MR n");
        assert_eq!(foreign, Foreign::from([(".".to_owned(), 1)]));
    }

    #[test]
    fn words_become_the_phones_of_the_dictionary_and_the_label_set_is_fixed() {
        let lexicon = Some(Lexicon::CmuDict);
        let config = TargetConfig { lexicon, ..TargetConfig::new(Units::Phones) };
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance("The well-known “Speech”, blorp?", &["h#", "aa"])]);
        let mut problems = Problems::default();
        let applied = config.apply(&mut corpus, &mut problems).unwrap();
        let utterance = corpus.utterances().next().unwrap();
        assert!(utterance.text.starts_with("dh ah w eh l n ow n s p iy ch b l "), "{}", utterance.text);
        assert_eq!((utterance.phones.len(), applied.labels.symbols().len()), (0, 39));
        let coverage = applied.coverage.unwrap();
        assert_eq!((coverage.n_words, coverage.n_by_rules, coverage.n_types_by_rules), (5, 1, 1));
        assert_eq!(applied.dropped.len(), 4);
        let mapped = TargetConfig { labels: Labels::Mapped(PhoneMapping::Shared37), ..config };
        assert_eq!(text_of(&mapped, super::tests::utterance("measure", &[])).0, "m eh sh er");
    }

    #[test]
    fn a_word_that_cannot_be_pronounced_is_reported() {
        let config = TargetConfig { lexicon: Some(Lexicon::CmuDict), ..TargetConfig::new(Units::Phones) };
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance("say привет", &[]), utterance("say", &[])]);
        let mut problems = Problems::default();
        config.apply(&mut corpus, &mut problems).unwrap();
        assert_eq!(corpus.n_utterances(), 1);
        assert!(problems.0[0].to_string().ends_with("utterance `u`: `привет` cannot be pronounced"));
    }

    #[test]
    fn an_utterance_without_text_is_told_and_left_out() {
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance("", &[]), utterance("a", &[])]);
        let mut problems = Problems::default();
        TargetConfig::new(Units::Chars).apply(&mut corpus, &mut problems).unwrap();
        assert_eq!((corpus.n_utterances(), problems.0.len()), (1, 1));
        assert!(problems.0[0].to_string().ends_with("utterance `u` has no text"));
    }
}
