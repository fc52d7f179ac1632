//! Transcripts of recordings: one, a list on all cores, or an iterator in bounded memory.
//!
//! A recording is a stream fed quickly; its result is the same alone and among others. Where the model normalises by
//! speaker, each recording is read twice: first for the statistics.

use std::collections::HashMap;
use std::path::Path;

use rayon::prelude::*;
use srf_audio::bulk::Utterance;
use srf_audio::features::Cmvn;
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::{Blocks, Channel, ReadAudioError, Recording};
use srf_model::stream::{LayerHealth, TapConfig, Taps};
use srf_text::output::Transcript;

use crate::listener::AcceptError;
use crate::recognizer::Recognizer;
use crate::stream::{StartStreamError, StreamOptions};

/// Recordings transcribed before their results are handed out, per thread.
const BATCH_PER_THREAD: usize = 8;

/// Why a recording was not transcribed.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscribeError {
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    #[error("`{name}`: {cause}")]
    Accept { name: String, cause: AcceptError },
    #[error(transparent)]
    Start(#[from] StartStreamError),
}

impl TranscribeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
            Self::Accept { cause, .. } => cause.hint(),
            Self::Start(error) => error.hint(),
        }
    }
}

impl Recognizer {
    /// Transcribes a recording of any format and rate, with the default options.
    ///
    /// ```no_run
    /// let recognizer = srf::Recognizer::open("models/en")?;
    /// let transcript = recognizer.transcribe("talk.flac")?;
    /// println!("{}", transcript.text());
    /// for segment in &transcript.segments {
    ///     println!("{:.2} to {:.2} s: {}", segment.start_s, segment.end_s, segment.text);
    /// }
    /// std::fs::write("talk.srt", transcript.format(srf::Format::Srt))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transcribe(&self, path: impl AsRef<Path>) -> Result<Transcript, TranscribeError> {
        self.transcribe_with(&path.as_ref().into(), &StreamOptions::default())
    }

    /// Transcribes an utterance: a recording, or a part or channel of it.
    ///
    /// Where the model normalises by speaker and `options` hold no statistics, they are taken over this utterance.
    /// Of a recording that was cut off, the rest is transcribed, and [`Transcript::incomplete`] says what is missing.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let selection = srf::Selection { start_s: 60.0, end_s: Some(90.0), ..Default::default() };
    /// let utterance = srf::Utterance { selection, ..srf::Utterance::from("talk.flac") };
    /// let options = srf::StreamOptions { n_best: 3, ..Default::default() };
    /// println!("{}", recognizer.transcribe_with(&utterance, &options)?.text());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transcribe_with(
        &self,
        utterance: &Utterance,
        options: &StreamOptions,
    ) -> Result<Transcript, TranscribeError> {
        let recording = Recording::open(&utterance.path)?;
        let statistics = match &options.statistics {
            None if self.is_by_speaker() => Some(self.statistics(utterance)?),
            known => known.clone(),
        };
        let mut stream = self.stream(&StreamOptions { statistics, ..options.clone() })?;
        let mut blocks = recording.blocks(utterance.selection)?;
        feed(&mut blocks, &utterance.path, |block, rate_hz| stream.accept(block, rate_hz))?;
        let duration_s = stream.accepted_s();
        Ok(Transcript {
            id: utterance.id.clone(),
            path: Some(utterance.path.clone()),
            channel: channel_name(utterance.selection.channel),
            duration_s,
            segments: stream.finish(),
            incomplete: blocks.incomplete().map(|error| error.to_string()),
        })
    }

    /// Transcribes samples from -1 to 1 at `rate_hz`.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// let silence = vec![0.0; 16_000];
    /// let transcript = recognizer.transcribe_samples(&silence, 16_000)?;
    /// assert_eq!(transcript.duration_s, 1.0);
    /// # Ok::<(), srf::TranscribeError>(())
    /// ```
    pub fn transcribe_samples(&self, samples: &[f32], rate_hz: u32) -> Result<Transcript, TranscribeError> {
        self.transcribe_samples_with(samples, rate_hz, &StreamOptions::default())
    }

    /// Like [`transcribe_samples`](Self::transcribe_samples), with options.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// let options = srf::StreamOptions { n_best: 3, ..Default::default() };
    /// let transcript = recognizer.transcribe_samples_with(&[0.0; 8_000], 16_000, &options)?;
    /// assert_eq!(transcript.duration_s, 0.5);
    /// # Ok::<(), srf::TranscribeError>(())
    /// ```
    pub fn transcribe_samples_with(
        &self,
        samples: &[f32],
        rate_hz: u32,
        options: &StreamOptions,
    ) -> Result<Transcript, TranscribeError> {
        let failed = |cause| TranscribeError::Accept { name: "samples".to_owned(), cause };
        let statistics = match &options.statistics {
            None if self.is_by_speaker() => Some(self.statistics_of(samples, rate_hz).map_err(failed)?),
            known => known.clone(),
        };
        let mut stream = self.stream(&StreamOptions { statistics, ..options.clone() })?;
        stream.accept(samples, rate_hz).map_err(failed)?;
        let duration_s = stream.accepted_s();
        let channel = channel_name(Channel::Mix);
        Ok(Transcript { channel, duration_s, segments: stream.finish(), ..Transcript::default() })
    }

    /// Transcribes a list on all cores; the results are in the order of the list. `done` is called after each one.
    ///
    /// Where the model normalises by speaker and `options` hold no statistics, those of each speaker are taken over
    /// all of that speaker's utterances in the list.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let list = ["a.wav", "b.flac"].map(srf::Utterance::from);
    /// for result in recognizer.transcribe_all(&list, &Default::default(), &|| ()) {
    ///     println!("{}", result?.text());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transcribe_all(
        &self,
        utterances: &[Utterance],
        options: &StreamOptions,
        done: &(dyn Fn() + Sync),
    ) -> Vec<Result<Transcript, TranscribeError>> {
        let by_speaker = self.missing_statistics(utterances, options);
        let transcribe = |utterance: &Utterance| {
            let result = self.transcribe_one_of(utterance, &by_speaker, options);
            done();
            result
        };
        utterances.par_iter().map(transcribe).collect()
    }

    /// Like [`transcribe_all`](Self::transcribe_all), but in bounded memory: yields results in the order of the list.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let list: Vec<srf::Utterance> = std::fs::read_to_string("list.txt")?.lines().map(Into::into).collect();
    /// for result in recognizer.transcripts(&list, &Default::default()) {
    ///     println!("{}", result?.text());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transcripts<'a>(
        &'a self,
        utterances: &'a [Utterance],
        options: &'a StreamOptions,
    ) -> impl Iterator<Item = Result<Transcript, TranscribeError>> + 'a {
        let by_speaker = self.missing_statistics(utterances, options);
        utterances.chunks(BATCH_PER_THREAD * rayon::current_num_threads()).flat_map(move |batch| {
            let transcribe = |utterance| self.transcribe_one_of(utterance, &by_speaker, options);
            batch.par_iter().map(transcribe).collect::<Vec<_>>()
        })
    }

    /// The statistics of each speaker, where the model needs them and `options` have none.
    fn missing_statistics<'a>(
        &self,
        utterances: &'a [Utterance],
        options: &StreamOptions,
    ) -> HashMap<&'a str, CmvnStats> {
        // By utterance, each one is normalised when its turn comes.
        let are_needed = self.features().cmvn == Cmvn::Speaker && options.statistics.is_none();
        if are_needed { self.speaker_statistics(utterances) } else { HashMap::new() }
    }

    fn transcribe_one_of(
        &self,
        utterance: &Utterance,
        by_speaker: &HashMap<&str, CmvnStats>,
        options: &StreamOptions,
    ) -> Result<Transcript, TranscribeError> {
        match by_speaker.get(utterance.speaker.as_str()).cloned() {
            None => self.transcribe_with(utterance, options),
            statistics => self.transcribe_with(utterance, &StreamOptions { statistics, ..options.clone() }),
        }
    }

    /// The log-probabilities of one utterance, `[slices, classes]`, with the speaker's statistics where they are known.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let log_probs = recognizer.log_probs(&"talk.flac".into(), None)?;
    /// println!("{} slices", log_probs.len() / recognizer.labels().n_classes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_probs(&self, utterance: &Utterance, statistics: Option<CmvnStats>) -> Result<Vec<f32>, TranscribeError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut listener = self.listener(statistics)?;
        let mut log_probs = Vec::new();
        feed(&mut blocks, &utterance.path, |block, rate_hz| listener.accept(block, rate_hz, &mut log_probs))?;
        listener.flush(&mut log_probs);
        Ok(log_probs)
    }

    /// Sums over the features of one utterance, to normalise them by.
    pub fn statistics(&self, utterance: &Utterance) -> Result<CmvnStats, TranscribeError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut front = self.shared().front();
        let mut stats = CmvnStats::new(self.features().n_features());
        let mut frames = Vec::new();
        feed(&mut blocks, &utterance.path, |block, rate_hz| {
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

    /// Like [`statistics`](Self::statistics), of samples from -1 to 1.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// let statistics = recognizer.statistics_of(&[0.0; 16_000], 16_000)?;
    /// assert_eq!(statistics.n_dims(), recognizer.features().n_features());
    /// # Ok::<(), srf::AcceptError>(())
    /// ```
    pub fn statistics_of(&self, samples: &[f32], rate_hz: u32) -> Result<CmvnStats, AcceptError> {
        let mut front = self.shared().front();
        let mut frames = Vec::new();
        front.accept(samples, rate_hz, &mut frames)?;
        front.flush(&mut frames);
        let mut stats = CmvnStats::new(self.features().n_features());
        stats.add(&frames);
        Ok(stats)
    }

    /// The statistics of each speaker, over all utterances that can be read.
    ///
    /// A recording that cannot be read is reported when it is transcribed.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// let list = ["ann-1.wav", "ann-2.wav"].map(|path| srf::Utterance { speaker: "ann".into(), ..path.into() });
    /// let by_speaker = recognizer.speaker_statistics(&list);
    /// let options = srf::StreamOptions { statistics: by_speaker.get("ann").cloned(), ..Default::default() };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// How each capsule layer routes, over the recordings that can be read; empty for networks without capsules.
    ///
    /// A layer that couples evenly (entropy near 1) has not learned to route; one with many dead capsules wastes them;
    /// a last layer whose largest coupling often disagrees with the softmax decides by length alone.
    /// Where the model normalises by speaker, the statistics are those of the recordings given.
    ///
    /// ```no_run
    /// # let recognizer = srf::Recognizer::open("models/en")?;
    /// for layer in recognizer.health(&["a.wav", "b.wav"].map(srf::Utterance::from)) {
    ///     println!("{}: entropy {:.3}, {} of {} dead", layer.name, layer.entropy, layer.n_dead, layer.n_capsules);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self, utterances: &[Utterance]) -> Vec<LayerHealth> {
        let by_speaker = if self.is_by_speaker() { self.speaker_statistics(utterances) } else { HashMap::new() };
        let tapped = |utterance: &Utterance| {
            let statistics = by_speaker.get(utterance.speaker.as_str()).cloned();
            self.tapped(utterance, statistics).ok().flatten()
        };
        let each: Vec<Taps<f32>> = utterances.par_iter().filter_map(tapped).collect();
        let mut each = each.into_iter();
        let Some(mut all) = each.next() else { return Vec::new() };
        each.for_each(|taps| all.merge(&taps));
        all.health()
    }

    fn tapped(
        &self,
        utterance: &Utterance,
        statistics: Option<CmvnStats>,
    ) -> Result<Option<Taps<f32>>, TranscribeError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut listener = self.listener(statistics)?;
        listener.tap(Some(TapConfig { has_hidden: true, has_health: true, full_layer: None }));
        let mut log_probs = Vec::new();
        feed(&mut blocks, &utterance.path, |block, rate_hz| {
            log_probs.clear();
            if let Some(taps) = listener.taps() {
                taps.clear();
            }
            listener.accept(block, rate_hz, &mut log_probs)
        })?;
        listener.flush(&mut log_probs);
        Ok(listener.taps().map(|taps| taps.clone()))
    }
}

/// Channels as CTM files name them: A, B, ..., and numbers from the 27th on. The mix of all is A.
///
/// ```
/// use srf::{Channel, channel_name};
///
/// assert_eq!(channel_name(Channel::Only(1)), "B");
/// ```
pub fn channel_name(channel: Channel) -> String {
    match channel {
        Channel::Mix => "A".to_owned(),
        Channel::Only(index) => match u8::try_from(index) {
            Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
            _ => (index + 1).to_string(),
        },
    }
}

/// Hands all blocks of a recording to `accept`.
fn feed(
    blocks: &mut Blocks,
    path: &Path,
    mut accept: impl FnMut(&[f32], u32) -> Result<(), AcceptError>,
) -> Result<(), TranscribeError> {
    let rate_hz = blocks.rate_hz();
    while let Some(block) = blocks.next_block()? {
        let name = || path.display().to_string();
        accept(block, rate_hz).map_err(|cause| TranscribeError::Accept { name: name(), cause })?;
    }
    Ok(())
}
