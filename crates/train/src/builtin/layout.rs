//! The built-in corpus on disc: plain WAV files, or a tree shaped like TIMIT's or WSJ's discs.

pub mod plain;
pub mod timit;
pub mod wsj;

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::espeak::EspeakError;
use super::voice::{RATE_HZ, Voice};
use super::{Cast, Take};
use crate::corpus::Watcher;

/// Why the corpus was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteCorpusError {
    /// A file or folder.
    #[error("could not write `{path}`")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A voice.
    #[error(transparent)]
    Espeak(#[from] EspeakError),
    /// Too few people for the parts that the layout has.
    #[error("{found} speakers are too few for a corpus shaped like {layout}, expected at least {expected}")]
    TooFewSpeakers {
        /// How many were asked for.
        found: usize,
        /// How many it takes.
        expected: usize,
        /// The layout.
        layout: &'static str,
    },
}

impl WriteCorpusError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Espeak(error) => error.hint(),
            Self::TooFewSpeakers { expected, .. } => Some(format!("add `--speakers {expected}` or more")),
            Self::Write { .. } => None,
        }
    }
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> WriteCorpusError {
    let path = path.to_owned();
    |source| WriteCorpusError::Write { path, source }
}

/// A take to be made: who, and for which time.
#[derive(Clone, Copy)]
struct Slot {
    speaker: usize,
    index: usize,
}

/// Makes every take in `jobs` on all threads and hands it to `save`; the results keep the order of the jobs.
fn make_all<J: Sync, T: Send>(
    cast: &Cast,
    jobs: &[J],
    watcher: &dyn Watcher,
    sentence: impl Fn(&J) -> (Slot, Option<super::grammar::Sentence>) + Sync,
    save: impl Fn(&J, Take) -> Result<T, WriteCorpusError> + Sync,
) -> Result<Vec<T>, WriteCorpusError> {
    let made = jobs.par_iter().map_init(Voice::new, |voice, job| {
        let (Slot { speaker, index }, sentence) = sentence(job);
        let result = save(job, cast.take(voice, speaker, index, sentence)?);
        watcher.advance();
        result
    });
    made.collect()
}

/// Speech is made on the scale of 16-bit integers.
fn samples_of(values: Vec<f32>) -> srf_audio::Samples {
    let values = values.into_iter().map(|value| value / srf_audio::I16_SCALE).collect();
    srf_audio::Samples { rate_hz: RATE_HZ, values }
}
