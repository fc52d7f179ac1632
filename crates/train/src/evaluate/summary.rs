//! The figures of an evaluation, as `evaluation.json` holds them and other commands read them.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use srf_base::files::read_at_most;
use srf_score::{Counts, Speaker};
use srf_text::decode::{DecoderConfig, Search};
use srf_text::labels::mapping::PhoneMapping;

use super::{Evaluation, LeftOut, Rate};

/// Name of the file in the directory of an evaluation.
pub const FILE_NAME: &str = "evaluation.json";

/// Far more than any evaluation has.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The figures of a model on some utterances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Summary {
    pub model: String,
    pub manifest: String,
    pub search: String,
    pub mapping: Option<String>,
    pub n_utterances: usize,
    pub audio_s: f64,
    pub recognition_s: f64,
    pub real_time_factor: Option<f64>,
    /// Threads it ran on.
    pub n_threads: usize,
    /// Error rates, the most important one first.
    pub rates: Vec<RateSummary>,
    pub left_out: Vec<LeftOut>,
}

/// One error rate, as a share: insertions can make it larger than 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct RateSummary {
    /// `PER`, `WER` or `CER`.
    pub measure: String,
    pub rate: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    #[serde(flatten)]
    pub counts: CountsSummary,
    pub n_utterances_wrong: usize,
    pub sentence_error_rate: Option<f64>,
    /// Normalised cross entropy of confidences.
    pub nce: Option<f64>,
    /// Expected calibration error of confidences.
    pub ece: Option<f64>,
    pub speakers: Vec<SpeakerSummary>,
}

/// Counts of labels and errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct CountsSummary {
    pub n_reference: usize,
    pub n_errors: usize,
    pub substitutions: usize,
    pub deletions: usize,
    pub insertions: usize,
}

/// Errors of one speaker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct SpeakerSummary {
    pub name: String,
    pub n_utterances: usize,
    pub n_utterances_wrong: usize,
    pub rate: Option<f64>,
    #[serde(flatten)]
    pub counts: CountsSummary,
}

/// Names of what was evaluated and how.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Subject {
    pub model: String,
    pub manifest: String,
    pub search: String,
    pub mapping: Option<String>,
}

impl Subject {
    /// A model evaluated on a manifest with this search and mapping.
    pub fn new(model: &Path, manifest: &Path, decoder: &DecoderConfig, mapping: Option<PhoneMapping>) -> Self {
        let search = match decoder.search {
            Search::Greedy => "greedy".to_owned(),
            Search::Beam { width } => format!("beam {width}"),
        };
        Self {
            model: model.display().to_string(),
            manifest: manifest.display().to_string(),
            search: if decoder.fusion.is_some() { search + " with fusion" } else { search },
            mapping: mapping.map(|mapping| mapping.to_string()),
        }
    }
}

impl Summary {
    /// The figures of an evaluation.
    pub fn of(evaluation: &Evaluation, subject: &Subject) -> Self {
        let Subject { model, manifest, search, mapping } = subject.clone();
        Self {
            model,
            manifest,
            search,
            mapping,
            n_utterances: evaluation.answers.len(),
            audio_s: evaluation.audio_s,
            recognition_s: evaluation.recognition_s,
            real_time_factor: evaluation.real_time_factor(),
            n_threads: evaluation.n_threads,
            rates: evaluation.rates.iter().map(RateSummary::from).collect(),
            left_out: evaluation.left_out.clone(),
        }
    }

    /// Reads the figures at `path`.
    pub fn load(path: &Path) -> Result<Self, LoadSummaryError> {
        let read = |source| LoadSummaryError::Read { path: path.to_owned(), source };
        let too_large = || io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes"));
        let bytes = read_at_most(path, MAX_FILE_BYTES).and_then(|bytes| bytes.ok_or_else(too_large)).map_err(read)?;
        serde_json::from_slice(&bytes).map_err(|source| LoadSummaryError::Json { path: path.to_owned(), source })
    }
}

/// Why the figures of an evaluation could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadSummaryError {
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` is not an evaluation: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
}

impl From<&Rate> for RateSummary {
    fn from(rate: &Rate) -> Self {
        let Rate { measure, system, interval, confidences } = rate;
        let (counts, n_wrong, n) = (system.counts(), system.n_wrong(), system.n_utterances());
        Self {
            measure: measure.name().to_owned(),
            rate: counts.error_rate(),
            low: interval.low,
            high: interval.high,
            counts: counts.into(),
            n_utterances_wrong: n_wrong,
            sentence_error_rate: (n > 0).then(|| n_wrong as f64 / n as f64),
            nce: confidences.as_ref().and_then(|confidences| confidences.nce),
            ece: confidences.as_ref().map(|confidences| confidences.ece),
            speakers: system.speakers.iter().map(SpeakerSummary::from).collect(),
        }
    }
}

impl From<&Speaker> for SpeakerSummary {
    fn from(speaker: &Speaker) -> Self {
        Self {
            name: String::from_utf8_lossy(&speaker.name).into_owned(),
            n_utterances: speaker.utterances.len(),
            n_utterances_wrong: speaker.n_wrong,
            rate: speaker.counts.error_rate(),
            counts: speaker.counts.into(),
        }
    }
}

impl From<Counts> for CountsSummary {
    fn from(counts: Counts) -> Self {
        Self {
            n_reference: counts.n_reference(),
            n_errors: counts.n_errors(),
            substitutions: counts.substitutions,
            deletions: counts.deletions,
            insertions: counts.insertions,
        }
    }
}
