//! Splits a corpus that comes in one piece into `train`, `dev` and `test`, by speakers.
//!
//! No speaker is in two parts: what a model has learned of a voice must not help it on the test.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;

use super::{Corpus, DEV, TEST, TRAIN, Utterance, files};
use crate::seed::generator;

/// Shares of the speakers, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    dev: f64,
    test: f64,
}

/// Shares that are none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` does not split a corpus, expected percentages of train, dev and test such as `80/10/10`")]
#[allow(missing_docs)] // the messages say what the fields are
pub struct ParseSharesError {
    pub found: String,
}

impl FromStr for Shares {
    type Err = ParseSharesError;

    fn from_str(text: &str) -> Result<Self, ParseSharesError> {
        let numbers: Result<Vec<f64>, _> = text.split('/').map(|share| share.trim().parse::<f64>()).collect();
        match numbers.as_deref() {
            Ok(&[train, dev, test])
                if [train, dev, test].iter().all(|share| 0.0 <= *share)
                    && (train + dev + test - 100.0).abs() < 1e-6 =>
            {
                Ok(Self { dev, test })
            }
            _ => Err(ParseSharesError { found: text.to_owned() }),
        }
    }
}

/// Where the name of a speaker is to be found, for corpora that do not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpeakerFrom {
    /// The name of the folder that many levels above the recording; 1 is the folder it lies in.
    Path(usize),
    /// The part of the id before the first of these separators.
    Id(String),
}

/// A place of speakers that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{found}` does not say where speakers are named, expected `path:N` (the folder N levels up) or `id:SEPARATOR`"
)]
#[allow(missing_docs)] // the message says what the field is
pub struct ParseSpeakerFromError {
    pub found: String,
}

impl FromStr for SpeakerFrom {
    type Err = ParseSpeakerFromError;

    fn from_str(text: &str) -> Result<Self, ParseSpeakerFromError> {
        match text.split_once(':') {
            Some(("path", n_up)) if n_up.parse().is_ok_and(|n: usize| (1..100).contains(&n)) => {
                Ok(Self::Path(n_up.parse().unwrap_or(1)))
            }
            Some(("id", separator)) if !separator.is_empty() => Ok(Self::Id(separator.to_owned())),
            _ => Err(ParseSpeakerFromError { found: text.to_owned() }),
        }
    }
}

impl SpeakerFrom {
    /// Names the speakers of all utterances; where there is no such folder or separator, the speaker stays.
    pub(crate) fn apply(&self, corpus: &mut Corpus) {
        for utterance in corpus.utterances_mut() {
            let name = match self {
                Self::Path(n_up) => files::ancestor_name(&utterance.audio.path, *n_up),
                Self::Id(separator) => utterance.id.split_once(separator).map_or("", |(name, _)| name).to_owned(),
            };
            if !name.is_empty() {
                utterance.speaker = name;
            }
        }
    }
}

/// How to split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SplitConfig {
    /// How many speakers go to each part; drawn by the seed.
    pub shares: Option<Shares>,
    /// Speakers that go to `dev` by name.
    pub dev_speakers: Vec<String>,
    /// Speakers that go to `test` by name.
    pub test_speakers: Vec<String>,
    /// Which of all possible draws.
    pub seed: u64,
    /// Names the speakers before the corpus is split.
    pub speaker_from: Option<SpeakerFrom>,
}

/// Why a corpus cannot be split as asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum SplitError {
    #[error("speaker `{speaker}` is not in the corpus of {n_speakers} speakers")]
    UnknownSpeaker { speaker: String, n_speakers: usize },
    #[error("the corpus has {found} speakers, too few for {expected} parts without overlap")]
    TooFewSpeakers { found: usize, expected: usize },
}

impl SplitConfig {
    /// Whether anything is to be split.
    pub fn is_asked(&self) -> bool {
        self.shares.is_some() || !self.dev_speakers.is_empty() || !self.test_speakers.is_empty()
    }

    /// Splits `corpus`, all of its parts taken together.
    pub fn split(&self, corpus: Corpus) -> Result<Corpus, SplitError> {
        let speakers: BTreeSet<&str> = corpus.utterances().map(|utterance| utterance.speaker.as_str()).collect();
        let part_of = self.assign(&speakers)?;
        let [mut train, mut dev, mut test]: [Vec<Utterance>; 3] = Default::default();
        for utterance in corpus.parts.into_iter().flat_map(|part| part.utterances) {
            match part_of.get(&utterance.speaker).copied() {
                Some(DEV) => dev.push(utterance),
                Some(TEST) => test.push(utterance),
                _ => train.push(utterance),
            }
        }
        Ok(Corpus::of_parts([(TRAIN, train), (DEV, dev), (TEST, test)]))
    }

    /// The part of each speaker who is not in `train`.
    fn assign(&self, speakers: &BTreeSet<&str>) -> Result<HashMap<String, &'static str>, SplitError> {
        let named = |names: &'_ [String], part: &'static str| {
            names.iter().map(move |name| (name.clone(), part)).collect::<Vec<_>>()
        };
        let mut part_of: HashMap<String, &'static str> = named(&self.dev_speakers, DEV).into_iter().collect();
        part_of.extend(named(&self.test_speakers, TEST));
        if let Some(speaker) = part_of.keys().find(|speaker| !speakers.contains(speaker.as_str())) {
            return Err(SplitError::UnknownSpeaker { speaker: speaker.clone(), n_speakers: speakers.len() });
        }
        if let Some(shares) = self.shares {
            let mut free: Vec<&str> =
                speakers.iter().copied().filter(|speaker| !part_of.contains_key(*speaker)).collect();
            generator(self.seed, &[1]).shuffle(&mut free);
            let (n_dev, n_test) = shares.counts(free.len())?;
            part_of.extend(free[..n_dev].iter().map(|speaker| ((*speaker).to_owned(), DEV)));
            part_of.extend(free[n_dev..n_dev + n_test].iter().map(|speaker| ((*speaker).to_owned(), TEST)));
        }
        Ok(part_of)
    }
}

impl Shares {
    /// Speakers of `dev` and `test` among `n`: nearest to the share, and one where the share is not nothing.
    pub(crate) fn counts(self, n: usize) -> Result<(usize, usize), SplitError> {
        let count = |share: f64| if share == 0.0 { 0 } else { ((n as f64 * share / 100.0).round() as usize).max(1) };
        let (n_dev, n_test) = (count(self.dev), count(self.test));
        let has_train = self.dev + self.test < 100.0;
        let n_parts = usize::from(has_train) + usize::from(n_dev > 0) + usize::from(n_test > 0);
        if n < n_dev + n_test + usize::from(has_train) {
            return Err(SplitError::TooFewSpeakers { found: n, expected: n_parts });
        }
        Ok((n_dev, n_test))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn corpus(n_speakers: usize, n_each: usize) -> Corpus {
        let utterances = (0..n_speakers * n_each).map(|index| {
            let speaker = format!("s{}", index % n_speakers);
            Utterance { id: format!("u{index}"), speaker, ..Utterance::default() }
        });
        Corpus::of_one(TRAIN, utterances.collect())
    }

    proptest! {
        #[test]
        fn nobody_is_in_two_parts_and_nothing_is_lost(n_speakers in 3usize..60, seed in any::<u64>()) {
            let config = SplitConfig { shares: Some("70/20/10".parse().unwrap()), seed, ..SplitConfig::default() };
            let split = config.split(corpus(n_speakers, 3)).unwrap();
            prop_assert_eq!(split.n_utterances(), n_speakers * 3);
            let speakers = |part: &str| -> BTreeSet<String> {
                split.part(part).unwrap().utterances.iter().map(|u| u.speaker.clone()).collect()
            };
            let (train, dev, test) = (speakers(TRAIN), speakers(DEV), speakers(TEST));
            prop_assert_eq!(train.len() + dev.len() + test.len(), n_speakers);
            prop_assert_eq!(dev.len(), ((n_speakers as f64 * 0.2).round() as usize).max(1));
            prop_assert_eq!(config.split(corpus(n_speakers, 3)).unwrap(), split);
        }
    }

    #[test]
    fn named_speakers_go_where_they_are_sent() {
        let config = SplitConfig { test_speakers: vec!["s3".to_owned()], ..SplitConfig::default() };
        let split = config.split(corpus(5, 2)).unwrap();
        assert_eq!(split.part(TEST).unwrap().utterances.len(), 2);
        assert_eq!(split.part(TRAIN).unwrap().utterances.len(), 8);
        let config = SplitConfig { test_speakers: vec!["x".to_owned()], ..SplitConfig::default() };
        assert_eq!(
            config.split(corpus(5, 2)).unwrap_err().to_string(),
            "speaker `x` is not in the corpus of 5 speakers"
        );
    }

    #[test]
    fn speakers_are_named_after_folders_or_ids() {
        let named = |from: &str, id: &str, path: &str| {
            let audio = crate::corpus::AudioPart { path: path.into(), ..Default::default() };
            let utterance = Utterance { id: id.to_owned(), speaker: id.to_owned(), audio, ..Utterance::default() };
            let mut corpus = Corpus::of_one(TRAIN, vec![utterance]);
            from.parse::<SpeakerFrom>().unwrap().apply(&mut corpus);
            corpus.utterances().next().unwrap().speaker.clone()
        };
        assert_eq!(named("path:1", "u", "/d/ann/one/x.wav"), "one");
        assert_eq!(named("path:2", "u", "/d/ann/one/x.wav"), "ann");
        assert_eq!(named("path:9", "u", "/d/x.wav"), "u");
        assert_eq!(named("id:-", "ann-one-1", "x.wav"), "ann");
        assert_eq!(named("id:_", "ann-one-1", "x.wav"), "ann-one-1");
        for bad in ["", "path", "path:0", "path:x", "id:", "folder:1"] {
            assert!(bad.parse::<SpeakerFrom>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_shares_are_refused() {
        for text in ["", "80/10", "80/10/20", "110/-10/0", "a/b/c"] {
            assert!(text.parse::<Shares>().is_err(), "{text}");
        }
        let config = SplitConfig { shares: Some("80/10/10".parse().unwrap()), ..SplitConfig::default() };
        assert!(matches!(config.split(corpus(2, 1)), Err(SplitError::TooFewSpeakers { found: 2, expected: 3 })));
    }
}
