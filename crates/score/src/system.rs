//! A scored recogniser: its speakers, their aligned utterances and the sums over them.

use std::collections::HashMap;
use std::iter::Sum;
use std::ops::AddAssign;

use crate::align::{Alignment, Verdict};
use crate::formats::Labels;
use crate::word::Text;

/// Numbers of right and wrong words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the usual ones")]
pub struct Counts {
    pub correct: usize,
    pub substitutions: usize,
    pub deletions: usize,
    pub insertions: usize,
}

impl Counts {
    /// Words of the reference.
    pub fn n_reference(&self) -> usize {
        self.correct + self.substitutions + self.deletions
    }

    /// Words of the hypothesis.
    pub fn n_hypothesis(&self) -> usize {
        self.correct + self.substitutions + self.insertions
    }

    /// Wrong words of all kinds.
    pub fn n_errors(&self) -> usize {
        self.substitutions + self.deletions + self.insertions
    }

    /// Errors per word of the reference; `None` if the reference is empty.
    pub fn error_rate(&self) -> Option<f64> {
        (self.n_reference() > 0).then(|| self.n_errors() as f64 / self.n_reference() as f64)
    }
}

impl From<&Alignment> for Counts {
    fn from(alignment: &Alignment) -> Self {
        let mut counts = Self::default();
        for pair in &alignment.pairs {
            *match pair.verdict {
                Verdict::Correct => &mut counts.correct,
                Verdict::Substitution => &mut counts.substitutions,
                Verdict::Deletion => &mut counts.deletions,
                Verdict::Insertion => &mut counts.insertions,
            } += 1;
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.correct += other.correct;
        self.substitutions += other.substitutions;
        self.deletions += other.deletions;
        self.insertions += other.insertions;
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, counts| {
            sum += counts;
            sum
        })
    }
}

/// How an utterance was aligned, and which times and confidences its words have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Traits {
    pub characters: bool,
    pub case_sensitive: bool,
    pub reference_times: bool,
    pub hypothesis_times: bool,
    pub reference_confidences: bool,
    pub hypothesis_confidences: bool,
}

/// An aligned utterance.
#[derive(Clone, Debug, Default)]
pub struct ScoredUtterance {
    /// The id with its brackets.
    pub id: Text,
    /// The groups it belongs to: `<O,F>`.
    pub labels: Option<Text>,
    /// The recording it is from.
    pub file: Option<Text>,
    /// The channel it is from.
    pub channel: Option<Text>,
    /// Start and end of the reference, in seconds.
    pub times_s: Option<(f64, f64)>,
    /// Its position among all utterances that were aligned.
    pub sequence: usize,
    /// How it was aligned.
    pub traits: Traits,
    /// The pairs of words.
    pub alignment: Alignment,
}

impl ScoredUtterance {
    /// Its right and wrong words.
    pub fn counts(&self) -> Counts {
        Counts::from(&self.alignment)
    }

    /// Whether any word is wrong.
    pub fn has_errors(&self) -> bool {
        self.alignment.pairs.iter().any(|pair| pair.verdict != Verdict::Correct)
    }
}

/// All utterances of a speaker.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// The speaker's name.
    pub name: Text,
    /// In the order they were aligned.
    pub utterances: Vec<ScoredUtterance>,
    /// Sums over the utterances.
    pub counts: Counts,
    /// Number of utterances with an error.
    pub n_wrong: usize,
}

/// Names and settings as reports show them.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Heading {
    pub title: String,
    pub reference: String,
    pub hypothesis: String,
    pub created: String,
    pub fragments: bool,
    pub optional_words: bool,
}

/// A scored recogniser.
///
/// ```
/// use srf_score::{
///     Alignment, Counts, Heading, Pair, ScoredUtterance, Speaker, System, Text, Traits, Verdict, Word,
/// };
///
/// let right = Word::new(*b"yes");
/// let pair = Pair { reference: Some(right.clone()), hypothesis: Some(right), verdict: Verdict::Correct };
/// let utterance = ScoredUtterance {
///     id: Text::from(&b"(ann-1)"[..]),
///     traits: Traits { case_sensitive: true, ..Traits::default() },
///     alignment: Alignment { pairs: vec![pair] },
///     ..ScoredUtterance::default()
/// };
/// assert!(!utterance.has_errors());
/// let mut system = System::new(Heading { title: "mine".into(), ..Heading::default() });
/// system.add(&Text::from(&b"ann"[..]), utterance);
/// assert_eq!((system.n_utterances(), system.n_wrong(), system.in_sequence().len()), (1, 0, 1));
/// let Speaker { counts, .. } = &system.speakers[0];
/// let counts: &Counts = counts;
/// assert_eq!((counts.n_reference(), counts.n_hypothesis(), counts.n_errors()), (1, 1, 0));
///
/// ```
#[derive(Clone, Debug, Default)]
pub struct System {
    /// Names and settings.
    pub heading: Heading,
    /// In the order of their first utterances.
    pub speakers: Vec<Speaker>,
    /// Names of groups of utterances.
    pub labels: Labels,
    index: HashMap<Text, usize>,
}

impl System {
    /// A system without utterances.
    pub fn new(heading: Heading) -> Self {
        Self { heading, ..Self::default() }
    }

    pub(crate) fn n_utterances_of(&self, speaker: &Text) -> usize {
        self.index.get(speaker).map_or(0, |index| self.speakers[*index].utterances.len())
    }

    /// Adds an utterance of `speaker`.
    pub fn add(&mut self, speaker: &Text, utterance: ScoredUtterance) {
        let index = *self.index.entry(speaker.clone()).or_insert_with(|| {
            let (utterances, counts) = (Vec::new(), Counts::default());
            self.speakers.push(Speaker { name: speaker.clone(), utterances, counts, n_wrong: 0 });
            self.speakers.len() - 1
        });
        let speaker = &mut self.speakers[index];
        speaker.counts += utterance.counts();
        speaker.n_wrong += usize::from(utterance.has_errors());
        speaker.utterances.push(utterance);
    }

    /// All utterances, speaker by speaker.
    pub fn utterances(&self) -> impl Iterator<Item = &ScoredUtterance> {
        self.speakers.iter().flat_map(|speaker| &speaker.utterances)
    }

    /// The utterances in the order they were aligned, each with the index of its speaker and its number there from 0.
    pub fn in_sequence(&self) -> Vec<(usize, usize, &ScoredUtterance)> {
        let of = |(at, speaker): (usize, &'_ Speaker)| (0..speaker.utterances.len()).map(move |number| (at, number));
        let places = self.speakers.iter().enumerate().flat_map(of);
        let mut all: Vec<_> = places.map(|(at, number)| (at, number, &self.speakers[at].utterances[number])).collect();
        all.sort_by_key(|(.., utterance)| utterance.sequence);
        all
    }

    /// Sums over all speakers.
    pub fn counts(&self) -> Counts {
        self.speakers.iter().map(|speaker| speaker.counts).sum()
    }

    /// Number of utterances.
    pub fn n_utterances(&self) -> usize {
        self.speakers.iter().map(|speaker| speaker.utterances.len()).sum()
    }

    /// Number of utterances with an error.
    pub fn n_wrong(&self) -> usize {
        self.speakers.iter().map(|speaker| speaker.n_wrong).sum()
    }
}
