//! Targets: turns sentences and phones into texts in one label set, which a model is to write.

use std::collections::BTreeMap;

use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::timit::{Folded, PhoneSet};
use srf_text::labels::{LabelSet, LabelSetError, Units, wsj};

use super::problem::{Fault, Problems};
use super::{Corpus, TRAIN, Timed, Utterance};

/// What becomes of upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Case {
    /// As written.
    #[default]
    Keep,
    /// All lower.
    Lower,
    /// All upper.
    Upper,
}

/// Which labels a model has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Labels {
    /// All that the training part uses.
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

/// How texts are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetConfig {
    /// Phones, characters or words.
    pub units: Units,
    /// The label set.
    pub labels: Labels,
    /// Whether silences that follow each other become one; people who report results keep them.
    pub merge_silences: bool,
    /// Whether `AH0` and `AH1` stay two phones.
    pub keep_stress: bool,
    /// Of characters and words.
    pub case: Case,
    /// Whether everything but letters, digits, apostrophes and spaces goes.
    pub drop_punctuation: bool,
}

impl TargetConfig {
    /// Plain texts in these units, with the labels of the training part.
    pub fn new(units: Units) -> Self {
        Self {
            units,
            labels: Labels::OfTraining,
            merge_silences: false,
            keep_stress: false,
            case: Case::Keep,
            drop_punctuation: false,
        }
    }
}

/// Labels that some text had and the set does not, with their number.
pub type Foreign = BTreeMap<String, usize>;

impl TargetConfig {
    /// Gives every utterance its text; those without one are told and left out.
    pub(crate) fn apply(
        &self,
        corpus: &mut Corpus,
        problems: &mut Problems,
    ) -> Result<(LabelSet, Foreign), LabelSetError> {
        let mut foreign = Foreign::new();
        for utterance in corpus.utterances_mut() {
            utterance.text = match self.units {
                Units::Phones => self.phone_text(utterance),
                Units::Chars | Units::Words => self.word_text(&utterance.sentence, &mut foreign),
            };
        }
        for part in &mut corpus.parts {
            part.utterances.retain(|utterance| self.has_text(utterance, problems));
        }
        corpus.parts.retain(|part| !part.utterances.is_empty());
        let labels = self.label_set(corpus)?;
        for utterance in corpus.utterances() {
            for label in labels.foreign(&utterance.text) {
                *foreign.entry(label.to_owned()).or_insert(0) += 1;
            }
        }
        Ok((labels, foreign))
    }

    fn has_text(&self, utterance: &Utterance, problems: &mut Problems) -> bool {
        if utterance.text.is_empty() {
            let id = utterance.id.clone();
            let fault = if self.units == Units::Phones { Fault::NoPhones { id } } else { Fault::EmptyText { id } };
            problems.add(&utterance.audio.path, None, fault);
        }
        !utterance.text.is_empty()
    }

    fn label_set(&self, corpus: &Corpus) -> Result<LabelSet, LabelSetError> {
        match &self.labels {
            Labels::Timit(phones) => Ok(phones.labels()),
            Labels::Mapped(mapping) => Ok(mapping.labels()),
            Labels::Wsj => Ok(wsj::labels()),
            Labels::Given(labels) => Ok(labels.clone()),
            Labels::OfTraining => {
                let train = corpus.part(TRAIN).or(corpus.parts.first());
                let utterances = train.map(|part| part.utterances.as_slice()).unwrap_or_default();
                LabelSet::of_texts(self.units, utterances.iter().map(|utterance| utterance.text.as_str()))
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

    fn word_text(&self, sentence: &str, foreign: &mut Foreign) -> String {
        if self.labels == Labels::Wsj {
            let (text, dropped) = wsj::to_labels(sentence);
            for c in dropped {
                *foreign.entry(c.to_string()).or_insert(0) += 1;
            }
            return text;
        }
        let text = match self.case {
            Case::Keep => sentence.to_owned(),
            Case::Lower => sentence.to_lowercase(),
            Case::Upper => sentence.to_uppercase(),
        };
        let is_kept = |c: &char| !self.drop_punctuation || c.is_alphanumeric() || c.is_whitespace() || *c == '\'';
        let text: String = text.replace('’', "'").chars().filter(is_kept).collect();
        join(text.split_whitespace())
    }
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

    fn text_of(config: &TargetConfig, utterance: Utterance) -> (String, Foreign) {
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance]);
        let mut problems = Problems::default();
        let (_, foreign) = config.apply(&mut corpus, &mut problems).unwrap();
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
    fn an_utterance_without_text_is_told_and_left_out() {
        let mut corpus = Corpus::of_one(TRAIN, vec![utterance("", &[]), utterance("a", &[])]);
        let mut problems = Problems::default();
        TargetConfig::new(Units::Chars).apply(&mut corpus, &mut problems).unwrap();
        assert_eq!((corpus.n_utterances(), problems.0.len()), (1, 1));
        assert!(problems.0[0].to_string().ends_with("utterance `u` has no text"));
    }
}
