//! Streaming: partial results and segments as they come, until the end of the sound or a signal.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{bail, ensure};
use srf::{Recognizer, Stream, StreamOptions, Transcript, channel_name};
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::{Channel, Recording};

use super::channels::Channels;
use super::files::{Sink, Writing, complete, keep_on, without_delays};
use super::stdin::Sound;
use crate::Exit;
use crate::commands::inputs::{self, Inputs};
use crate::printer::{Printer, is_broken_pipe};

/// More than this is not gathered before it is recognised: three hours at 48 kHz.
const MAX_GATHERED_SAMPLES: usize = 1 << 29;

/// What is needed to listen.
pub(super) struct Live<'a> {
    pub(super) recognizer: &'a Recognizer,
    pub(super) options: &'a StreamOptions,
    pub(super) channels: Channels,
    pub(super) chunk_ms: f64,
    pub(super) out: &'a Printer,
    /// Set by a signal: the stream is finished and what is known is written.
    pub(super) stop: Arc<AtomicBool>,
}

impl Live<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Recordings one after the other, as if they were spoken now.
    pub(super) fn files(&self, inputs: &[PathBuf], mut sink: Sink<'_>) -> anyhow::Result<Exit> {
        let Inputs { utterances, mut n_problems, .. } = inputs::gather(inputs, self.out);
        ensure!(!utterances.is_empty(), "there is no recording in what was given");
        let utterances = self.channels.apply(utterances, self.recognizer, self.out);
        sink.expect(inputs, utterances.len())?;
        for utterance in &utterances {
            let listened = Recording::open(&utterance.path).map_err(anyhow::Error::from).and_then(|recording| {
                let sound = Sound::Recording(recording, utterance.selection);
                let by_speaker = self.recognizer.is_by_speaker();
                let statistics = if by_speaker { Some(self.recognizer.statistics(utterance)?) } else { None };
                let transcript = Transcript {
                    id: utterance.id.clone(),
                    path: Some(utterance.path.clone()),
                    channel: channel_name(utterance.selection.channel),
                    ..Transcript::default()
                };
                self.listen(sound, statistics, transcript, &mut sink)
            });
            keep_on(listened, &mut n_problems, |problem| self.out.problem(problem))?;
            if self.is_stopped() {
                break;
            }
        }
        Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
    }

    /// What comes through a pipe; `is_live` shows results as they come.
    pub(super) fn pipe(&self, sound: Sound, is_live: bool, mut sink: Sink<'_>) -> anyhow::Result<Exit> {
        if is_live && self.recognizer.needs_statistics() {
            bail!(srf::StartStreamError::NoSpeakerStatistics);
        }
        let transcribed = if is_live {
            self.listen(sound, None, nameless("stdin"), &mut sink)
        } else if self.recognizer.is_by_speaker() {
            // Read twice: first for the statistics of the speaker.
            let (samples, rate_hz, incomplete) = gather(sound)?;
            let statistics = Some(self.recognizer.statistics_of(&samples, rate_hz)?);
            let transcript = Transcript { incomplete, ..nameless("stdin") };
            let sound = Sound::Samples(samples, rate_hz);
            let transcript = self.hear(sound, statistics, transcript, &mut Writing::AtTheEnd)?;
            sink.write(&without_delays(transcript))
        } else {
            let transcript = self.hear(sound, None, nameless("stdin"), &mut Writing::AtTheEnd)?;
            sink.write(&without_delays(transcript))
        };
        let mut n_problems = 0;
        keep_on(transcribed, &mut n_problems, |problem| self.out.problem(problem))?;
        Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
    }

    /// Listens to one sound and writes the result.
    pub(super) fn listen(
        &self,
        sound: Sound,
        statistics: Option<CmvnStats>,
        transcript: Transcript,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        let mut writing = sink.writing();
        let transcript = self.hear(sound, statistics, transcript, &mut writing)?;
        match writing {
            Writing::AtTheEnd => return sink.write(&transcript),
            Writing::Lines => {}
            Writing::Events => self.out.line(transcript.end_event())?,
            Writing::Cues(cues) => self.out.bytes(cues.finish().as_bytes())?,
        }
        complete(&transcript)
    }

    /// Feeds a sound to a stream chunk by chunk. What is written as it happens is forgotten, so that the memory of an
    /// endless stream does not grow; otherwise segments are added to `transcript`.
    fn hear(
        &self,
        sound: Sound,
        statistics: Option<CmvnStats>,
        mut transcript: Transcript,
        writing: &mut Writing,
    ) -> anyhow::Result<Transcript> {
        let options = StreamOptions { statistics, ..self.options.clone() };
        let mut stream = self.recognizer.stream(&options)?;
        let chunk_samples = |rate_hz: u32| ((self.chunk_ms / 1000.0 * f64::from(rate_hz)) as usize).max(1);
        let mut pending: Vec<f32> = Vec::new();
        let mut rate_hz = self.recognizer.features().sample_rate_hz;
        let mut shown = String::new();
        let read = sound.each(&mut |samples, its_rate_hz| {
            rate_hz = its_rate_hz;
            pending.extend_from_slice(samples);
            let n_whole = pending.len() / chunk_samples(rate_hz) * chunk_samples(rate_hz);
            for chunk in pending[..n_whole].chunks(chunk_samples(rate_hz)) {
                stream.accept(chunk, rate_hz)?;
                self.show(&mut stream, &mut transcript, writing)?;
                self.show_partial(&stream, &transcript.id, writing, &mut shown)?;
            }
            pending.drain(..n_whole);
            Ok(!self.is_stopped())
        });
        let incomplete = match read {
            // A recording that ends because of a signal is not damaged.
            Ok(_) if self.is_stopped() => None,
            Err(error) if self.is_stopped() && !is_broken_pipe(&error) => None,
            read => read?,
        };
        stream.accept(&pending, rate_hz)?;
        transcript.duration_s = stream.accepted_s();
        transcript.incomplete = transcript.incomplete.or(incomplete);
        stream.flush();
        self.show(&mut stream, &mut transcript, writing)?;
        self.out.partial("");
        Ok(transcript)
    }

    /// Writes what has ended.
    fn show(&self, stream: &mut Stream, transcript: &mut Transcript, writing: &mut Writing) -> anyhow::Result<()> {
        let ended = stream.take_ended();
        if !ended.is_empty() {
            self.out.partial("");
        }
        for segment in ended {
            match writing {
                Writing::AtTheEnd => transcript.segments.push(segment),
                Writing::Lines => self.out.line(&segment.text)?,
                Writing::Events => self.out.line(segment.to_event(&transcript.id))?,
                Writing::Cues(cues) => self.out.bytes(cues.push(&segment).as_bytes())?,
            }
        }
        Ok(())
    }

    /// Shows what has not ended: an event if it has changed, or text on the terminal.
    fn show_partial(&self, stream: &Stream, id: &str, writing: &Writing, shown: &mut String) -> anyhow::Result<()> {
        let has_events = matches!(writing, Writing::Events);
        if !has_events && !self.out.shows_partial() {
            return Ok(());
        }
        let partial = stream.partial();
        let text = partial.as_ref().map_or("", |segment| segment.text.as_str());
        if let Some(partial) = partial.as_ref().filter(|_| has_events && text != shown) {
            self.out.line(partial.to_event(id))?;
        }
        if !has_events {
            self.out.partial(text);
        }
        text.clone_into(shown);
        Ok(())
    }
}

/// The transcript of what has no file.
pub(super) fn nameless(id: &str) -> Transcript {
    Transcript { id: id.to_owned(), channel: channel_name(Channel::Mix), ..Transcript::default() }
}

/// All samples of a sound, their rate, and what is missing of it.
fn gather(sound: Sound) -> anyhow::Result<(Vec<f32>, u32, Option<String>)> {
    let (mut all, mut rate_hz) = (Vec::new(), 0);
    let incomplete = sound.each(&mut |samples, its_rate_hz| {
        rate_hz = its_rate_hz;
        all.extend_from_slice(samples);
        if MAX_GATHERED_SAMPLES < all.len() {
            bail!("stdin has more than {MAX_GATHERED_SAMPLES} samples, too many for a model that needs them twice");
        }
        Ok(true)
    })?;
    Ok((all, rate_hz, incomplete))
}
