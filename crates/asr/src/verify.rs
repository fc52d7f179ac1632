//! The promise that a stream equals its file, tried on somebody's own recording: samples in, what was compared and
//! every difference out.
//!
//! The recording goes through the recogniser whole and then cut in many ways: sample by sample, in pieces of random
//! sizes with empty ones among them. Log-probabilities are compared bit for bit, and all that was heard with its times
//! and confidences.

use srf_audio::features::cmvn::CmvnStats;

use crate::bulk::RecogniseError;
use crate::front::AcceptError;
use crate::heard::Heard;
use crate::options::StreamOptions;
use crate::recognizer::Recognizer;

/// One way to cut a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// Pieces of so many samples.
    Equal(usize),
    /// Pieces of random sizes up to so many samples, some of them empty, by a seed.
    Random {
        /// The longest piece.
        most: usize,
        /// What they are drawn from.
        seed: u64,
    },
}

/// The cut that does most calls, the usual one of telephones, a long one, and random ones by `seed`.
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
    /// What was heard, delays left out: they are of the clock.
    pub heard: Vec<Heard>,
    /// Calls it took.
    pub n_chunks: usize,
}

/// Where two traces part.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    /// One has more slices.
    #[error("{found} log-probabilities, expected {expected}")]
    Count {
        /// How many there are.
        found: usize,
        /// How many the whole recording gave.
        expected: usize,
    },
    /// A log-probability has other bits.
    #[error("slice {slice}, class {class}: log-probability {found}, expected {expected}")]
    LogProb {
        /// The slice.
        slice: usize,
        /// The class.
        class: usize,
        /// What it is.
        found: f32,
        /// What the whole recording gave.
        expected: f32,
    },
    /// The text, a time or a confidence.
    #[error("heard `{found}`, expected `{expected}`, or other times or confidences")]
    Heard {
        /// What was heard.
        found: String,
        /// What was heard of the whole recording.
        expected: String,
    },
}

/// The first difference between what a recording gave in pieces and whole; none if every bit is the same.
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
    let text =
        |trace: &Trace| trace.heard.iter().map(|heard| heard.segment.text.as_str()).collect::<Vec<_>>().join(" ");
    (found.heard != expected.heard).then(|| Difference::Heard { found: text(found), expected: text(expected) })
}

impl Recognizer {
    /// What the recogniser makes of `samples` cut by `chunking`, or whole.
    pub fn trace(
        &self,
        samples: &[f32],
        rate_hz: u32,
        chunking: Option<&Chunking>,
        options: &StreamOptions,
    ) -> Result<Trace, RecogniseError> {
        let mut listener = self.listener(options.statistics.clone())?;
        let mut stream = self.stream(options)?;
        let mut trace = Trace::default();
        let mut accept = |piece: &[f32]| -> Result<(), AcceptError> {
            trace.n_chunks += 1;
            listener.accept(piece, rate_hz, &mut trace.log_probs)?;
            stream.accept(piece, rate_hz)
        };
        let name = || "samples".to_owned();
        cut(samples, chunking, &mut accept).map_err(|cause| RecogniseError::Accept { name: name(), cause })?;
        listener.flush(&mut trace.log_probs);
        trace.heard = stream.finish();
        trace.heard.iter_mut().flat_map(|heard| &mut heard.segment.tokens).for_each(|token| token.delay = None);
        Ok(trace)
    }

    /// Sums over the features of `samples`, from which they can be normalised.
    pub fn statistics_of(&self, samples: &[f32], rate_hz: u32) -> Result<CmvnStats, AcceptError> {
        let mut front = self.shared().front();
        let mut frames = Vec::new();
        front.accept(samples, rate_hz, &mut frames)?;
        front.flush(&mut frames);
        let mut stats = CmvnStats::new(self.features().n_dims());
        stats.add(&frames);
        Ok(stats)
    }
}

/// Gives `accept` the pieces of `samples`.
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
