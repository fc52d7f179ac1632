//! Everything known about one recogniser on one test: alignments in, speakers and sums out.

use std::collections::HashMap;

use super::align::{Alignment, Verdict};
use super::counts::Counts;
use super::labels::Labels;
use super::word::Text;

/// What was switched on when an utterance was aligned, and what is known of its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not the states of one thing")]
pub struct Traits {
    /// Characters were compared.
    pub characters: bool,
    /// Capitals mattered.
    pub case_sensitive: bool,
    /// Words of the reference have times.
    pub reference_times: bool,
    /// Words of the hypothesis have times.
    pub hypothesis_times: bool,
    /// Words of the reference have confidences.
    pub reference_confidences: bool,
    /// Words of the hypothesis have confidences.
    pub hypothesis_confidences: bool,
}

/// An aligned utterance.
#[derive(Clone, Debug, Default)]
pub struct Utterance {
    /// The id with its brackets.
    pub id: Text,
    /// The groups it belongs to.
    pub labels: Option<Text>,
    /// The recording it is from.
    pub file: Option<Text>,
    /// The channel it is from.
    pub channel: Option<Text>,
    /// When the reference begins and ends, in seconds.
    pub times_s: Option<(f64, f64)>,
    /// Its place among all that were aligned.
    pub sequence: usize,
    /// What is known of its words.
    pub traits: Traits,
    /// The pairs of words.
    pub alignment: Alignment,
}

impl Utterance {
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
    /// Who.
    pub name: Text,
    /// In the order they were aligned.
    pub utterances: Vec<Utterance>,
    /// Right and wrong words of all of them.
    pub counts: Counts,
    /// How many have an error.
    pub n_wrong: usize,
}

/// How names and settings are shown in reports.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// What the recogniser is called.
    pub title: String,
    /// The reference file as it was named.
    pub reference: String,
    /// The hypothesis file as it was named.
    pub hypothesis: String,
    /// When it was scored.
    pub created: String,
    /// Whether fragments matched.
    pub fragments: bool,
    /// Whether optional words could be left out.
    pub optional_words: bool,
}

/// A scored recogniser.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// Names and settings.
    pub heading: Heading,
    /// In the order they first spoke.
    pub speakers: Vec<Speaker>,
    /// Names of groups of utterances.
    pub labels: Labels,
    index: HashMap<Text, usize>,
}

impl System {
    /// A recogniser of which nothing was scored yet.
    pub fn new(heading: Heading) -> Self {
        Self { heading, ..Self::default() }
    }

    /// How many utterances of `speaker` there are.
    pub(crate) fn n_utterances_of(&self, speaker: &Text) -> usize {
        self.index.get(speaker).map_or(0, |index| self.speakers[*index].utterances.len())
    }

    /// Adds an utterance of `speaker`.
    pub fn add(&mut self, speaker: &Text, utterance: Utterance) {
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
    pub fn utterances(&self) -> impl Iterator<Item = &Utterance> {
        self.speakers.iter().flat_map(|speaker| &speaker.utterances)
    }

    /// Right and wrong words of everybody.
    pub fn counts(&self) -> Counts {
        self.speakers.iter().map(|speaker| speaker.counts).sum()
    }

    /// How many utterances there are.
    pub fn n_utterances(&self) -> usize {
        self.speakers.iter().map(|speaker| speaker.utterances.len()).sum()
    }

    /// How many utterances have an error.
    pub fn n_wrong(&self) -> usize {
        self.speakers.iter().map(|speaker| speaker.n_wrong).sum()
    }
}
