//! Forced alignment: when each label of a known transcript was spoken, and how well.

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
        let aligned = align_ctc::align(&log_probs, self.labels().n_classes(), classes)
            .map_err(|cause| AlignError::Transcript { name: utterance.path.display().to_string(), cause })?;
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
        let scored = pronunciation::score(&log_probs, self.labels().n_classes(), classes)
            .map_err(|cause| AlignError::Transcript { name: utterance.path.display().to_string(), cause })?;
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
