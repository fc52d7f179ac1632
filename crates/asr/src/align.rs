//! Forced alignment: when each label of a known transcript was spoken, and how well.
//!
//! ```no_run
//! use srf::align::{AlignError, Said};
//! use srf::{Recognizer, Utterance};
//!
//! let recognizer = Recognizer::open("models/en-phones")?;
//! let utterance = Utterance::from("prompt.wav");
//! let classes = recognizer.labels().encode("hh ah l ow")?;
//! for phone in recognizer.align(&utterance, &classes, None)?.tokens {
//!     println!("{} from {:.2} to {:.2} s", phone.text, phone.start_s, phone.end_s);
//! }
//! for Said { token, score, heard, .. } in recognizer.pronunciation(&utterance, &classes, None)? {
//!     println!("{}: {score:.0} of 100, sounded like {}", token.text, heard.as_deref().unwrap_or("nothing"));
//! }
//! if let Err(error @ AlignError::Transcript { .. }) = recognizer.align(&utterance, &classes.repeat(100), None) {
//!     println!("{error}; {}", error.hint().unwrap_or_default());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_text::align_ctc::pronunciation::{self, Pronunciation};
use srf_text::align_ctc::{self, AlignCtcError};
use srf_text::decode::{Hypothesis, Token};
use srf_text::output::{Segment, TokenResult};
use srf_text::words;

use crate::recognizer::Recognizer;
use crate::segment::begin_at;
use crate::transcribe::TranscribeError;

/// Why a transcript was not aligned.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlignError {
    #[error(transparent)]
    Recording(#[from] TranscribeError),
    #[error("`{name}`: {cause}")]
    Transcript { name: String, cause: AlignCtcError },
}

impl AlignError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Transcript { cause, .. } => cause.hint(),
            Self::Recording(error) => error.hint(),
        }
    }
}

/// A label that should have been said, and how well it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The label with its times; the confidence is its posterior where it peaks.
    pub token: TokenResult,
    /// 0 to 100: the posterior of the label between its neighbours, in per cent ([`pronunciation`]).
    pub score: f32,
    /// The label that was heard in its place; none where it was left out.
    pub heard: Option<String>,
    /// The share of what was heard, 0 to 100.
    pub heard_score: f32,
}

impl Recognizer {
    /// When each of `classes` was said in a recording.
    pub fn align(
        &self,
        utterance: &Utterance,
        classes: &[usize],
        statistics: Option<CmvnStats>,
    ) -> Result<Segment, AlignError> {
        let log_probs = self.log_probs(utterance, statistics)?;
        self.align_log_probs(&log_probs, classes).map_err(|cause| of_recording(utterance, cause))
    }

    /// Like [`align`](Self::align), from the log-probabilities of all slices.
    ///
    /// ```
    /// # let recognizer = srf::doc::recognizer();
    /// let mut log_probs = Vec::new();
    /// let mut listener = recognizer.listener(None)?;
    /// listener.accept(&[0.0; 16_000], 16_000, &mut log_probs)?;
    /// listener.flush(&mut log_probs);
    /// let classes = recognizer.labels().encode("ab")?;
    /// assert_eq!(recognizer.align_log_probs(&log_probs, &classes)?.tokens.len(), 2);
    /// assert_eq!(recognizer.pronunciation_log_probs(&log_probs, &classes)?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn align_log_probs(&self, log_probs: &[f32], classes: &[usize]) -> Result<Segment, AlignCtcError> {
        let aligned = align_ctc::align(log_probs, self.labels().n_classes(), classes)?;
        let log_prob = aligned.log_prob;
        let hypothesis = Hypothesis { tokens: aligned.tokens, words: Vec::new(), score: log_prob, log_prob };
        let mut segment =
            words::segment(self.labels(), None, &[hypothesis], self.timing().clock(), self.label_timing());
        begin_at(0.0, &mut segment);
        Ok(segment)
    }

    /// How well each of `classes` was said in a recording; the end of the sentence is left out.
    pub fn pronunciation(
        &self,
        utterance: &Utterance,
        classes: &[usize],
        statistics: Option<CmvnStats>,
    ) -> Result<Vec<Said>, AlignError> {
        let log_probs = self.log_probs(utterance, statistics)?;
        self.pronunciation_log_probs(&log_probs, classes).map_err(|cause| of_recording(utterance, cause))
    }

    /// Like [`pronunciation`](Self::pronunciation), from the log-probabilities of all slices.
    ///
    /// See [`align_log_probs`](Self::align_log_probs) for an example.
    pub fn pronunciation_log_probs(&self, log_probs: &[f32], classes: &[usize]) -> Result<Vec<Said>, AlignCtcError> {
        let scored = pronunciation::score(log_probs, self.labels().n_classes(), classes)?;
        let is_written = |said: &&Pronunciation| Some(said.token.class) != self.labels().end_of_sentence();
        Ok(scored.iter().filter(is_written).map(|said| self.said(said)).collect())
    }

    fn said(&self, scored: &Pronunciation) -> Said {
        let heard = match scored.heard {
            pronunciation::Heard::Label(class) => self.labels().symbol(class).map(str::to_owned),
            pronunciation::Heard::Nothing => None,
        };
        let token = self.token_result(&scored.token);
        Said { token, score: scored.score, heard, heard_score: scored.heard_score }
    }

    fn token_result(&self, token: &Token) -> TokenResult {
        let [start_s, end_s] = self.label_timing().span(token, self.timing().clock());
        TokenResult {
            text: self.labels().symbol(token.class).unwrap_or_default().to_owned(),
            start_s: start_s.max(0.0),
            end_s: end_s.max(0.0),
            confidence: Some(token.confidence),
            ..TokenResult::default()
        }
    }
}

fn of_recording(utterance: &Utterance, cause: AlignCtcError) -> AlignError {
    AlignError::Transcript { name: utterance.path.display().to_string(), cause }
}
