//! Many recordings at once: a list in, what was said in each out, in the order of the list.
//!
//! Every recording is a stream of its own fed quickly, on all cores; its result is the same alone and among others.
//! Where the model normalises by speaker, the recordings of each speaker are heard twice: first for the statistics.

use std::collections::HashMap;

use rayon::prelude::*;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::{Blocks, ReadAudioError, Recording};
use srf_text::output::Transcript;

use crate::front::AcceptError;
use crate::heard::Heard;
use crate::options::{StartStreamError, StreamOptions};
use crate::recognizer::Recognizer;

/// How formats call the one channel that is heard.
const CHANNEL: &str = "A";

/// Recordings recognised before their results are given away, for each thread.
const BATCH_PER_THREAD: usize = 8;

/// What was said in a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recognised {
    /// The utterances in it: one if there are no endpoint rules, none if nothing was said.
    pub heard: Vec<Heard>,
    /// How long the recording is.
    pub duration_s: f64,
}

impl Recognised {
    /// All classes that were written, in order.
    pub fn classes(&self) -> Vec<usize> {
        self.heard.iter().flat_map(|heard| heard.classes.iter().copied()).collect()
    }

    /// The same in the form that files are written from; `id` names the recording.
    pub fn transcript(&self, id: impl Into<String>) -> Transcript {
        let segments = self.heard.iter().map(|heard| heard.segment.clone()).collect();
        Transcript { id: id.into(), channel: CHANNEL.to_owned(), duration_s: self.duration_s, segments }
    }

    /// All text, in order.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.heard.iter().map(|heard| heard.segment.text.as_str()).collect();
        texts.join(" ").trim().to_owned()
    }
}

/// Why a recording was not recognised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecogniseError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    /// Its samples cannot be taken.
    #[error("`{name}`: {cause}")]
    Accept {
        /// The recording.
        name: String,
        /// Why.
        cause: AcceptError,
    },
    /// No stream could be started for it.
    #[error(transparent)]
    Start(#[from] StartStreamError),
}

impl Recognizer {
    /// What is said in each of `utterances`; `done` is called after each one.
    ///
    /// Where the model normalises by speaker and `options` hold no statistics, those of each speaker are taken over
    /// all of that speaker's utterances in the list.
    pub fn recognise_all(
        &self,
        utterances: &[Utterance],
        options: &StreamOptions,
        done: &(dyn Fn() + Sync),
    ) -> Vec<Result<Recognised, RecogniseError>> {
        let by_speaker = self.statistics_for(utterances, options);
        let recognise = |utterance: &Utterance| {
            let result = self.recognise_one_of(utterance, &by_speaker, options);
            done();
            result
        };
        utterances.par_iter().map(recognise).collect()
    }

    /// The same for lists without end: gives away each result in the order of the list, some at a time.
    pub fn recognise_each<E>(
        &self,
        utterances: &[Utterance],
        options: &StreamOptions,
        mut take: impl FnMut(&Utterance, Result<Recognised, RecogniseError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let by_speaker = self.statistics_for(utterances, options);
        for batch in utterances.chunks(BATCH_PER_THREAD * rayon::current_num_threads()) {
            let recognise = |utterance| self.recognise_one_of(utterance, &by_speaker, options);
            let results: Vec<_> = batch.par_iter().map(recognise).collect();
            batch.iter().zip(results).try_for_each(|(utterance, result)| take(utterance, result))?;
        }
        Ok(())
    }

    /// The statistics of each speaker, where the model wants them and they were not given.
    fn statistics_for<'a>(&self, utterances: &'a [Utterance], options: &StreamOptions) -> HashMap<&'a str, CmvnStats> {
        let are_wanted = self.is_by_speaker() && options.statistics.is_none();
        if are_wanted { self.speaker_statistics(utterances) } else { HashMap::new() }
    }

    fn recognise_one_of(
        &self,
        utterance: &Utterance,
        by_speaker: &HashMap<&str, CmvnStats>,
        options: &StreamOptions,
    ) -> Result<Recognised, RecogniseError> {
        match by_speaker.get(utterance.speaker.as_str()).cloned() {
            None => self.recognise(utterance, options),
            statistics => self.recognise(utterance, &StreamOptions { statistics, ..options.clone() }),
        }
    }

    /// What is said in one recording, heard once.
    pub fn recognise(&self, utterance: &Utterance, options: &StreamOptions) -> Result<Recognised, RecogniseError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut stream = self.stream(options)?;
        feed(&mut blocks, utterance, |block, rate_hz| stream.accept(block, rate_hz))?;
        let duration_s = stream.heard_s();
        Ok(Recognised { heard: stream.finish(), duration_s })
    }

    /// The log-probabilities of one recording, `[slices, classes]`, with the speaker's statistics where they are known.
    pub fn log_probs(&self, utterance: &Utterance, statistics: Option<CmvnStats>) -> Result<Vec<f32>, RecogniseError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut listener = self.listener(statistics)?;
        let mut log_probs = Vec::new();
        feed(&mut blocks, utterance, |block, rate_hz| listener.accept(block, rate_hz, &mut log_probs))?;
        listener.flush(&mut log_probs);
        Ok(log_probs)
    }

    /// Sums over the features of one recording, from which they can be normalised.
    pub fn statistics(&self, utterance: &Utterance) -> Result<CmvnStats, RecogniseError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut front = self.shared().front();
        let mut stats = CmvnStats::new(self.features().n_dims());
        let mut frames = Vec::new();
        feed(&mut blocks, utterance, |block, rate_hz| {
            frames.clear();
            front.accept(block, rate_hz, &mut frames)?;
            stats.add(&frames);
            Ok(())
        })?;
        frames.clear();
        front.flush(&mut frames);
        stats.add(&frames);
        Ok(stats)
    }

    /// The statistics of each speaker's features, over all utterances that can be read.
    ///
    /// A recording that cannot be read is told when it is recognised.
    pub fn speaker_statistics<'a>(&self, utterances: &'a [Utterance]) -> HashMap<&'a str, CmvnStats> {
        let each: Vec<Option<CmvnStats>> = utterances.par_iter().map(|u| self.statistics(u).ok()).collect();
        let mut by_speaker: HashMap<&str, CmvnStats> = HashMap::new();
        // In the order of the list, so that sums have the same bits whatever the number of cores.
        for (utterance, stats) in utterances.iter().zip(each) {
            let Some(stats) = stats else { continue };
            match by_speaker.get_mut(utterance.speaker.as_str()) {
                Some(sum) => sum.merge(&stats),
                None => drop(by_speaker.insert(&utterance.speaker, stats)),
            }
        }
        by_speaker
    }
}

/// Gives `accept` all of a recording, a block at a time.
pub(crate) fn feed(
    blocks: &mut Blocks,
    utterance: &Utterance,
    mut accept: impl FnMut(&[f32], u32) -> Result<(), AcceptError>,
) -> Result<(), RecogniseError> {
    let rate_hz = blocks.rate_hz();
    while let Some(block) = blocks.next_block()? {
        let name = || utterance.path.display().to_string();
        accept(block, rate_hz).map_err(|cause| RecogniseError::Accept { name: name(), cause })?;
    }
    Ok(())
}
