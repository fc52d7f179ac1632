//! Segments with times, delays and evidence, made from the hypotheses of a decoder.
//!
//! Slice t belongs to feature frame t·n (n frames per slice), whose window is centred at t·n·shift + window / 2.
//! It can be computed when the samples of the last frame it depends on are complete, which is
//! `shift · look_ahead + window / 2` later: the *algorithmic* delay, the paper's column.
//! *Buffering* is how long the last of these samples had waited for the call that brought it, because samples come in
//! chunks and the resampler gathers some; *compute* is how long the call took until the slice was decoded.

use srf_audio::features::FeaturesConfig;
use srf_model::inference::Inference;
use srf_text::decode::{Hypothesis, Token};
use srf_text::fusion::Lexicon;
use srf_text::labels::{LabelSet, PADDING};
use srf_text::output::{Delay, EndReason, Evidence, Segment};
use srf_text::words::{self, Clock};

use crate::endpoint::most_probable;
use crate::recognizer::Shared;

/// When slices of a model are spoken and when they can be known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    slice_s: f64,
    shift_s: f64,
    window_s: f64,
    /// Filterbank frames of look-ahead; `None` if the network needs the whole utterance.
    look_ahead_frames: Option<usize>,
}

impl Timing {
    pub(crate) fn new(features: &FeaturesConfig, network: &Inference<f32>) -> Self {
        let delta_frames = features.look_ahead_frames();
        Self {
            slice_s: network.frames_per_slice() as f64 * features.shift_ms / 1000.0,
            shift_s: features.shift_ms / 1000.0,
            window_s: features.window_ms / 1000.0,
            look_ahead_frames: network.look_ahead_frames().map(|frames| frames + delta_frames),
        }
    }

    /// From one slice to the next.
    pub fn slice_s(&self) -> f64 {
        self.slice_s
    }

    /// The algorithmic delay; `None` for a model that needs the whole utterance.
    pub fn algorithmic_ms(&self) -> Option<f64> {
        let frames = self.look_ahead_frames?;
        Some(1000.0 * (frames as f64 * self.shift_s) + 1000.0 * self.window_s / 2.0)
    }

    /// When slices are: each is centred on the window of its frame.
    pub fn clock(&self) -> Clock {
        Clock { start_s: (self.window_s - self.slice_s) / 2.0, slice_s: self.slice_s }
    }

    /// The window of a frame.
    pub(crate) fn window_ms(&self) -> f64 {
        1000.0 * self.window_s
    }

    /// How much audio a slice needs before it can be known.
    pub(crate) fn needed_s(&self, slice: usize) -> f64 {
        let look_ahead_s = self.look_ahead_frames.unwrap_or(0) as f64 * self.shift_s;
        slice as f64 * self.slice_s + look_ahead_s + self.window_s
    }
}

/// The segment of the best of `hypotheses`, the others as alternatives; `None` if it is empty.
pub(crate) fn segment(
    hypotheses: &[Hypothesis],
    shared: &Shared,
    lexicon: Option<&Lexicon>,
    record: &Record,
    ended_by: Option<EndReason>,
) -> Option<Segment> {
    let best = hypotheses.first().filter(|best| !best.tokens.is_empty())?;
    let segment = words::segment(&shared.labels, lexicon, hypotheses, record.clock(), &shared.label_timing);
    let mut segment = Segment { ended_by, ..segment };
    let is_written = |token: &&Token| Some(token.class) != shared.labels.end_of_sentence();
    for (result, token) in segment.tokens.iter_mut().zip(best.tokens.iter().filter(is_written)) {
        result.evidence = record.evidence(token, &shared.labels);
        result.delay = record.delay(token.start_slice);
    }
    if let (Some(_), Some(words)) = (lexicon, &shared.words) {
        let confidences = segment.words.iter_mut().filter_map(|word| word.confidence.as_mut());
        confidences.for_each(|confidence| *confidence = words.settings().confidence.apply(*confidence));
    }
    begin_at(record.origin_s(), &mut segment);
    Some(segment)
}

/// The first slice of a network is centred on the first frame, so that it begins before the sound does, at `origin_s`.
pub(crate) fn begin_at(origin_s: f64, segment: &mut Segment) {
    let tokens = segment.tokens.iter_mut().map(|token| &mut token.start_s);
    let words = segment.words.iter_mut().map(|word| &mut word.start_s);
    let starts = tokens.chain(words).chain([&mut segment.start_s]);
    starts.for_each(|start_s| *start_s = start_s.max(origin_s));
}

/// Notes on the slices since the utterance began.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    timing: Timing,
    n_classes: usize,
    /// Where in the stream the network last started, and the slice it started with.
    origin_s: f64,
    origin_slice: usize,
    /// The first slice noted.
    first_slice: usize,
    notes: Vec<Note>,
    /// `[slices, 2, classes]`: log-probabilities and shares of the coupling; empty if nobody asked.
    rows: Vec<f32>,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    accepted_s: f64,
    compute_ms: f32,
}

impl Record {
    pub(crate) fn new(timing: Timing, n_classes: usize) -> Self {
        let (notes, rows) = (Vec::new(), Vec::new());
        Self { timing, n_classes, origin_s: 0.0, origin_slice: 0, first_slice: 0, notes, rows }
    }

    /// Notes a slice: how much had been heard, and how long computing took since.
    pub(crate) fn note(&mut self, accepted_s: f64, compute_ms: f64) {
        self.notes.push(Note { accepted_s, compute_ms: compute_ms as f32 });
    }

    /// Notes what the routing decided in a slice.
    pub(crate) fn note_routing(&mut self, log_probs: &[f32], mass: &[f32]) {
        let total: f32 = mass.iter().sum();
        self.rows.extend_from_slice(log_probs);
        self.rows.extend(mass.iter().map(|mass| mass / total));
    }

    /// A new utterance begins with slice `first_slice` of the stream.
    pub(crate) fn begin(&mut self, first_slice: usize) {
        self.first_slice = first_slice;
        self.notes.clear();
        self.rows.clear();
    }

    /// The network starts anew with slice `slice` after `accepted_s` of the stream.
    pub(crate) fn restart(&mut self, slice: usize, accepted_s: f64) {
        self.begin(slice);
        (self.origin_slice, self.origin_s) = (slice, accepted_s);
    }

    /// When the slices of the stream are, as long as the network does not start anew.
    pub(crate) fn clock(&self) -> Clock {
        let clock = self.timing.clock();
        let start_s = clock.start_s + self.origin_s - self.origin_slice as f64 * clock.slice_s;
        Clock { start_s, ..clock }
    }

    /// Where in the stream the network last started.
    pub(crate) fn origin_s(&self) -> f64 {
        self.origin_s
    }

    /// The delay of a label first written in `slice`.
    pub(crate) fn delay(&self, slice: usize) -> Option<Delay> {
        let note = self.notes.get(slice.checked_sub(self.first_slice)?)?;
        let slice = slice.saturating_sub(self.origin_slice);
        let accepted_s = note.accepted_s - self.origin_s;
        let waited_ms = 1000.0 * (accepted_s - self.timing.needed_s(slice)).max(0.0);
        let (algorithmic_ms, buffering_ms) = match self.timing.algorithmic_ms() {
            Some(algorithmic_ms) => (algorithmic_ms, waited_ms),
            // Nothing but the end of the utterance was waited for.
            None => (waited_ms + self.timing.window_ms() / 2.0, 0.0),
        };
        Some(Delay { algorithmic_ms, buffering_ms, compute_ms: f64::from(note.compute_ms) })
    }

    /// What the routing decided where a label peaks.
    pub(crate) fn evidence(&self, token: &Token, labels: &LabelSet) -> Option<Evidence> {
        let index = token.peak_slice.checked_sub(self.first_slice)?;
        let row = self.rows.chunks_exact(2 * self.n_classes).nth(index)?;
        let (log_probs, shares) = row.split_at(self.n_classes);
        let runner_up = runner_up(log_probs, token.class)?;
        Some(Evidence {
            posterior: log_probs[token.class].exp(),
            coupling_mass: shares[token.class],
            runner_up: name(labels, runner_up),
            agrees: most_probable(shares) == most_probable(log_probs),
        })
    }
}

/// The most probable class other than `class`.
fn runner_up(log_probs: &[f32], class: usize) -> Option<usize> {
    let others = (PADDING + 1..log_probs.len()).filter(|other| *other != class);
    others.max_by(|a, b| log_probs[*a].total_cmp(&log_probs[*b]))
}

/// A label as evidence names it; the blank is one of the candidates.
fn name(labels: &LabelSet, class: usize) -> String {
    labels.symbol(class).unwrap_or("<blank>").to_owned()
}
