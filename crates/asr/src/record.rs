//! What a stream notes of the slices of the current utterance: when each was known and, if asked, what the routing
//! decided; the times, delays and evidence of labels out.

use srf_text::decode::Token;
use srf_text::labels::{LabelSet, PADDING};
use srf_text::output::{Delay, Evidence};
use srf_text::words::Clock;

use crate::delay::Clockwork;
use crate::endpoint::likeliest;

/// Notes on the slices since the utterance began.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    clockwork: Clockwork,
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
    heard_s: f64,
    compute_ms: f32,
}

impl Record {
    pub(crate) fn new(clockwork: Clockwork, n_classes: usize) -> Self {
        let (notes, rows) = (Vec::new(), Vec::new());
        Self { clockwork, n_classes, origin_s: 0.0, origin_slice: 0, first_slice: 0, notes, rows }
    }

    /// Notes a slice: how much had been heard, and how long computing took since.
    pub(crate) fn note(&mut self, heard_s: f64, compute_ms: f64) {
        self.notes.push(Note { heard_s, compute_ms: compute_ms as f32 });
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

    /// The network starts anew with slice `slice` after `heard_s` of the stream.
    pub(crate) fn restart(&mut self, slice: usize, heard_s: f64) {
        self.begin(slice);
        (self.origin_slice, self.origin_s) = (slice, heard_s);
    }

    /// When the slices of the stream are, as long as the network does not start anew.
    pub(crate) fn clock(&self) -> Clock {
        let clock = self.clockwork.clock();
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
        let heard_s = note.heard_s - self.origin_s;
        let waited_ms = 1000.0 * (heard_s - self.clockwork.needed_s(slice)).max(0.0);
        let (algorithmic_ms, buffering_ms) = match self.clockwork.algorithmic_ms() {
            Some(algorithmic_ms) => (algorithmic_ms, waited_ms),
            // Nothing but the end of the utterance was waited for.
            None => (waited_ms + self.clockwork.window_ms() / 2.0, 0.0),
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
            agrees: likeliest(shares) == likeliest(log_probs),
        })
    }
}

/// The likeliest class that is not `class`.
fn runner_up(log_probs: &[f32], class: usize) -> Option<usize> {
    let others = (PADDING + 1..log_probs.len()).filter(|other| *other != class);
    others.max_by(|a, b| log_probs[*a].total_cmp(&log_probs[*b]))
}

/// A label as evidence names it; the blank is one of the candidates.
fn name(labels: &LabelSet, class: usize) -> String {
    labels.symbol(class).unwrap_or("<blank>").to_owned()
}
