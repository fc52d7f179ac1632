//! One speaker's stream: samples in, in chunks of any size and at any rate; what was heard out.
//!
//! Memory does not grow with the length of the stream, only with the length of the utterance that it is in, which
//! endpoint rules limit; what has ended waits in the stream until it is taken.

use std::sync::Arc;
use std::time::Instant;

use srf_model::stream::TapConfig;
use srf_text::decode::Decoder;
use srf_text::fusion::{Fusion, Lexicon};

use crate::endpoint::{EndReason, Endpointer};
use crate::front::AcceptError;
use crate::heard::Heard;
use crate::listener::Listener;
use crate::options::{StartStreamError, StreamOptions};
use crate::recognizer::Shared;
use crate::record::Record;

/// Samples taken in at a time, so that a file fed at once does not pile up.
const PIECE_SAMPLES: usize = 1 << 13;

/// More hypotheses than this are no alternatives.
const MAX_N_BEST: usize = 1000;

/// The state of one speaker.
pub struct Stream {
    shared: Arc<Shared>,
    listener: Listener,
    decoder: Decoder,
    fusion: Option<Arc<Fusion>>,
    endpointer: Option<Endpointer>,
    n_best: usize,
    has_evidence: bool,
    record: Record,
    ended: Vec<Heard>,
    log_probs: Vec<f32>,
}

impl Stream {
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut listener: Listener,
        options: &StreamOptions,
    ) -> Result<Self, StartStreamError> {
        let n_best = options.n_best;
        if !(1..=MAX_N_BEST).contains(&n_best) {
            return Err(StartStreamError::NBest { found: n_best, most: MAX_N_BEST });
        }
        let n_classes = shared.labels.n_classes();
        let has_evidence = options.has_evidence && listener.tap(Some(TapConfig::default()));
        let slice_s = shared.clockwork.slice_s();
        Ok(Self {
            decoder: Decoder::new(n_classes, &options.decoder),
            fusion: options.decoder.fusion.clone(),
            endpointer: options.endpoint.map(|rules| Endpointer::new(rules, slice_s)),
            record: Record::new(shared.clockwork, n_classes),
            n_best,
            has_evidence,
            listener,
            shared,
            ended: Vec::new(),
            log_probs: Vec::new(),
        })
    }

    /// Takes samples on the scale of 16-bit integers (full scale is 32768), at `rate_hz`.
    pub fn accept(&mut self, samples: &[f32], rate_hz: u32) -> Result<(), AcceptError> {
        let start = Instant::now();
        // With no samples at all the rate is still looked at.
        let n_pieces = samples.len().div_ceil(PIECE_SAMPLES).max(1);
        for index in 0..n_pieces {
            let from = index * PIECE_SAMPLES;
            let piece = &samples[from..samples.len().min(from + PIECE_SAMPLES)];
            self.listener.accept(piece, rate_hz, &mut self.log_probs)?;
            self.decode(start);
        }
        Ok(())
    }

    /// What the current utterance sounds like so far; nothing if nothing was said.
    pub fn partial(&self) -> Option<Heard> {
        Heard::new(&[self.decoder.best()], &self.shared, self.lexicon(), &self.record, None)
    }

    /// Takes the utterances that have ended.
    pub fn take_ended(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.ended)
    }

    /// Ends the utterance now: what waited for later samples comes out. The stream goes on, and so do its times.
    pub fn flush(&mut self) {
        let start = Instant::now();
        self.listener.flush(&mut self.log_probs);
        self.decode(start);
        self.end(EndReason::Flush);
        let next_slice = self.decoder.n_slices();
        self.record.restart(next_slice, self.listener.heard_s());
    }

    /// Ends the stream: all utterances that were not taken yet. The stream is at its start again.
    pub fn finish(&mut self) -> Vec<Heard> {
        self.flush();
        let ended = self.take_ended();
        self.reset();
        ended
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.listener.reset();
        self.decoder.reset();
        self.ended.clear();
        self.log_probs.clear();
        self.begin();
        self.record.restart(0, 0.0);
    }

    /// How much was heard, in seconds since the start.
    pub fn heard_s(&self) -> f64 {
        self.listener.heard_s()
    }

    /// Decodes what is in `log_probs`, slice by slice.
    fn decode(&mut self, start: Instant) {
        let log_probs = std::mem::take(&mut self.log_probs);
        let n_classes = self.shared.labels.n_classes();
        for (index, slice) in log_probs.chunks_exact(n_classes).enumerate() {
            self.decoder.accept(slice);
            self.record.note(self.listener.heard_s(), 1000.0 * start.elapsed().as_secs_f64());
            if self.has_evidence {
                let mass = self.listener.taps().map_or(&[][..], |taps| taps.class_mass());
                self.record.note_routing(slice, &mass[index * n_classes..][..n_classes]);
            }
            let reason = self.endpointer.as_mut().and_then(|rules| rules.accept(slice, &self.shared.kinds));
            if let Some(reason) = reason {
                self.end(reason);
            }
        }
        if let Some(taps) = self.listener.taps() {
            taps.clear();
        }
        self.log_probs = log_probs;
        self.log_probs.clear();
    }

    /// Ends the utterance.
    fn end(&mut self, reason: EndReason) {
        let hypotheses = self.decoder.finish(self.n_best);
        let heard = Heard::new(&hypotheses, &self.shared, self.lexicon(), &self.record, Some(reason));
        self.ended.extend(heard);
        self.begin();
    }

    fn lexicon(&self) -> Option<&Lexicon> {
        self.fusion.as_ref()?.lexicon()
    }

    fn begin(&mut self) {
        self.record.begin(self.decoder.n_slices());
        if let Some(rules) = &mut self.endpointer {
            rules.reset();
        }
    }
}
