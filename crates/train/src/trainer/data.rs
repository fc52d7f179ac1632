//! What is trained on: a part of the corpus in memory, and the thread that fills batches ahead of the network.
//!
//! Features are computed once and kept, unless augmentation changes samples (then samples are kept) or memory does not
//! suffice (then recordings are read again in every epoch).

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use srf_audio::features::Extractor;
use srf_audio::features::cmvn::CmvnStats;
use srf_base::random::hash_of;
use srf_model::config::TrainingConfig;
use srf_model::frames::Frames;
use srf_text::labels::LabelSet;

use super::batches::Buckets;
use super::front_end::{FrontEnd, extract};
use crate::augment::Augmenter;
use crate::corpus::{AudioPart, Utterance, Watcher};
use crate::events::SkippedUtterance;

/// Batches that wait for the network.
const N_AHEAD: usize = 3;

/// Everything that a run reads.
pub(crate) struct Data {
    pub(crate) train: Dataset,
    pub(crate) dev: Dataset,
    pub(crate) augmenter: Augmenter,
    pub(crate) buckets: Buckets,
}

impl Data {
    /// The batches of an epoch, in their order.
    pub(crate) fn plan(&self, training: &TrainingConfig, epoch: usize) -> Vec<Vec<usize>> {
        // The budget must hold however slowly an utterance is played.
        let stretch = self.augmenter.max_stretch();
        let lengths: Vec<usize> =
            self.train.lengths().into_iter().map(|n_frames| (n_frames as f64 * stretch).ceil() as usize).collect();
        self.buckets.shuffled(&lengths, training.seed, epoch)
    }
}

/// An utterance that can be trained on.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) id: String,
    pub(crate) speaker: String,
    pub(crate) audio: AudioPart,
    /// Names the utterance in any batch.
    pub(crate) number: u64,
    pub(crate) labels: Vec<u32>,
    pub(crate) n_frames: usize,
    /// Features, samples, or nothing, as [`Keep`] says.
    kept: Vec<f32>,
}

/// What is kept of an utterance between epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Features,
    Samples,
    Nothing,
}

/// Examples and how to compute what is not kept of them.
pub(crate) struct Dataset {
    pub(crate) examples: Vec<Example>,
    pub(crate) front_end: FrontEnd,
    pub(crate) skipped: Vec<SkippedUtterance>,
    keep: Keep,
}

/// A recording that could be read when the training began, and no longer can.
#[derive(Debug, thiserror::Error)]
#[error("utterance `{id}`: `{path}` can no longer be read: {reason}")]
#[allow(missing_docs)] // the message says what the fields are
pub struct UnreadableError {
    pub id: String,
    pub path: PathBuf,
    pub reason: String,
}

/// Utterances trained on together.
pub(crate) struct Batch {
    pub(crate) members: Vec<usize>,
    pub(crate) x: Frames<f32>,
    /// The number of each member.
    pub(crate) numbers: Vec<u64>,
}

impl Dataset {
    /// Reads utterances; those that cannot be trained on are listed in `skipped`.
    pub(crate) fn load(
        utterances: &[Utterance],
        labels: &LabelSet,
        front_end: FrontEnd,
        keep: Keep,
        frames_per_slice: usize,
        watcher: &dyn Watcher,
    ) -> Self {
        let reader = Reader { labels, front_end: &front_end, keep, frames_per_slice };
        watcher.begin("reading", utterances.len());
        let read = utterances.par_iter().map_init(
            || front_end.extractor(),
            |extractor, utterance| {
                let example = reader.read(utterance, extractor);
                watcher.advance();
                example
            },
        );
        let read: Vec<Result<(Example, CmvnStats), String>> = read.collect();
        let mut data = Self { examples: Vec::new(), front_end: front_end.clone(), skipped: Vec::new(), keep };
        let mut global = CmvnStats::new(front_end.n_dims());
        for (utterance, result) in utterances.iter().zip(read) {
            match result {
                Ok((example, stats)) => {
                    global.merge(&stats);
                    if front_end.needs_speakers() {
                        data.front_end.add_speaker(&example.speaker, &stats);
                    }
                    data.examples.push(example);
                }
                Err(reason) => data.skipped.push(SkippedUtterance { id: utterance.id.clone(), reason }),
            }
        }
        if front_end.global().is_none() {
            data.front_end.set_global(global);
        }
        data.normalise_kept();
        data
    }

    fn normalise_kept(&mut self) {
        if self.keep == Keep::Features {
            let front_end = &self.front_end;
            self.examples.par_iter_mut().for_each(|example| front_end.normalise(&example.speaker, &mut example.kept));
        }
    }

    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.examples.iter().map(|example| example.n_frames).collect()
    }

    pub(crate) fn n_frames(&self) -> u64 {
        self.examples.iter().map(|example| example.n_frames as u64).sum()
    }

    /// The labels of some examples.
    pub(crate) fn labels(&self, members: &[usize]) -> Vec<&[u32]> {
        members.iter().map(|&n| self.examples[n].labels.as_slice()).collect()
    }

    pub(crate) fn ids(&self, members: &[usize]) -> Vec<String> {
        members.iter().map(|&n| self.examples[n].id.clone()).collect()
    }

    /// Fills `x`, whose memory is used again, with the features of `members` as they are in an epoch.
    pub(crate) fn batch(
        &self,
        members: &[usize],
        change: Option<(&Augmenter, usize)>,
        extractor: &mut Extractor,
        mut x: Frames<f32>,
    ) -> Result<Batch, UnreadableError> {
        let width = self.front_end.n_dims();
        if self.keep == Keep::Features {
            x.resize_for(members.iter().map(|&n| self.examples[n].n_frames));
            members.iter().enumerate().for_each(|(n, &m)| x.real_mut(n).copy_from_slice(&self.examples[m].kept));
        } else {
            let all = members.iter().map(|&m| self.compute(m, change, extractor));
            let all = all.collect::<Result<Vec<Vec<f32>>, _>>()?;
            x.resize_for(all.iter().map(|frames| frames.len() / width));
            all.iter().enumerate().for_each(|(n, frames)| x.real_mut(n).copy_from_slice(frames));
        }
        if let Some((augmenter, epoch)) = change {
            let (n_bins, n_orders) = self.front_end.blocks();
            for (n, &m) in members.iter().enumerate() {
                augmenter.mask_features(epoch as u64, &self.examples[m].id, x.real_mut(n), n_bins, n_orders);
            }
        }
        let numbers = members.iter().map(|&m| self.examples[m].number).collect();
        Ok(Batch { numbers, members: members.to_vec(), x })
    }

    /// The features of an example whose features are not kept.
    fn compute(
        &self,
        member: usize,
        change: Option<(&Augmenter, usize)>,
        extractor: &mut Extractor,
    ) -> Result<Vec<f32>, UnreadableError> {
        let Example { id, speaker, audio, kept, .. } = &self.examples[member];
        let mut samples = match self.keep {
            Keep::Samples => kept.clone(),
            _ => self.front_end.samples(audio).map_err(|error| {
                let reason = error.to_string();
                UnreadableError { id: id.clone(), path: audio.path.clone(), reason }
            })?,
        };
        if let Some((augmenter, epoch)) = change {
            augmenter.change_samples(epoch as u64, id, self.front_end.rate_hz(), &mut samples);
        }
        let mut frames = extract(extractor, &samples);
        self.front_end.normalise(speaker, &mut frames);
        Ok(frames)
    }
}

struct Reader<'a> {
    labels: &'a LabelSet,
    front_end: &'a FrontEnd,
    keep: Keep,
    frames_per_slice: usize,
}

impl Reader<'_> {
    fn read(&self, utterance: &Utterance, extractor: &mut Extractor) -> Result<(Example, CmvnStats), String> {
        let labels = self.labels.encode(&utterance.text).map_err(|error| error.to_string())?;
        let labels: Vec<u32> = labels.into_iter().map(|class| class as u32).collect();
        let samples = self.front_end.samples(&utterance.audio).map_err(|error| error.to_string())?;
        let frames = extract(extractor, &samples);
        let n_dims = self.front_end.n_dims();
        let n_frames = frames.len() / n_dims;
        self.check_length(&labels, n_frames)?;
        let mut stats = CmvnStats::new(n_dims);
        stats.add(&frames);
        let kept = match self.keep {
            Keep::Features => frames,
            Keep::Samples => samples,
            Keep::Nothing => Vec::new(),
        };
        let Utterance { id, speaker, audio, .. } = utterance.clone();
        Ok((Example { number: hash_of(&id), id, speaker, audio, labels, n_frames, kept }, stats))
    }

    fn check_length(&self, labels: &[u32], n_frames: usize) -> Result<(), String> {
        let n_slices = n_frames.div_ceil(self.frames_per_slice);
        let n_repeats = labels.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let n_needed = labels.len() + n_repeats;
        if 0 < n_frames && n_needed <= n_slices {
            return Ok(());
        }
        Err(format!("its {} labels need {n_needed} slices of time, its {n_frames} frames are {n_slices}", labels.len()))
    }
}

/// Fills batches on a thread of its own while the network trains.
pub(crate) struct Loader {
    batches: Receiver<Result<Batch, UnreadableError>>,
    used: Sender<Frames<f32>>,
}

impl Loader {
    /// Starts to load the batches of `plan`; `margin` is what the network adds around utterances.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        data: &'scope Data,
        plan: &'scope [Vec<usize>],
        epoch: usize,
        margin: [usize; 2],
    ) -> Self {
        let (send, batches) = sync_channel(N_AHEAD);
        let (used, free) = channel();
        scope.spawn(move || load(data, plan, epoch, margin, &send, &free));
        Self { batches, used }
    }

    /// The next batch and how long it was waited for; `None` after the last.
    pub(crate) fn next(&self) -> Option<(Result<Batch, UnreadableError>, Duration)> {
        let start = Instant::now();
        let batch = self.batches.recv().ok()?;
        Some((batch, start.elapsed()))
    }

    /// Returns the memory of a batch for a later one.
    pub(crate) fn give_back(&self, batch: Batch) {
        // The loader is gone when all batches are made.
        let _ = self.used.send(batch.x);
    }
}

fn load(
    data: &Data,
    plan: &[Vec<usize>],
    epoch: usize,
    margin: [usize; 2],
    send: &SyncSender<Result<Batch, UnreadableError>>,
    free: &Receiver<Frames<f32>>,
) {
    let Data { train, augmenter, .. } = data;
    let mut extractor = train.front_end.extractor();
    for members in plan {
        let x = free.try_recv().unwrap_or_else(|_| Frames::new(train.front_end.n_dims(), margin));
        // Sending fails when the network has stopped and nobody waits for the rest.
        if send.send(train.batch(members, Some((augmenter, epoch)), &mut extractor, x)).is_err() {
            return;
        }
    }
}
