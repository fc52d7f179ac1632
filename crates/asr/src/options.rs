//! What can be set for each stream.

use srf_audio::features::cmvn::CmvnStats;
use srf_text::decode::DecoderConfig;

use crate::endpoint::EndpointRules;

/// How a stream decodes, when it ends utterances, and what it tells.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Greedy or beam, with what language model, lexicon and hotwords.
    pub decoder: DecoderConfig,
    /// Hypotheses a segment, at least 1.
    pub n_best: usize,
    /// When an utterance ends by itself; never if absent, which is what recordings of single utterances want.
    pub endpoint: Option<EndpointRules>,
    /// Statistics of the speaker's features, for models that normalise by speaker.
    pub statistics: Option<CmvnStats>,
    /// Whether every token tells what the routing decided; only networks of capsules can.
    pub has_evidence: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            decoder: DecoderConfig::default(),
            n_best: 1,
            endpoint: Some(EndpointRules::default()),
            statistics: None,
            has_evidence: false,
        }
    }
}

/// Why a stream could not be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartStreamError {
    /// A model that normalises by speaker does not know this one.
    #[error("the model normalises features by speaker and knows nothing of this one")]
    NoSpeakerStatistics,
    /// Statistics of another front end.
    #[error("the speaker's statistics are of {found} values a frame, but a frame has {expected}")]
    StatisticsWidth {
        /// Values of the statistics.
        found: usize,
        /// Values of a frame.
        expected: usize,
    },
    /// Nothing to give back.
    #[error("{found} hypotheses were asked for, expected 1 to {most}")]
    NBest {
        /// How many.
        found: usize,
        /// The limit.
        most: usize,
    },
}

impl StartStreamError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSpeakerStatistics => Some(
                "transcribe a file, which is heard twice; for live speech train with `features.cmvn = \"online\"`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
