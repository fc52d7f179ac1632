//! A check that a stream equals its file: one recording, cut in many ways, must give the same bits.
//!
//! The recording goes through the recogniser at once and then cut into pieces: sample by sample, and in pieces of
//! random sizes, some of them empty. Log-probabilities are compared bit for bit, and all segments with their times and
//! confidences.
//!
//! ```
//! use srf::verify::{Chunking, Difference, Trace, chunkings, compare};
//!
//! # let recognizer = srf::doc::recognizer();
//! # let samples: Vec<f32> = (0..8000).map(|n| (n as f32 * 0.05).sin() / 2.0).collect();
//! let options = Default::default();
//! let at_once: Trace = recognizer.trace(&samples, 16_000, None, &options)?;
//! for chunking in chunkings(2, 1).iter().chain([&Chunking::Equal(700)]) {
//!     let found = recognizer.trace(&samples, 16_000, Some(chunking), &options)?;
//!     let difference: Option<Difference> = compare(&found, &at_once, recognizer.labels().n_classes());
//!     assert!(difference.is_none(), "{chunking:?}: {difference:?}");
//! }
//! # Ok::<(), srf::TranscribeError>(())
//! ```

use srf_text::output::Segment;

use crate::listener::AcceptError;
use crate::recognizer::Recognizer;
use crate::stream::StreamOptions;
use crate::transcribe::TranscribeError;

/// One way to cut a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// Pieces of so many samples.
    Equal(usize),
    /// Pieces of random sizes up to so many samples, some of them empty, by a seed.
    Random {
        /// The longest piece.
        most: usize,
        /// Seed of the sizes.
        seed: u64,
    },
}

/// Single samples, pieces of 160 (10 ms of telephone speech) and of 16,000, and `n_random` random cuts by `seed`.
pub fn chunkings(n_random: usize, seed: u64) -> Vec<Chunking> {
    const LONGEST: [usize; 4] = [3, 200, 5000, 100_000];
    let random = |index: usize| Chunking::Random { most: LONGEST[index % LONGEST.len()], seed: seed + index as u64 };
    [1, 160, 16_000].map(Chunking::Equal).into_iter().chain((0..n_random).map(random)).collect()
}

/// What the recogniser made of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// `[slices, classes]`.
    pub log_probs: Vec<f32>,
    /// Without delays, which depend on the clock.
    pub segments: Vec<Segment>,
    /// Calls of `accept`.
    pub n_chunks: usize,
}

/// Where two traces differ.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    #[error("{found} log-probabilities, expected {expected}")]
    Count { found: usize, expected: usize },
    #[error("slice {slice}, class {class}: log-probability {found}, expected {expected}")]
    LogProb { slice: usize, class: usize, found: f32, expected: f32 },
    #[error("recognised `{found}`, expected `{expected}`, or other times or confidences")]
    Segments { found: String, expected: String },
}

/// The first difference between a recording cut into pieces and at once; `None` if every bit is the same.
pub fn compare(found: &Trace, expected: &Trace, n_classes: usize) -> Option<Difference> {
    if found.log_probs.len() != expected.log_probs.len() {
        return Some(Difference::Count { found: found.log_probs.len(), expected: expected.log_probs.len() });
    }
    let mut pairs = found.log_probs.iter().zip(&expected.log_probs);
    if let Some(index) = pairs.position(|(a, b)| a.to_bits() != b.to_bits()) {
        let [found, expected] = [found, expected].map(|trace| trace.log_probs[index]);
        let [slice, class] = [index / n_classes, index % n_classes];
        return Some(Difference::LogProb { slice, class, found, expected });
    }
    let text = |trace: &Trace| trace.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
    (found.segments != expected.segments).then(|| Difference::Segments { found: text(found), expected: text(expected) })
}

impl Recognizer {
    /// What the recogniser makes of `samples` from -1 to 1, cut by `chunking` or at once.
    pub fn trace(
        &self,
        samples: &[f32],
        rate_hz: u32,
        chunking: Option<&Chunking>,
        options: &StreamOptions,
    ) -> Result<Trace, TranscribeError> {
        let mut listener = self.listener(options.statistics.clone())?;
        let mut stream = self.stream(options)?;
        let mut trace = Trace::default();
        let mut accept = |piece: &[f32]| -> Result<(), AcceptError> {
            trace.n_chunks += 1;
            listener.accept(piece, rate_hz, &mut trace.log_probs)?;
            stream.accept(piece, rate_hz)
        };
        let name = || "samples".to_owned();
        cut(samples, chunking, &mut accept).map_err(|cause| TranscribeError::Accept { name: name(), cause })?;
        listener.flush(&mut trace.log_probs);
        trace.segments = stream.finish();
        trace.segments.iter_mut().flat_map(|segment| &mut segment.tokens).for_each(|token| token.delay = None);
        Ok(trace)
    }
}

/// Calls `accept` with the pieces of `samples`.
fn cut(
    samples: &[f32],
    chunking: Option<&Chunking>,
    accept: &mut impl FnMut(&[f32]) -> Result<(), AcceptError>,
) -> Result<(), AcceptError> {
    match chunking {
        None => accept(samples),
        Some(Chunking::Equal(size)) => samples.chunks((*size).max(1)).try_for_each(accept),
        Some(Chunking::Random { most, seed }) => {
            let mut random = srf_model::random::Random::new(*seed, "chunks");
            let mut rest = samples;
            while !rest.is_empty() {
                let size = (random.uniform() * (*most as f64 + 1.0)) as usize;
                let (piece, later) = rest.split_at(size.min(rest.len()));
                accept(piece)?;
                rest = later;
            }
            Ok(())
        }
    }
}
