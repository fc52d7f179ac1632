//! Corpora: readers for the usual kinds, and what turns them into manifests and labels to train on.
//!
//! Each kind of corpus has a reader that returns `(Corpus, Vec<Problem>)` and goes on to the end whatever it meets.
//! [`prepare`] turns a corpus into manifests and labels to train on, [`validate`] checks a manifest against its audio.

mod files;
pub(crate) mod normalize;

pub mod commonvoice;
pub mod folder;
pub mod harpervalley;
pub mod kaldi;
pub mod librispeech;
pub mod manifest;
pub mod phn;
pub mod prepare;
pub mod problem;
pub mod pronounce;
pub mod split;
pub mod summary;
pub mod targets;
pub mod textgrid;
pub mod timit;
pub mod validate;
pub mod wsj;

use std::path::PathBuf;

pub use self::problem::{Fault, Problem};

/// Where the sound of an utterance is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AudioPart {
    /// The file.
    pub path: PathBuf,
    /// Where in the file the utterance starts; absent when it is the whole file.
    pub offset_s: Option<f64>,
    /// How long it is; absent until measured.
    pub duration_s: Option<f64>,
    /// The channel, counted from 0; absent for the mean of all.
    pub channel: Option<usize>,
}

impl AudioPart {
    /// The part as a reader of recordings wants it.
    pub fn selection(&self) -> srf_audio::Selection {
        srf_audio::Selection {
            channel: self.channel.map_or(srf_audio::Channel::Mix, srf_audio::Channel::Only),
            start_s: self.offset_s.unwrap_or(0.0),
            // Without an offset the utterance is the whole recording, whatever its length was rounded to.
            end_s: self.offset_s.zip(self.duration_s).map(|(offset_s, duration_s)| offset_s + duration_s),
        }
    }
}

/// A phone or word with its time, in seconds from the start of the utterance.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Where it starts.
    pub start_s: f64,
    /// Where it ends.
    pub end_s: f64,
    /// What it is.
    pub name: String,
}

/// Somebody saying something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utterance {
    /// Unique in its corpus.
    pub id: String,
    /// Who says it.
    pub speaker: String,
    /// The sound.
    pub audio: AudioPart,
    /// What a model is to write, in the units of the label set; empty until the targets are chosen.
    pub text: String,
    /// What is said, in words.
    pub sentence: String,
    /// The phones without times, where only these are known.
    pub phone_seq: Vec<String>,
    /// The phones with times.
    pub phones: Vec<Timed>,
    /// The words with times.
    pub words: Vec<Timed>,
}

impl Utterance {
    /// The utterance as one of a list to be heard.
    pub fn to_be_heard(&self) -> srf_audio::bulk::Utterance {
        let Self { id, speaker, audio, .. } = self;
        srf_audio::bulk::Utterance {
            id: id.clone(),
            speaker: speaker.clone(),
            path: audio.path.clone(),
            selection: audio.selection(),
        }
    }
}

/// A part of a corpus, such as `train` or `dev`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its name, and that of its manifest.
    pub name: String,
    /// Its utterances, in the order of the corpus.
    pub utterances: Vec<Utterance>,
}

/// What a reader found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corpus {
    /// Its parts; none is empty.
    pub parts: Vec<Part>,
}

/// The part of corpora that come without parts.
pub const TRAIN: &str = "train";
/// Where models are compared during training.
pub const DEV: &str = "dev";
/// Where the result is measured.
pub const TEST: &str = "test";

impl Corpus {
    /// A corpus of one part.
    pub fn of_one(name: &str, utterances: Vec<Utterance>) -> Self {
        Self::of_parts([(name, utterances)])
    }

    /// A corpus of the parts that have utterances.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, Vec<Utterance>)>) -> Self {
        let parts = parts.into_iter().map(|(name, utterances)| Part { name: name.to_owned(), utterances });
        Self { parts: parts.filter(|part| !part.utterances.is_empty()).collect() }
    }

    /// The part of this name.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// All utterances.
    pub fn utterances(&self) -> impl Iterator<Item = &Utterance> {
        self.parts.iter().flat_map(|part| &part.utterances)
    }

    /// All utterances, to be changed.
    pub fn utterances_mut(&mut self) -> impl Iterator<Item = &mut Utterance> {
        self.parts.iter_mut().flat_map(|part| &mut part.utterances)
    }

    /// How many utterances it has.
    pub fn n_utterances(&self) -> usize {
        self.parts.iter().map(|part| part.utterances.len()).sum()
    }
}

/// Somebody who watches a long job; the library reports, the program draws.
pub trait Watcher: Sync {
    /// A job of `n_steps` begins.
    fn begin(&self, what: &'static str, n_steps: usize);
    /// A step of it is done.
    fn advance(&self);
}

/// Nobody.
pub struct Unwatched;

impl Watcher for Unwatched {
    fn begin(&self, _what: &'static str, _n_steps: usize) {}
    fn advance(&self) {}
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
