//! One speaker's stream: samples of any rate to segments.
//!
//! Memory does not grow with the length of the stream, only with the length of the current utterance, which endpoint
//! rules limit; segments that have ended wait in the stream until they are taken.

use std::sync::Arc;

use srf_audio::I16_SCALE;
use srf_audio::features::cmvn::CmvnStats;
use srf_model::stream::TapConfig;
use srf_text::decode::{Decoder, DecoderConfig};
use srf_text::fusion::{Fusion, Lexicon};
use srf_text::output::{EndReason, Segment};

use crate::clock::Instant;
use crate::endpoint::{EndpointRules, Endpointer};
use crate::listener::{AcceptError, Listener};
use crate::recognizer::Shared;
use crate::segment::{Record, segment};
use crate::vad::{Piece, Vad, VadConfig};

/// Samples processed at a time, so that a file fed at once does not pile up.
const PIECE_SAMPLES: usize = 1 << 13;

const MAX_N_BEST: usize = 1000;

/// How a stream decodes, when it ends utterances, and what it reports.
///
/// ```
/// use srf::{DecoderConfig, EndpointRules, Search, StreamOptions};
///
/// let decoder = DecoderConfig { search: Search::Beam { width: 8 }, ..Default::default() };
/// let mut rules = EndpointRules::default();
/// rules.rule2.min_trailing_silence_s = 0.8;
/// let options = StreamOptions { decoder: Some(decoder), endpoint: Some(rules), n_best: 3, ..Default::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Greedy or beam search; language model, lexicon and hotwords. `None`:
    /// [the model's own](crate::Recognizer::decoder), which writes words if the model has some.
    pub decoder: Option<DecoderConfig>,
    /// Hypotheses per segment, at least 1.
    pub n_best: usize,
    /// When an utterance ends by itself; `None` for recordings of single utterances.
    pub endpoint: Option<EndpointRules>,
    /// Leaves out silence and steady noise, and ends an utterance before them; `None`: everything is transcribed.
    pub vad: Option<VadConfig>,
    /// Statistics of the speaker's features, for models that normalise by speaker.
    pub statistics: Option<CmvnStats>,
    /// Whether tokens carry what the routing decided; only networks of capsules can report it.
    pub has_evidence: bool,
    /// Whether [`Stream::take_slices`] returns softmax and couplings of every slice, for live pictures.
    pub keeps_slices: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            decoder: None,
            n_best: 1,
            endpoint: Some(EndpointRules::default()),
            vad: None,
            statistics: None,
            has_evidence: false,
            keeps_slices: false,
        }
    }
}

/// What the network computed for a run of slices.
///
/// ```
/// use srf::{Slices, Stream, StreamOptions};
///
/// # let recognizer = srf::doc::recognizer();
/// let mut stream: Stream = recognizer.stream(&StreamOptions { keeps_slices: true, ..Default::default() })?;
/// stream.accept(&[0.0; 8_000], 16_000)?;
/// let mut all: Slices = stream.take_slices().expect("they are kept");
/// stream.accept(&[0.0; 8_000], 16_000)?;
/// all.append(stream.take_slices().expect("they are kept"));
/// assert_eq!(all.posteriors.len(), all.n_slices() * all.n_classes);
/// for slice in all.couplings.chunks(all.n_classes) {
///     assert!((slice.iter().sum::<f32>() - 1.0).abs() < 1e-4);
/// }
/// assert_eq!(stream.accepted_s(), 1.0);
/// stream.reset();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slices {
    /// Values per slice.
    pub n_classes: usize,
    /// The softmax: `[slice, class]`, each slice sums to 1.
    pub posteriors: Vec<f32>,
    /// The share of all coupling of the last layer that went to each class, `[slice, class]`; empty for networks
    /// without capsules.
    pub couplings: Vec<f32>,
}

impl Slices {
    /// How many slices there are.
    pub fn n_slices(&self) -> usize {
        self.posteriors.len() / self.n_classes.max(1)
    }

    /// Adds the slices that follow.
    pub fn append(&mut self, mut later: Self) {
        self.posteriors.append(&mut later.posteriors);
        self.couplings.append(&mut later.couplings);
    }
}

/// Why a stream could not be started.
///
/// ```
/// use srf::{StartStreamError, StreamOptions};
///
/// # let recognizer = srf::doc::recognizer();
/// let error = recognizer.stream(&StreamOptions { n_best: 0, ..Default::default() }).err();
/// assert!(matches!(error, Some(StartStreamError::NBest { found: 0, .. })));
/// ```
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartStreamError {
    #[error("the model normalises features by speaker, and no statistics of this speaker are known")]
    NoSpeakerStatistics,
    #[error("the speaker's statistics have {found} values per frame, but a frame has {expected}")]
    StatisticsWidth { found: usize, expected: usize },
    #[error("{found} hypotheses were asked for, expected 1 to {most}")]
    NBest { found: usize, most: usize },
    #[error("voice activity detection: the {what} is {found}, expected {expected}")]
    Vad { what: &'static str, found: f64, expected: String },
}

impl StartStreamError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSpeakerStatistics => Some(
                "transcribe a file, which is read twice; for live speech train with `features.cmvn = \"online\"`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The state of one speaker's stream; made by [`Recognizer::stream`](crate::Recognizer::stream).
///
/// ```
/// # let recognizer = srf::doc::recognizer();
/// # let microphone = vec![vec![0.0_f32; 4800]; 3];
/// let mut stream = recognizer.stream(&Default::default())?;
/// for samples in microphone {
///     stream.accept(&samples, 48_000)?;
///     for segment in stream.take_ended() {
///         println!("{}", segment.text);
///     }
///     if let Some(so_far) = stream.partial() {
///         println!("... {}", so_far.text);
///     }
/// }
/// for segment in stream.finish() {
///     println!("{}", segment.text);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stream {
    shared: Arc<Shared>,
    listener: Listener,
    decoder: Decoder,
    fusion: Option<Arc<Fusion>>,
    endpointer: Option<Endpointer>,
    vad: Option<Vad>,
    /// Length of all samples accepted, of which voice activity detection may still hold some.
    accepted_s: f64,
    n_accepted: u64,
    n_best: usize,
    has_evidence: bool,
    slices: Option<Slices>,
    record: Record,
    ended: Vec<Segment>,
    log_probs: Vec<f32>,
    /// 16-bit samples as floats, reused between calls.
    converted: Vec<f32>,
}

impl Stream {
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut listener: Listener,
        config: DecoderConfig,
        options: &StreamOptions,
    ) -> Result<Self, StartStreamError> {
        let n_best = options.n_best;
        if !(1..=MAX_N_BEST).contains(&n_best) {
            return Err(StartStreamError::NBest { found: n_best, most: MAX_N_BEST });
        }
        if let Some(config) = &options.vad {
            config.check().map_err(|(what, found, expected)| StartStreamError::Vad { what, found, expected })?;
        }
        let n_classes = shared.labels.n_classes();
        let is_tapped = (options.has_evidence || options.keeps_slices) && listener.tap(Some(TapConfig::default()));
        let has_evidence = options.has_evidence && is_tapped;
        let slices = options.keeps_slices.then(|| Slices { n_classes, ..Slices::default() });
        let slice_s = shared.timing.slice_s();
        let mut decoder = Decoder::new(n_classes, &config);
        decoder.merge_pasts(1 < n_best);
        Ok(Self {
            decoder,
            fusion: config.fusion,
            endpointer: options.endpoint.map(|rules| Endpointer::new(rules, slice_s)),
            vad: options.vad.map(Vad::new),
            accepted_s: 0.0,
            n_accepted: 0,
            record: Record::new(shared.timing, n_classes),
            n_best,
            has_evidence,
            slices,
            listener,
            shared,
            ended: Vec::new(),
            log_probs: Vec::new(),
            converted: Vec::new(),
        })
    }

    /// Accepts mono samples from -1 to 1.
    pub fn accept(&mut self, samples: &[f32], rate_hz: u32) -> Result<(), AcceptError> {
        let start = Instant::now();
        // The rate is checked even if there are no samples.
        let n_pieces = samples.len().div_ceil(PIECE_SAMPLES).max(1);
        for index in 0..n_pieces {
            let from = index * PIECE_SAMPLES;
            let piece = &samples[from..samples.len().min(from + PIECE_SAMPLES)];
            self.listener.check(piece, rate_hz, self.n_accepted)?;
            self.n_accepted += piece.len() as u64;
            self.accepted_s = self.n_accepted as f64 / f64::from(rate_hz);
            match self.vad.take() {
                None => self.hear(Piece::Speech(piece), start),
                Some(mut vad) => {
                    vad.accept(piece, rate_hz, &mut |piece| self.hear(piece, start));
                    self.vad = Some(vad);
                }
            }
        }
        Ok(())
    }

    /// Recognises what follows in the audio, or leaves it out.
    fn hear(&mut self, piece: Piece<'_>, start: Instant) {
        match piece {
            Piece::Speech(samples) => {
                self.listener.append(samples, &mut self.log_probs);
                self.decode(start);
            }
            Piece::Silence(n_samples) => {
                self.listener.skip(n_samples);
                self.record.restart(self.decoder.n_slices(), self.listener.accepted_s());
            }
            Piece::End => self.end_utterance(EndReason::Vad, start),
        }
    }

    /// Accepts mono samples of 16 bits.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// let mut stream = recognizer.stream(&Default::default())?;
    /// stream.accept_i16(&[0, 1200, -800], 16_000)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accept_i16(&mut self, samples: &[i16], rate_hz: u32) -> Result<(), AcceptError> {
        let mut converted = std::mem::take(&mut self.converted);
        converted.clear();
        converted.extend(samples.iter().map(|&sample| f32::from(sample) / I16_SCALE));
        let accepted = self.accept(&converted, rate_hz);
        self.converted = converted;
        accepted
    }

    /// The current utterance so far; `None` if nothing was recognised yet.
    pub fn partial(&self) -> Option<Segment> {
        segment(&[self.decoder.best()], &self.shared, self.lexicon(), &self.record, None)
    }

    /// Takes the segments that have ended.
    pub fn take_ended(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.ended)
    }

    /// Takes the softmax and couplings of the slices since the last call; `None` unless
    /// [`StreamOptions::keeps_slices`] asks for them.
    pub fn take_slices(&mut self) -> Option<Slices> {
        let slices = self.slices.as_mut()?;
        let n_classes = slices.n_classes;
        Some(std::mem::replace(slices, Slices { n_classes, ..Slices::default() }))
    }

    /// Ends the utterance now, without waiting for later samples. The stream goes on, and so do its times.
    pub fn flush(&mut self) {
        let start = Instant::now();
        if let Some(mut vad) = self.vad.take() {
            vad.flush(&mut |piece| self.hear(piece, start));
            self.vad = Some(vad);
        }
        self.end_utterance(EndReason::Flush, start);
    }

    /// Ends the utterance; the network starts anew with what follows.
    fn end_utterance(&mut self, reason: EndReason, start: Instant) {
        self.listener.flush(&mut self.log_probs);
        self.decode(start);
        self.end(reason);
        self.record.restart(self.decoder.n_slices(), self.listener.accepted_s());
    }

    /// Ends the stream and returns the segments that were not taken yet. The stream is at its start again.
    pub fn finish(&mut self) -> Vec<Segment> {
        self.flush();
        let ended = self.take_ended();
        self.reset();
        ended
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.listener.reset();
        if let Some(vad) = &mut self.vad {
            vad.reset();
        }
        (self.n_accepted, self.accepted_s) = (0, 0.0);
        self.decoder.reset();
        self.ended.clear();
        self.log_probs.clear();
        self.take_slices();
        self.begin();
        self.record.restart(0, 0.0);
    }

    /// Length of all samples accepted since the start, in seconds.
    pub fn accepted_s(&self) -> f64 {
        self.accepted_s
    }

    /// Decodes what is in `log_probs`, slice by slice.
    fn decode(&mut self, start: Instant) {
        let log_probs = std::mem::take(&mut self.log_probs);
        let n_classes = self.shared.labels.n_classes();
        for (index, slice) in log_probs.chunks_exact(n_classes).enumerate() {
            self.decoder.accept(slice);
            self.record.note(self.accepted_s, 1000.0 * start.elapsed().as_secs_f64());
            if self.has_evidence {
                let mass = self.listener.taps().map_or(&[][..], |taps| taps.class_mass());
                self.record.note_routing(slice, &mass[index * n_classes..][..n_classes]);
            }
            let reason = self.endpointer.as_mut().and_then(|rules| rules.accept(slice, &self.shared.kinds));
            if let Some(reason) = reason {
                self.end(reason);
            }
        }
        if let Some(slices) = &mut self.slices {
            slices.posteriors.extend(log_probs.iter().map(|value| value.exp()));
        }
        if let Some(taps) = self.listener.taps() {
            if let Some(slices) = &mut self.slices {
                for mass in taps.class_mass().chunks_exact(n_classes) {
                    let total: f32 = mass.iter().sum();
                    slices.couplings.extend(mass.iter().map(|mass| mass / total));
                }
            }
            taps.clear();
        }
        self.log_probs = log_probs;
        self.log_probs.clear();
    }

    /// Ends the utterance.
    fn end(&mut self, reason: EndReason) {
        let hypotheses = self.decoder.finish(self.n_best);
        let segment = segment(&hypotheses, &self.shared, self.lexicon(), &self.record, Some(reason));
        self.ended.extend(segment);
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
